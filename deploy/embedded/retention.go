package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Excess returns the offset below which a partition exceeds limit bytes: that of the first segment with which, and with all
// after it, the partition is within the limit. It is 0 where nothing is to be deleted, and never beyond the segment that
// is written to: a partition without a record would forget its end.
func (b *Broker) Excess(topic string, partition int32, limit int64) (int64, error) {
	dir := filepath.Join(b.dir, "partitions", fmt.Sprintf("%s-%d", topic, partition))
	bases, err := segmentBases(dir)
	if errors.Is(err, fs.ErrNotExist) { // nothing was written yet
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("listing the segments of %s/%d: %w", topic, partition, err)
	}
	var size int64
	for i := len(bases) - 1; i >= 0; i-- {
		info, err := os.Stat(segmentName(dir, bases[i]))
		if err != nil {
			return 0, fmt.Errorf("measuring a segment of %s/%d: %w", topic, partition, err)
		}
		if size += info.Size(); size > limit && i < len(bases)-1 {
			return bases[i+1], nil
		}
	}
	return 0, nil
}
