package outbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// recordOverhead is about what a record costs in memory in addition to its bytes, in the writer and in the client.
const recordOverhead = 512

// keyPartitioner is Kafka's default for records with a key: murmur2 of the key bytes.
var keyPartitioner = kgo.StickyKeyPartitioner(nil).ForTopic("")

// Topics of the outbox, as a frame names them.
const (
	topicTicks = iota
	topicDead
	topicCount
)

var partitionCounts = [topicCount]int32{partitions(schemas.TopicTicksRaw), partitions(schemas.TopicTicksRawDead)}

func partitions(name string) int32 {
	t, err := schemas.TopicNamed(name)
	if err != nil {
		panic(err)
	}
	return t.Partitions
}

var topicNames = [topicCount]string{schemas.TopicTicksRaw, schemas.TopicTicksRawDead}

// record is one log record on its way: in the queue, in the spool or in flight to the broker.
// Up to delivery it belongs to whoever holds it; done and err pass it back to the dispatcher.
type record struct {
	kgo   kgo.Record
	topic uint8
	// partition is kept here too: the client may write to its own while others read.
	partition int32
	// round means that with this record every source has written the clock of its timestamp.
	round bool
	// at is the log time, with all digits: the client cuts that of its record to milliseconds.
	at    time.Time
	epoch int64
	// buf holds key and value, and is used again with the record.
	buf []byte

	// sent is when the client got it.
	sent time.Time
	// end is where it ends in the spool; zero if it is not there.
	end spoolPosition

	// promise is the client's way to pass the record back: it sets err, then done, then signals wake.
	promise func(*kgo.Record, error)
	wake    chan<- struct{}
	done    atomic.Bool
	err     error
}

// records saves an allocation or three per tick; a record comes back once it was acknowledged.
var records = sync.Pool{New: func() any {
	r := new(record)
	r.promise = func(_ *kgo.Record, err error) {
		wake := r.wake // once it is done the record is not ours
		r.err = err
		r.done.Store(true)
		signal(wake)
	}
	return r
}}

// takeRecord returns a record whose buf has the given capacity and no bytes.
func takeRecord(size int) *record {
	r := records.Get().(*record)
	if cap(r.buf) < size {
		r.buf = make([]byte, 0, size)
	}
	r.buf = r.buf[:0]
	return r
}

func (r *record) recycle() {
	r.kgo = kgo.Record{}
	r.topic, r.partition, r.round, r.at, r.epoch = 0, 0, false, time.Time{}, 0
	r.sent, r.end, r.wake, r.err = time.Time{}, spoolPosition{}, nil, nil
	r.done.Store(false)
	records.Put(r)
}

// address fills in the client's record from key and value, which are parts of buf.
func (r *record) address(topic uint8, partition int32, key, value []byte) {
	r.topic, r.partition = topic, partition
	r.kgo.Topic, r.kgo.Partition = topicNames[topic], partition
	r.kgo.Key, r.kgo.Value = key, value
	r.kgo.Timestamp = r.at
}

// addressByKey is address with the partition that the key falls on.
func (r *record) addressByKey(topic uint8, key, value []byte) {
	r.address(topic, 0, key, value)
	r.partition = int32(keyPartitioner.Partition(&r.kgo, int(partitionCounts[topic])))
	r.kgo.Partition = r.partition
}

func (r *record) weight() int { return recordOverhead + len(r.kgo.Key) + len(r.kgo.Value) }

// loss is what a gap in this record's place reports of it, and how many messages are lost
// with it. It is nil for a clock, which needs no gap: a later clock replaces it.
func (r *record) loss() (l *lost, messages uint64) {
	if r.topic == topicDead {
		var d eventsv1.DeadRecord
		if d.UnmarshalVT(r.kgo.Value) != nil || d.Letter == nil {
			return nil, 0
		}
		source, at := d.Letter.Source, r.at.UnixNano()
		return &lost{producer: source, epoch: r.epoch, venue: source, from: at, to: at, missed: 1}, 1
	}
	var raw eventsv1.RawRecord
	if raw.UnmarshalVT(r.kgo.Value) != nil {
		return nil, 0
	}
	switch body := raw.Body.(type) {
	case *eventsv1.RawRecord_Tick:
		at := body.Tick.IngestTime
		return &lost{raw.Producer, raw.Epoch, body.Tick.Venue, at, at, 1}, 1
	case *eventsv1.RawRecord_Gap:
		g := body.Gap
		return &lost{raw.Producer, raw.Epoch, g.Venue, g.FromTime, g.ToTime, g.Missed}, 0
	}
	return nil, 0
}
