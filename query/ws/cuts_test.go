package ws

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// publishedPrice is one published price, as a client receives it.
type publishedPrice struct {
	coin  string
	at    int64 // Unix milliseconds
	price float64
}

// writtenLog is prices.v1 as a test writes it, and a store that follows it.
type writtenLog struct {
	rng   *rand.Rand
	coins []schemas.Coin
	name  string // of the log and of the view of it

	mu         sync.Mutex
	partitions [][]*eventsv1.PriceRecord
	// stored is up to where the store has each partition; oldest is the first second that it keeps.
	stored []int
	oldest int64
	failed error
}

func newWrittenLog(rng *rand.Rand, coins *schemas.CoinTable) *writtenLog {
	return &writtenLog{rng: rng, coins: coins.All(), name: "first", partitions: make([][]*eventsv1.PriceRecord, 8), stored: make([]int, 8)}
}

// partitionOf spreads coins as the key of a record does: one coin lies in one partition.
func partitionOf(coin schemas.Coin) int { return coin.Rank % 8 }

// second writes prices of a second of log time in the partitions that come to it, then their pulses.
func (l *writtenLog) second(second int64, late float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.partitions {
		if l.rng.Float64() < late {
			continue // it has none of this second's: the clock that drives it did not advance
		}
		for _, coin := range l.coins {
			if partitionOf(coin) != p || l.rng.Float64() < 0.6 {
				continue
			}
			price := &eventsv1.Price{CoinId: coin.ID, Symbol: coin.Symbol, Time: second * int64(time.Second), Price: float64(1 + l.rng.IntN(1000)), Source: "kraken", Volume24H: 5}
			if l.rng.Float64() < 0.05 {
				price.Price, price.Reason = 0, "no_fresh_inputs"
			}
			l.partitions[p] = append(l.partitions[p], &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: int32(p)}, Body: &eventsv1.PriceRecord_Price{Price: price}})
		}
		for range 1 + l.rng.IntN(2) { // a second one only moves the watermark
			pulse := &eventsv1.Pulse{Now: second*int64(time.Second) + l.rng.Int64N(int64(time.Second))}
			l.partitions[p] = append(l.partitions[p], &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: int32(p)}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}})
		}
	}
}

// store lets the store follow, to somewhere before the end of each partition, or to the end.
func (l *writtenLog) store(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, records := range l.partitions {
		if rest := len(records) - l.stored[p]; all {
			l.stored[p] = len(records)
		} else if rest > 0 {
			l.stored[p] += l.rng.IntN(rest + 1)
		}
	}
}

func (l *writtenLog) Identity(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name, nil
}

func (l *writtenLog) Materialized(context.Context) (map[int32]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[int32]int64{}
	for p, n := range l.stored {
		next[int32(p)] = int64(n)
	}
	return next, l.failed
}

func (l *writtenLog) Oldest(context.Context, time.Time) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldest, nil
}

func (l *writtenLog) Prices(_ context.Context, after, until int64, coins []string, most int, visit func(PastPrice)) error {
	l.mu.Lock()
	var found []PastPrice
	for p, records := range l.partitions {
		for _, rec := range records[:l.stored[p]] {
			price := rec.GetPrice()
			if price == nil || price.Reason != "" || coins != nil && !slices.Contains(coins, price.CoinId) {
				continue
			}
			if s := price.Time / int64(time.Second); s > after && s <= until && s >= l.oldest {
				found = append(found, PastPrice{CoinID: price.CoinId, Source: price.Source, Price: price.Price, Volume: price.Volume24H, Second: s, Partition: int32(p)})
			}
		}
	}
	l.mu.Unlock()
	slices.SortStableFunc(found, func(a, b PastPrice) int {
		if a.Second != b.Second {
			return int(a.Second - b.Second)
		}
		return strings.Compare(a.CoinID, b.CoinID)
	})
	for _, p := range found[:min(len(found), most)] {
		visit(p)
	}
	return nil
}

