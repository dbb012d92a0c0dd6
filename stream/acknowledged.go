package stream

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream/faults"
)

// acknowledged notes for a test of crashes what brokers acknowledged to any client of this process.
type acknowledged struct{}

var _ kgo.HookProduceRecordUnbuffered = acknowledged{}

// OnProduceRecordUnbuffered is called before whoever wrote the record learns of it.
func (acknowledged) OnProduceRecordUnbuffered(rec *kgo.Record, err error) {
	if err == nil && rec.Offset >= 0 {
		faults.AckedRecord(rec.Topic, rec.Partition, rec.Offset, rec.Value)
	}
}
