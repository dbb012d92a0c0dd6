package ws

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// A replay sends what one would have received who listened in that time, once each and in order, however it is cut into
// connections, from memory or from the store; nothing comes before its clock is there, and it ends where it should or goes on live.
func TestReplaysSendThePastOnce(t *testing.T) {
	seed := rand.Uint64()
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	ended, live := 0, 0
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			if replayRound(t, seed, uint64(round)) {
				ended++
			} else {
				live++
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
	if ended == 0 || live == 0 {
		t.Errorf("seed %d: %d replays ended and %d came to the present, want some of each", seed, ended, live)
	}
}

func replayRound(t *testing.T, seed, round uint64) (ended bool) {
	rng := rand.New(rand.NewPCG(seed, round))
	coins := scriptCoins(t)
	log := newWrittenLog(rng, coins)
	first := time.Now().Unix() - 120
	second := first
	step := func() {
		second++
		log.second(second, []float64{0, 0.3}[rng.IntN(2)])
	}
	for second < time.Now().Unix() {
		step()
	}
	r := newReplica(t, log, coins, []int{priceBytes * 60, 1 << 20}[rng.IntN(2)])
	defer r.stop()
	live := func() {
		step()
		log.store(true)
		r.follow(t, true)
		time.Sleep(time.Second)
	}
	live() // so that every partition is known
	for !r.hub.begun() {
		live()
	}
	asks := message{Type: "subscribe", ID: "r", From: query.FormatTime((first + 5 + rng.Int64N(100)) * int64(time.Second))}
	from, _ := query.ParseTime(asks.From)
	speed := []float64{0, 1.5, 4, 60}[rng.IntN(4)]
	if speed > 0 {
		asks.Speed = &speed
	}
	until := position(nil)
	if rng.IntN(2) == 0 {
		to := from.Unix() + rng.Int64N(60)
		asks.To = query.FormatTime(to * int64(time.Second))
		until = position{to, to, to, to, to, to, to, to}
	}
	client := &lineReader{received: map[string][]publishedPrice{}, kinds: map[string]int{}}
	begun := time.Now()
	early := ""
	take := func(line []byte) {
		client.line(line)
		if speed == 0 || client.count("live") > 0 || !strings.Contains(string(line), `"price_update"`) {
			return
		}
		var at int64
		client.mu.Lock()
		for _, all := range client.received {
			at = max(at, all[len(all)-1].at)
		}
		client.mu.Unlock()
		if clock := float64(from.Unix()) + time.Since(begun).Seconds()*speed; float64(at/1000) > clock+0.001 {
			early = fmt.Sprintf("a price of second %d came when the clock was at %.2f", at/1000, clock)
		}
	}
	var cut func()
	connect := func() {
		next := asks
		client.mu.Lock()
		cursor := client.cursor
		client.mu.Unlock()
		if cursor != "" {
			next.From, next.Cursor = "", cursor
			begun = time.Now()
			_, at, err := parseCursor(cursor, 8)
			if err != nil {
				t.Fatal(err)
			}
			from = time.Unix(at.newest(), 0)
		}
		req, err := r.hub.request(&next)
		if err != nil {
			t.Fatal(err)
		}
		if !req.over() {
			cut = readLines(r.hub, &req, func() time.Duration { return 0 }, take)
		}
	}
	connect()
	done := func() bool { return client.count("replay_end") > 0 || until == nil && client.count("live") > 0 }
	for i := 0; i < 3000 && !done(); i++ {
		live()
		synctest.Wait()
		if cut != nil && rng.IntN(20) == 0 && !done() {
			cut()
			cut = nil
			connect()
		}
	}
	for range 3 {
		live()
	}
	synctest.Wait()
	if cut != nil {
		cut()
	}
	if !done() {
		t.Errorf("the replay %+v at speed %v came to no end: %v", asks, speed, client.kinds)
	}
	if early != "" {
		t.Error(early)
	}
	begin, _ := query.ParseTime(asks.From)
	b := begin.Unix() - 1
	after := position{b, b, b, b, b, b, b, b}
	if until == nil {
		_, until = client.span()
	}
	want := log.want(after, until, func(id string) bool {
		coin, _ := coins.ByID(id)
		return r.hub.all.has(coin.Rank)
	})
	for _, coin := range coins.All() {
		if got := client.received[coin.ID]; fmt.Sprint(got) != fmt.Sprint(want[coin.ID]) {
			t.Errorf("%s: got %v, want %v", coin.ID, got, want[coin.ID])
		}
	}
	for _, fault := range client.faults {
		t.Error(fault)
	}
	return asks.To != ""
}

// What a replay is asked for badly names what is wrong with it.
func TestReplaysAreAskedForPlainly(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.auth = query.AuthOpen })
	number := func(n float64) *float64 { return &n }
	for want, m := range map[string]message{
		"from must be an ISO 8601 time":           {From: "yesterday"},
		"from must not lie in the future":         {From: "2261-01-01"},
		"to must be an ISO 8601 time":             {From: "2026-01-01", To: "later"},
		"to must not lie before from":             {From: "2026-01-02", To: "2026-01-01"},
		"speed must be a number from 0.1 to 3600": {From: "2026-01-01", Speed: number(0)},
		"from must be given with to and speed":    {Speed: number(2)},
		"delivery must be all, or left out":       {From: "2026-01-01", Delivery: deliveryLatest},
		"from belongs to subscribe":               {From: "2026-01-01", Type: "unsubscribe"},
		"from must be left out with a cursor":     {From: "2026-01-01", Cursor: cursorOf(w.hub.prices.identity(), position{1, 1, 1, 1, 1, 1, 1, 1})},
	} {
		if m.Type == "" {
			m.Type = "subscribe"
		}
		if _, wrong := w.hub.request(&m); len(wrong) == 0 || !strings.HasPrefix(wrong.text(), want) {
			t.Errorf("%+v: got %q, want %s…", m, wrong.text(), want)
		}
	}
	if why := (&request{replay: &replay{first: 1}}).beyond(&limits.Plan{Name: "free", HistoryDays: 7}, time.Unix(8*86_400, 0)); !strings.HasPrefix(why, "from must be 1970-01-02T00:00:00.000Z or later") {
		t.Errorf("before the plan: got %q", why)
	}
}

// A replay ends with what it was of: whoever chooses the present, or other channels, leaves none behind.
func TestReplaysEndWithTheirFeeds(t *testing.T) {
	market := &marketLog{name: "market"}
	w := newFixture(t, func(s *setup) { s.auth, s.channels = query.AuthOpen, market.channels() })
	for range 3 {
		w.price(&eventsv1.Price{CoinId: "bitcoin", Source: "kraken", Price: 100, Volume24H: 5})
		w.tick()
	}
	market.minute(t, w.hub, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), 1, 1)
	for _, chosen := range []string{`"delivery":"latest"`, `"channels":["global"]`, `"from":"2026-03-01T10:00:01Z"`} {
		for _, end := range []string{"", "&to=2026-03-01T10:00:02Z"} {
			c := w.open(dialing{query: "?from=2026-03-01T10:00:01Z&speed=0.1" + end})
			c.until("resumed")
			if n := w.hub.paced.Load(); n != 1 {
				t.Fatalf("%d replays with a speed are counted, want 1", n)
			}
			c.send(`{"type":"subscribe","id":"s",` + chosen + `}`)
			c.until("subscribed")
			w.eventually("no replay with a speed is counted", func() bool { return w.hub.paced.Load() == 0 })
			c.send(`{"type":"ping","id":"p"}`)
			c.until("pong")
		}
	}
}
