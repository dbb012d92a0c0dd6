package processors

import (
	"encoding/binary"
	"testing"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Each id is known for the span since it was last seen, whether it comes once, again or often, and whatever came before the first clock.
func TestEventIDsAreKnownForASpan(t *testing.T) {
	r := streamtest.Rand(t)
	const span = 50
	ids, last := NewEventIDs(), map[schemas.EventID]int64{}
	now := int64(0)
	made := 0
	for step := range 20_000 {
		if step >= 100 && r.IntN(5) == 0 { // a clock
			begun := now > 0
			now += 1 + r.Int64N(20)
			if !begun {
				ids.Begin(now)
				for id := range last {
					last[id] = now
				}
			}
			before := ids.added
			ids.Forget(now - span)
			if ids.added < before {
				made++
			}
			if ids.added > 4*len(ids.ids)+1000 {
				t.Fatalf("step %d: the map of %d ids got %d", step, len(ids.ids), ids.added)
			}
			for id, at := range last {
				if at < now-span {
					delete(last, id)
				}
			}
		}
		var id schemas.EventID
		binary.BigEndian.PutUint64(id[8:], r.Uint64N(200))
		_, want := last[id]
		last[id] = now
		if got := ids.Add(id, now); got != want {
			t.Fatalf("step %d at %d: %x is known: %v, want %v", step, now, id, got, want)
		}
		if len(ids.ids) != len(last) {
			t.Fatalf("step %d at %d: %d ids are held, want %d", step, now, len(ids.ids), len(last))
		}
	}
	if made < 2 {
		t.Errorf("the map was made again %d times", made)
	}
}

func BenchmarkEventIDs(b *testing.B) {
	const perClock, clocks = 100, 2_700 // as a partition of the demo's raw ticks has them in three minutes
	ids := NewEventIDs()
	var id schemas.EventID
	n := uint64(0)
	for i := range int64(clocks) {
		for range perClock {
			n++
			binary.LittleEndian.PutUint64(id[:], n*0x9e3779b97f4a7c15)
			ids.Add(id, i)
		}
	}
	at := int64(clocks)
	b.ReportAllocs()
	for b.Loop() {
		if n++; n%perClock == 0 {
			at++
			ids.Forget(at - clocks)
		}
		binary.LittleEndian.PutUint64(id[:], n*0x9e3779b97f4a7c15)
		ids.Add(id, at)
	}
}