// replace puts another view of the log in place, as a replay does.
func (l *writtenLog) replace() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name += "'"
}

// want are the prices of some coins after one position and up to another, by coin.
func (l *writtenLog) want(after, until position, of func(string) bool) map[string][]publishedPrice {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]publishedPrice{}
	for p, records := range l.partitions {
		for _, rec := range records {
			price := rec.GetPrice()
			if price == nil || price.Reason != "" || !of(price.CoinId) {
				continue
			}
			if s := price.Time / int64(time.Second); s > after[p] && s <= until[p] {
				all[price.CoinId] = append(all[price.CoinId], publishedPrice{price.CoinId, price.Time / int64(time.Millisecond), price.Price})
			}
		}
	}
	return all
}

// replica is a hub that follows the log from some place on.
type replica struct {
	log  *writtenLog
	hub  *Hub
	next []int
	stop func()
}

func newReplica(t *testing.T, log *writtenLog, coins *schemas.CoinTable, bytes int) *replica {
	cfg := DefaultConfig()
	cfg.RingBytes = bytes
	cache := views.NewPriceCache(coins)
	name, _ := log.Identity(t.Context())
	hub, err := NewHub(cfg, Deps{Prices: cache, Catalog: views.NewCatalog(coins), Past: log, Identity: name, Waiting: func() string { return "" },
		Now: time.Now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{log: log, hub: hub, next: make([]int, 8)}
	log.mu.Lock()
	for p, records := range log.partitions {
		r.next[p] = max(0, len(records)-log.rng.IntN(40)) // in the middle of a second
	}
	log.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { _ = hub.Run(ctx); close(over) }()
	r.stop = func() { cancel(); <-over }
	return r
}

// follow reads on to somewhere before the end of each partition, or to the end.
func (r *replica) follow(t *testing.T, all bool) {
	for p := range r.next {
		r.log.mu.Lock()
		records := r.log.partitions[p]
		n := len(records) - r.next[p]
		if !all && r.log.rng.Float64() < 0.2 {
			n = r.log.rng.IntN(n + 1)
		}
		r.log.mu.Unlock()
		for range n {
			rec := views.TailRecord{Partition: int32(p), Offset: int64(r.next[p]), Marked: records[r.next[p]]}
			if err := r.hub.deps.Prices.Apply(rec); err != nil {
				t.Fatal(err)
			}
			if err := r.hub.Apply(rec); err != nil {
				t.Fatal(err)
			}
			r.next[p]++
		}
	}
}

// lasting is a gate whose keys never end.
type lasting struct{ Gate }

func (lasting) Valid(query.Caller, time.Time) bool { return true }

// lineReader is a client over lines of JSON that keeps what it received, over all its connections.
type lineReader struct {
	mu sync.Mutex
	// first and cursor are the first and the last that it received.
	first, cursor string
	received      map[string][]publishedPrice
	kinds         map[string]int
	faults        []string
	// last is the last line, gap the last that announced one, and gaps are all.
	last, gap []byte
	gaps      []lastGap
}

func (c *lineReader) line(line []byte) {
	var f struct {
		Type, Cursor, Reason string
		Since, Until         time.Time
		Data                 []struct {
			CoinID    string
			Price     float64
			Timestamp int64
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.Unmarshal(line, &f); err != nil {
		c.faults = append(c.faults, fmt.Sprintf("%v in %s", err, line))
		return
	}
	c.kinds[f.Type]++
	if f.Type == "resumed" && bytes.Contains(line, []byte(`"source":"store"`)) {
		c.kinds["resumed from the store"]++
	}
	c.last = append(c.last[:0], line...)
	if f.Type == "gap" {
		c.gap = bytes.Clone(line)
		c.gaps = append(c.gaps, lastGap{f.Since.Unix(), f.Until.Unix()})
		if f.Reason != gapOtherLog {
			c.faults = append(c.faults, fmt.Sprintf("received a gap: %s", line))
		}
	}
	if f.Type == typeUpdate {
		for _, e := range f.Data {
			c.received[e.CoinID] = append(c.received[e.CoinID], publishedPrice{e.CoinID, e.Timestamp, e.Price})
		}
	}
	if f.Cursor != "" {
		if c.first == "" {
			c.first = f.Cursor
		}
		c.cursor = f.Cursor
	}
}

// unexcused are prices that lie in no gap.
func (c *lineReader) unexcused(all []publishedPrice) []publishedPrice {
	return slices.DeleteFunc(slices.Clone(all), func(p publishedPrice) bool {
		return slices.ContainsFunc(c.gaps, func(g lastGap) bool { return p.at > g.since*1000 && p.at <= g.until*1000 })
	})
}

// later orders prices by time, and finds two of the same time out of order.
func later(a, b publishedPrice) int { return cmp.Or(cmp.Compare(a.at, b.at), -1) }

// count is how many messages of a type it received.
func (c *lineReader) count(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[kind]
}

// span is what it received: after one position and up to another; nil where it received no cursor.
func (c *lineReader) span() (after, until position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == "" {
		return nil, nil
	}
	for cursor, into := range map[string]*position{c.first: &after, c.cursor: &until} {
		_, at, err := parseCursor(cursor, 8)
		if err != nil {
			c.faults = append(c.faults, err.Error())
		}
		*into = at
	}
	if after == nil || until == nil { // one cursor is both
		after, until = position(slices.Concat(after, until)), position(slices.Concat(after, until))
	}
	return after, until
}

// connect opens a connection and returns what cuts it. Pause is how long the client rests between two reads. Where the server starts it
// is answered that.
func (c *lineReader) connect(h *Hub, asks request, pause func() time.Duration) (cut func()) {
	asks = c.asks(asks)
	if asks.from == nil && !h.begun() || asks.from != nil && !h.placed() {
		return func() {}
	}
	return readLines(h, &asks, pause, c.line)
}

// asks adds the client's cursor to a request.
func (c *lineReader) asks(of request) request {
	of.extended = true
	if c.cursor != "" {
		var err error
		if of.of, of.from, err = parseCursor(c.cursor, 8); err != nil {
			panic(err)
		}
	}
	return of
}

// readLines opens a connection to a hub, gives each line to take, and rests for pause after it. It returns what cuts the connection.
func readLines(h *Hub, asks *request, pause func() time.Duration, take func(line []byte)) (cut func()) {
	server, client := net.Pipe()
	s := newSubscriber(&admission{gate: lasting{}, caller: query.Caller{Plan: &limits.Plan{HistoryDays: 1}}}, server, len(h.known))
	s.form = formLines
	var both sync.WaitGroup
	both.Go(func() {
		h.pass(h.join(s, asks))
		_, _ = io.Copy(io.Discard, server) // until the client goes
		h.leave(s)
		s.retire()
	})
	both.Go(func() {
		in := bufio.NewReaderSize(client, 256)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				_ = client.Close() // what came of this line is lost
				return
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				take(line)
			}
			time.Sleep(pause())
		}
	})
	return func() { _ = client.Close(); both.Wait() }
}

// Whatever cuts a client's connections, however slow it reads, whichever replica it comes back to and however far the store
// has come: what it received is what it would have received on one connection, once each and in order. When a replay has replaced the
// view of the log there are gaps, and only in them it lacks something.
func TestAnyCutIntoConnectionsReceivesWhatOneWould(t *testing.T) {
	seed := rand.Uint64()
	rounds := 300
	if testing.Short() {
		rounds = 40
	}
	kinds := map[string]int{}
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) { cutRound(t, seed, uint64(round), kinds) })
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
	if testing.Short() {
		return // too few for each kind
	}
	for _, kind := range []string{"resumed", "live", typeUpdate, "heartbeat", "resumed from the store", "error"} {
		if kinds[kind] == 0 {
			t.Errorf("seed %d: %d rounds never came to %s", seed, rounds, kind)
		}
	}
	t.Logf("seed %d: %v", seed, kinds)
}

