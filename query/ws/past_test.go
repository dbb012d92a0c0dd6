package ws

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// handoff is a log that one replica, whose memory is small, has followed, and a client that left near its begin.
type handoff struct {
	log    *writtenLog
	at     *replica
	client *lineReader
	second int64
}

func newHandoff(t *testing.T, bytes int) *handoff {
	rng := rand.New(rand.NewPCG(1, 1))
	coins := scriptCoins(t)
	h := &handoff{log: newWrittenLog(rng, coins), client: &lineReader{received: map[string][]publishedPrice{}, kinds: map[string]int{}}, second: time.Now().Unix()}
	h.at = newReplica(t, h.log, coins, bytes)
	h.pass(t, 3)
	cut := h.connect()
	h.pass(t, 2)
	cut()
	if h.client.cursor == "" || len(h.client.received) == 0 {
		t.Fatalf("received nothing: %v", h.client.kinds)
	}
	return h
}

func (h *handoff) connect() (cut func()) {
	return h.client.connect(h.at.hub, request{delivery: deliveryAll, silent: true}, func() time.Duration { return 0 })
}

// pass writes seconds of the log, which the replica follows.
func (h *handoff) pass(t *testing.T, seconds int) {
	for range seconds {
		h.second++
		h.log.second(h.second, 0)
		h.at.follow(t, true)
		time.Sleep(time.Second)
	}
}

// equal checks that the client received exactly what the log holds since the first cursor.
func (h *handoff) equal(t *testing.T) {
	t.Helper()
	after, until := h.client.span()
	if end := h.at.hub.prices.heads(); until.behind(end) {
		t.Errorf("received up to %v, want %v; last %s", until, end, h.client.last)
	}
	h.once(t, after, until)
}

// once checks that the client received exactly what the log holds after one position and up to another.
func (h *handoff) once(t *testing.T, after, until position) {
	t.Helper()
	for id, want := range h.log.want(after, until, func(id string) bool { return id != "sol-wormhole" }) {
		if got := h.client.received[id]; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
}

// Memory begins where the store ends: what lies between must be waited for, never passed over.
func TestTheHandoffWaitsForTheStore(t *testing.T) {
	for name, test := range map[string]struct {
		stall time.Duration
		store bool
		fails bool
		kind  string
	}{
		"the store has come so far":   {store: true, kind: "live"},
		"it comes within seconds":     {stall: 4 * time.Second, store: true, kind: "live"},
		"it does not advance":         {stall: 7 * time.Second, kind: "error"},
		"its ledger cannot be read":   {stall: 7 * time.Second, store: true, fails: true, kind: "error"},
		"it comes, but much too late": {stall: 7 * time.Second, store: true, kind: "error"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandoff(t, 20*priceBytes)
				defer h.at.stop()
				h.pass(t, 30)
				if test.stall == 0 {
					h.log.store(true)
				}
				if test.fails {
					h.log.mu.Lock()
					h.log.failed = errors.New("away")
					h.log.mu.Unlock()
				}
				cut := h.connect()
				time.Sleep(test.stall)
				if test.store {
					h.log.store(true)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if h.client.kinds[test.kind] == 0 || len(h.client.kinds) == 0 {
					t.Errorf("received %v, want %s; last %s", h.client.kinds, test.kind, h.client.last)
				}
				cut()
				// With the cursor it kept it lacks nothing when the store is there.
				h.log.mu.Lock()
				h.log.failed = nil
				h.log.mu.Unlock()
				h.log.store(true)
				cut = h.connect()
				time.Sleep(time.Second)
				cut()
				h.equal(t)
				if h.client.kinds["gap"] > 0 {
					t.Error("received a gap")
				}
			})
		})
	}
}

// A replica that has read nothing yet does not take a cursor for one from the future: its client is asked to come again.
func TestACursorWaitsUntilTheReplicaHasAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandoff(t, 1<<20)
		defer h.at.stop()
		other := newReplica(t, h.log, scriptCoins(t), 1<<20)
		defer other.stop()
		asks := request{delivery: deliveryAll, silent: true}
		pause := func() time.Duration { return 0 }
		cursor := h.client.asks(asks)
		cut := readLines(other.hub, &cursor, pause, h.client.line)
		synctest.Wait()
		cut()
		if other.hub.placed() || h.client.kinds["error"] != 1 || !bytes.Contains(h.client.last, []byte("try again")) {
			t.Errorf("received %v, last %s, want to try again", h.client.kinds, h.client.last)
		}
		// What is refused changes nothing: a feed that began without a position would be sent all that memory holds.
		s := newSubscriber(&admission{gate: lasting{}, caller: query.Caller{Plan: &limits.Plan{HistoryDays: 1}}}, nil, len(other.hub.known))
		other.hub.choose(s, &message{Type: "subscribe", Delivery: deliveryAll, Cursor: h.client.cursor})
		if s.feed != nil || s.waiting() != 1 {
			t.Errorf("refused, a subscriber has feed %v and %d messages, want none and the refusal", s.feed, s.waiting())
		}
		other.follow(t, true)
		time.Sleep(2 * time.Second)
		cut = h.client.connect(other.hub, asks, pause)
		synctest.Wait()
		cut()
		if !other.hub.placed() || h.client.kinds["resumed"] != 1 {
			t.Errorf("received %v, last %s, want that it goes on", h.client.kinds, h.client.last)
		}
	})
}

// lastGap is what a gap says.
type lastGap struct{ since, until int64 }

func gapOf(t *testing.T, line []byte) lastGap {
	var m struct{ Since, Until time.Time }
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatal(err)
	}
	return lastGap{m.Since.Unix(), m.Until.Unix()}
}

