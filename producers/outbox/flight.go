package outbox

import (
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// flight is a queue of the records that the client has, in the order in which it got them.
type flight struct {
	records []*record
	head    int
	// bytes is their weight.
	bytes int
}

func (f *flight) len() int        { return len(f.records) - f.head }
func (f *flight) oldest() *record { return f.records[f.head] }
func (f *flight) all() []*record  { return f.records[f.head:] }

func (f *flight) push(r *record) {
	if f.head > 1024 && f.head > len(f.records)/2 {
		n := copy(f.records, f.records[f.head:])
		clear(f.records[n:])
		f.records, f.head = f.records[:n], 0
	}
	f.records = append(f.records, r)
	f.bytes += r.weight()
}

func (f *flight) pop() {
	f.bytes -= f.records[f.head].weight()
	f.records[f.head] = nil
	f.head++
}

// landed reports whether the client has passed back every record.
func (f *flight) landed() bool {
	for _, r := range f.all() {
		if !r.done.Load() {
			return false
		}
	}
	return true
}

// appendEventID appends the event id of a tick.
func appendEventID(ids [][]byte, r *record) [][]byte {
	var raw eventsv1.RawRecord
	if r.topic != topicTicks || raw.UnmarshalVT(r.kgo.Value) != nil || raw.GetTick() == nil {
		return ids
	}
	return append(ids, raw.GetTick().EventId)
}