func cutRound(t *testing.T, seed, round uint64, kinds map[string]int) {
	rng := rand.New(rand.NewPCG(seed, round))
	coins := scriptCoins(t)
	log := newWrittenLog(rng, coins)
	bytes := []int{priceBytes * 12, priceBytes * 60, 1 << 20}[rng.IntN(3)]
	late := []float64{0, 0.1, 0.4}[rng.IntN(3)]
	stall := rng.IntN(3) == 0
	replaced := rng.IntN(3) == 0
	second := time.Now().Unix()
	step := func() {
		second++
		log.second(second, late)
	}
	for range 5 {
		step()
	}
	replicas := []*replica{newReplica(t, log, coins, bytes), newReplica(t, log, coins, bytes)}
	defer func() {
		for _, r := range replicas {
			r.stop()
		}
	}()
	var ranks []int
	for _, coin := range coins.All() {
		if rng.IntN(2) == 0 {
			ranks = append(ranks, coin.Rank)
		}
	}
	asks := request{delivery: deliveryAll, silent: rng.IntN(2) == 0, heartbeat: time.Second, ranks: ranks, named: len(ranks) > 0}
	wanted := func(id string) bool {
		coin, _ := coins.ByID(id)
		if asks.named {
			return slices.Contains(ranks, coin.Rank)
		}
		return replicas[0].hub.all.has(coin.Rank)
	}
	client := &lineReader{received: map[string][]publishedPrice{}, kinds: map[string]int{}}
	slow := time.Duration(rng.IntN(4)) * 300 * time.Millisecond
	pause := func() time.Duration { return slow }
	var cut func()
	for range 30 + rng.IntN(30) {
		step()
		if !stall || rng.IntN(8) == 0 {
			log.store(false)
		}
		if replaced && rng.IntN(12) == 0 {
			log.replace()
		}
		for i, r := range replicas {
			if rng.IntN(15) == 0 && cut == nil {
				r.stop()
				r = newReplica(t, log, coins, bytes)
				replicas[i] = r
			}
			if rng.IntN(4) > 0 { // else it falls behind the other one
				r.follow(t, false)
			}
		}
		time.Sleep(time.Duration(200+rng.IntN(1200)) * time.Millisecond)
		switch {
		case cut == nil && rng.IntN(3) > 0:
			cut = client.connect(replicas[rng.IntN(2)].hub, asks, pause)
		case cut != nil && rng.IntN(3) == 0:
			cut()
			cut = nil
		}
	}
	if cut != nil {
		cut()
	}
	// The log does not grow: all comes to its end.
	log.store(true)
	for _, r := range replicas {
		r.follow(t, true)
	}
	slow = 0
	end := replicas[0].hub.prices.heads()
	for range 30 {
		if _, at := client.span(); at != nil && !at.behind(end) {
			break
		}
		cut = client.connect(replicas[rng.IntN(2)].hub, asks, pause)
		time.Sleep(12 * time.Second)
		cut()
	}
	begun, at := client.span()
	if begun == nil {
		return // some partition never reported how far it was
	}
	if at.behind(end) {
		t.Errorf("received up to %v, want %v; last: %s", at, end, client.last)
	}
	for _, fault := range client.faults {
		t.Error(fault)
	}
	want := log.want(begun, at, wanted)
	for _, coin := range coins.All() {
		if got, want := client.received[coin.ID], want[coin.ID]; !slices.Equal(client.unexcused(got), client.unexcused(want)) || !slices.IsSortedFunc(got, later) {
			t.Errorf("%s since %v, gaps %v:\ngot  %v\nwant %v", coin.ID, begun, client.gaps, got, want)
		}
	}
	if client.kinds["gap"] > 0 && !replaced {
		t.Errorf("received a gap: %s", client.last)
	}
	for kind, n := range client.kinds {
		kinds[kind] += n
	}
}
