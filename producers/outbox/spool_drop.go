package outbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// dropOldest gives up the oldest segment that nobody began to read and puts gaps in its place. It
// returns false if there is none.
func (s *spool) dropOldest() (freed bool, err error) {
	oldest := -1
	for i, seg := range s.segments {
		if seg.number > s.reader.at.segment && (s.active == nil || i < len(s.segments)-1) {
			oldest = i
			break
		}
	}
	if oldest < 0 {
		return false, nil
	}
	first := s.segments[oldest]
	last := first
	if first.gaps {
		// The gaps of earlier drops are only summed up with those of the next segment.
		if oldest+1 >= len(s.segments) || s.active != nil && oldest+1 == len(s.segments)-1 {
			return false, nil
		}
		last = s.segments[oldest+1]
	}
	sums := droppedGaps{}
	dropped, err := s.sum(sums, first)
	if err == nil && last.number != first.number {
		var more uint64
		more, err = s.sum(sums, last)
		dropped += more
	}
	if err != nil {
		return false, fmt.Errorf("dropping segment %d: %w", last.number, err)
	}
	gaps := segment{number: first.number, covers: last.covers, gaps: true}
	if gaps.size, err = s.replace(gaps, sums.records()); err != nil {
		return false, fmt.Errorf("dropping segment %d: %w", last.number, err)
	}
	s.segments[oldest] = gaps
	if last.number != first.number {
		s.segments = append(s.segments[:oldest+1], s.segments[oldest+2:]...)
		if err := os.Remove(segmentName(s.dir, last.number)); err != nil {
			return false, fmt.Errorf("removing segment %d: %w", last.number, err)
		}
	}
	s.dropped += dropped
	return true, nil
}

// sum adds up what is lost with a segment.
func (s *spool) sum(sums droppedGaps, seg segment) (messages uint64, err error) {
	b, err := os.ReadFile(segmentName(s.dir, seg.number))
	if err != nil {
		return 0, fmt.Errorf("reading: %w", err)
	}
	b = b[min(segmentHeader, len(b)):min(seg.size, int64(len(b)))]
	for len(b) > 0 {
		r, n, err := decodeFrame(b)
		if err != nil {
			s.damaged += uint64(len(b))
			break
		}
		messages += sums.add(r)
		r.recycle()
		b = b[n:]
	}
	return messages, nil
}

// replace puts a segment of the given records in the place of the one with its number.
func (s *spool) replace(seg segment, rs []*record) (size int64, err error) {
	b := appendSegmentHeader(nil, seg.number, seg.covers)
	for _, r := range rs {
		b = appendFrame(b, r)
	}
	part := filepath.Join(s.dir, "gaps.part")
	f, err := os.Create(part)
	if err != nil {
		return 0, fmt.Errorf("creating gaps: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("writing gaps: %w", err)
	}
	if err := os.Rename(part, segmentName(s.dir, seg.number)); err != nil {
		return 0, fmt.Errorf("putting gaps in place: %w", err)
	}
	return int64(len(b)), s.syncDir()
}
