package venues

import (
	"strconv"
	"testing"
)

// What is added comes out once and in order, whether it is taken at once or many later, and what is being sent takes room.
func TestFramesComeOutInOrderAndTakeRoom(t *testing.T) {
	const limit = 2 * keptFrames
	f := newFrames(limit)
	var taken []message
	sent, added := 0, 0
	for _, n := range []int{1, 3, limit, 7, keptFrames + 1, 2} {
		room := limit
		if f.unsent() != 0 {
			t.Fatalf("got %d frames unsent, want none", f.unsent())
		}
		for range n {
			switch ok := f.add(message{bytes: strconv.AppendInt(nil, int64(added), 10)}); {
			case ok && room > 0:
				added++
				room--
			case ok || room > 0:
				t.Fatalf("got added %t with room for %d of %d", ok, room, limit)
			}
		}
		<-f.more
		taken = f.take(taken)
		if got := f.unsent(); got != len(taken) {
			t.Fatalf("got %d frames unsent, want the %d that were taken", got, len(taken))
		}
		if len(taken) == limit && f.add(message{}) {
			t.Fatal("got room while as many as there is room for are being sent")
		}
		for _, m := range taken {
			f.sent()
			if string(m.bytes) != strconv.Itoa(sent) {
				t.Fatalf("got frame %s, want %d", m.bytes, sent)
			}
			sent++
		}
	}
	if sent != added {
		t.Errorf("got %d frames, want %d", sent, added)
	}
	if len(f.more) != 0 {
		t.Error("got a token while nothing waits")
	}
}
