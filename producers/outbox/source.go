package outbox

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// maxDeadPayload is how much of a refused frame is kept.
	maxDeadPayload = 64 << 10
	// maxDeadContext bounds the connection state kept with it: with less than all of it the frame
	// could be decoded wrongly, so a larger one is left out whole.
	maxDeadContext = 256 << 10
	// MaxDeadDetail is far longer than any error of a decoder that does not quote its input.
	MaxDeadDetail = 4 << 10
	// maxRecord keeps every record far below the 1 MB that brokers accept by default. No real tick
	// comes near: it would be one of a symbol hundreds of kilobytes long.
	maxRecord = 512 << 10
)

// source is the outbox of one producer. Its mutex is the queue's.
type source struct {
	writer   *Writer
	producer string
	epoch    int64
	// prefix is the encoding of the first two fields of every RawRecord of this producer.
	prefix []byte
	// lastClock is the newest clock in the queue, Unix nanoseconds.
	lastClock int64
}

func newSource(w *Writer, producer string, epoch int64) *source {
	return &source{writer: w, producer: producer, epoch: epoch, prefix: rawPrefix(producer, epoch)}
}

func rawPrefix(producer string, epoch int64) []byte {
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendString(b, producer)
	b = protowire.AppendTag(b, 2, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(epoch))
}

// Fields of RawRecord's body.
const (
	bodyTick  = 3
	bodyClock = 4
	bodyGap   = 5
)

// Message is what vtprotobuf generates, as far as encoding goes.
type Message interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
}

// appendRaw appends a RawRecord. Writing its two levels here saves allocating the outer message for every tick.
func appendRaw(b, prefix []byte, field protowire.Number, body Message) []byte {
	size := body.SizeVT()
	b = append(b, prefix...)
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	start := len(b)
	b = append(b, make([]byte, size)...)
	// The only error is a buffer whose size differs from SizeVT.
	if _, err := body.MarshalToSizedBufferVT(b[start:]); err != nil {
		panic(err)
	}
	return b
}

// rawOverhead is more than the prefix's and the body's tags and lengths take.
const rawOverhead = 32

func encodeTick(r *record, s *source, t *eventsv1.Tick) {
	r.buf = append(r.buf[:0], t.Venue...)
	r.buf = append(r.buf, '|')
	r.buf = append(r.buf, t.Base...)
	key := len(r.buf)
	r.buf = appendRaw(r.buf, s.prefix, bodyTick, t)
	r.at, r.epoch = time.Unix(0, t.IngestTime), s.epoch
	r.addressByKey(topicTicks, r.buf[:key:key], r.buf[key:])
}

// gapRecord returns the record of a gap, on the partition of its venue.
func gapRecord(producer string, epoch int64, at time.Time, gap *eventsv1.Gap) *record {
	r := takeRecord(gap.SizeVT() + len(gap.Venue) + len(producer) + rawOverhead)
	r.buf = append(append(r.buf, gap.Venue...), '|')
	key := len(r.buf)
	r.buf = appendRaw(r.buf, rawPrefix(producer, epoch), bodyGap, gap)
	r.at, r.epoch = at, epoch
	r.addressByKey(topicTicks, r.buf[:key:key], r.buf[key:])
	return r
}

// Tick hands over one tick. A tick that was read before the source's last clock record, and is handed
// over after it, gets the next nanosecond as its ingest time: readers trust that clock.
func (s *source) Tick(t *eventsv1.Tick) {
	size := t.SizeVT() + len(t.Venue) + len(t.Base) + len(s.prefix) + rawOverhead
	if size > maxRecord {
		s.writer.stats.dropped.Add(1)
		s.Gap(&eventsv1.Gap{Reason: reasonOverflow, Venue: s.producer, FromTime: t.IngestTime, ToTime: t.IngestTime, Missed: 1})
		return
	}
	r := takeRecord(size)
	encodeTick(r, s, t)
	q := s.writer.queue
	if !q.lock() {
		s.writer.refuse(r)
		return
	}
	if t.IngestTime <= s.lastClock {
		t.IngestTime = s.lastClock + 1
		encodeTick(r, s, t)
	}
	q.add(r)
	q.mu.Unlock()
	s.writer.stats.accepted.Add(1)
}

// TrimLetter cuts what a dead letter keeps to its bounds.
func TrimLetter(letter *eventsv1.DeadLetter) {
	if len(letter.Payload) > maxDeadPayload {
		letter.Payload, letter.Truncated = letter.Payload[:maxDeadPayload], true
	}
	if len(letter.Context) > maxDeadContext {
		letter.Context = nil
	}
	if len(letter.Detail) > MaxDeadDetail {
		letter.Detail = letter.Detail[:MaxDeadDetail]
	}
}

// Dead hands over a refused frame, of which it keeps the first 64 kB.
func (s *source) Dead(letter *eventsv1.DeadLetter) {
	TrimLetter(letter)
	dead := &eventsv1.DeadRecord{Letter: letter}
	size := dead.SizeVT()
	r := takeRecord(size + len(letter.Source))
	r.buf = append(r.buf, letter.Source...)
	key := len(r.buf)
	r.buf = r.buf[:key+size]
	if _, err := dead.MarshalToSizedBufferVT(r.buf[key:]); err != nil {
		panic(err) // see appendRaw
	}
	r.at, r.epoch = time.Unix(0, letter.IngestTime), s.epoch
	if letter.IngestTime == 0 {
		r.at = s.writer.clock.Now()
	}
	r.addressByKey(topicDead, r.buf[:key:key], r.buf[key:])
	s.put(r)
}

// Gap records that messages are missing. Its log time is its end, else now.
func (s *source) Gap(gap *eventsv1.Gap) {
	at := time.Unix(0, gap.ToTime)
	if gap.ToTime == 0 {
		at = s.writer.clock.Now()
	}
	s.put(gapRecord(s.producer, s.epoch, at, gap))
}

func (s *source) put(r *record) {
	q := s.writer.queue
	if !q.lock() {
		s.writer.refuse(r)
		return
	}
	q.add(r)
	q.mu.Unlock()
	s.writer.stats.accepted.Add(1)
}

// clock writes the source's clock into every partition. Round marks the last of all sources.
func (s *source) putClock(now time.Time, round bool) {
	at := now.UnixNano()
	clock := &eventsv1.Clock{Time: at}
	value := appendRaw(nil, s.prefix, bodyClock, clock)
	q := s.writer.queue
	if !q.lock() {
		return
	}
	defer q.mu.Unlock()
	if at <= s.lastClock {
		return // the machine's clock was set back; readers keep the greatest anyway
	}
	s.lastClock = at
	n := partitionCounts[topicTicks]
	for p := range n {
		r := takeRecord(0)
		r.at, r.epoch = now, s.epoch
		r.round = round && p == n-1
		r.address(topicTicks, p, nil, value)
		q.add(r)
	}
}