func TestWhatIsKeptNoLongerIsAGapAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandoff(t, 20*priceBytes)
		defer h.at.stop()
		h.pass(t, 60)
		h.log.store(true)
		_, left := h.client.span()
		h.log.mu.Lock()
		h.log.oldest = h.second - 30
		h.log.mu.Unlock()
		before := h.client.received
		h.client.received = map[string][]publishedPrice{}
		cut := h.connect()
		time.Sleep(2 * time.Second)
		cut()
		if want := (lastGap{left.oldest(), h.log.oldest - 1}); h.client.kinds["gap"] != 1 || gapOf(t, h.client.gap) != want {
			t.Errorf("received %v, gap %s, want %+v", h.client.kinds, h.client.gap, want)
		}
		after := make(position, 8)
		for i := range after {
			after[i] = h.log.oldest - 1
		}
		for id, want := range h.log.want(after, h.at.hub.prices.heads(), func(id string) bool { return id != "sol-wormhole" }) {
			if got := h.client.received[id]; !slices.Equal(got, want) {
				t.Errorf("%s after the gap: got %v, want %v (before it %v)", id, got, want, before[id])
			}
		}
	})
}

// A replay that was put in place, or a log set up again, has another past than the cursor is of.
func TestAnotherPastIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandoff(t, 1<<20)
		defer h.at.stop()
		h.log.mu.Lock()
		h.log.name = "second"
		h.log.mu.Unlock()
		h.pass(t, 10) // the hub looks every few seconds
		_, left := h.client.span()
		h.client.received = map[string][]publishedPrice{}
		cut := h.connect()
		synctest.Wait()
		h.pass(t, 2)
		cut()
		if want := (lastGap{left.oldest(), h.second - 2}); h.client.kinds["gap"] != 1 || gapOf(t, h.client.gap) != want {
			t.Errorf("received %v, gap %s, want %+v", h.client.kinds, h.client.gap, want)
		}
		if h.client.kinds[typeInitial] == 0 {
			t.Error("the present is not sent")
		}
		// It goes on from there, by a cursor of the new past.
		cut = h.connect()
		h.pass(t, 2)
		cut()
		if h.client.kinds["gap"] != 1 || h.client.kinds["live"] == 0 {
			t.Errorf("received %v, want no second gap", h.client.kinds)
		}
	})
}

// listed are the prices of a batch.
func listed(b batch) []pricePoint {
	if b.entries == nil {
		return nil
	}
	return b.entries.(pricePoints).list
}

// What memory holds is bounded, and all of its newest.
func TestTheRingHoldsTheNewestOfAllPartitions(t *testing.T) {
	coins := scriptCoins(t)
	log := newWrittenLog(rand.New(rand.NewPCG(3, 3)), coins)
	const most = 200
	line := newPriceLine(nil, 8, len(coins.All()), most*priceBytes)
	ring := line.ring
	written := make([]int, 8)
	all := newSelection(len(coins.All()))
	for _, coin := range coins.All() {
		all.add(coin.Rank)
	}
	for second := int64(1); second <= 300; second++ {
		log.second(second, 0.1)
		for p, records := range log.partitions {
			for ; written[p] < len(records); written[p]++ {
				rec := records[written[p]]
				if price := rec.GetPrice(); price != nil {
					coin, _ := coins.ByID(price.CoinId)
					line.apply(int32(p), coin.Rank, price)
				} else {
					ring.pulse(int32(p), rec.GetPulse().Now/int64(time.Second), int64(written[p]), false)
				}
			}
		}
		if ring.held > most {
			t.Fatalf("second %d: %d prices are held, want at most %d", second, ring.held, most)
		}
		floors, _ := ring.floors()
		heads := ring.heads()
		if second < 50 {
			continue
		}
		got := map[string][]publishedPrice{}
		for at := floors; at.behind(heads); {
			b, held := line.next(at, heads, wanted{coins: all})
			if !held {
				t.Fatalf("second %d: what is after the floors is not held", second)
			}
			for _, p := range listed(b) {
				id := coins.All()[p.rank-1].ID
				got[id] = append(got[id], publishedPrice{id, int64(p.second) * 1000, p.price})
			}
			at = b.after
		}
		for id, want := range log.want(floors, heads, func(string) bool { return true }) {
			if !slices.Equal(got[id], want) {
				t.Fatalf("second %d: %s after the floors: got %v, want %v", second, id, got[id], want)
			}
		}
	}
}

// A replica that has read less of the log than its client was sent by another one begins after what the client has, whatever the
// view of that log is called by now.
func TestAnotherPastSendsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandoff(t, 1<<20)
		behind := h.at
		defer behind.stop()
		h.at = newReplica(t, h.log, scriptCoins(t), 1<<20)
		defer h.at.stop()
		h.pass(t, 1)
		cut := h.connect()
		h.pass(t, 5)
		cut()
		h.log.mu.Lock()
		h.log.name = "second"
		h.log.mu.Unlock()
		time.Sleep(2 * identifyEvery)
		_, left := h.client.span()
		if !behind.hub.prices.heads().behind(left) {
			t.Fatalf("the replica has read up to %v, want less than the client has: %v", behind.hub.prices.heads(), left)
		}
		h.at = behind
		cut = h.connect()
		synctest.Wait()
		h.pass(t, 4)
		cut()
		if want := (lastGap{left.oldest(), left.newest()}); h.client.kinds["gap"] != 1 || gapOf(t, h.client.gap) != want {
			t.Errorf("received %v, gap %s, want %+v", h.client.kinds, h.client.gap, want)
		}
		after, until := h.client.span()
		if !left.behind(until) {
			t.Errorf("received up to %v, want more than %v", until, left)
		}
		h.once(t, after, until)
	})
}
