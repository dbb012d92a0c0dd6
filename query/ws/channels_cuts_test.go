package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// channelReplica is a hub that follows candles.v1 from some place on.
type channelReplica struct {
	hub  *Hub
	next []int
	stop func()
}

func newChannelReplica(t *testing.T, log *candleLog, rng *rand.Rand, bytes int) *channelReplica {
	cfg := DefaultConfig()
	cfg.ChannelBytes = bytes
	hub, err := NewHub(cfg, Deps{Prices: views.NewPriceCache(log.coins), Catalog: views.NewCatalog(log.coins), Channels: log.channels(), Waiting: func() string { return "" },
		Now: time.Now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := &channelReplica{hub: hub}
	for _, end := range log.ends() {
		r.next = append(r.next, max(0, end-rng.IntN(30))) // in the middle of a minute
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { _ = hub.Run(ctx); close(over) }()
	r.stop = func() { cancel(); <-over }
	return r
}

// follow reads on to somewhere before the end of each partition, or to the end.
func (r *channelReplica) follow(t *testing.T, log *candleLog, rng *rand.Rand, all bool) {
	to := log.ends()
	for p := range to {
		if n := to[p] - r.next[p]; !all && n > 0 && rng.Float64() < 0.2 {
			to[p] = r.next[p] + rng.IntN(n+1)
		}
	}
	log.follow(t, r.hub.ApplyTo(schemas.TopicCandles), r.next, to)
}

// channelReader is a client over lines of JSON that remembers what it was sent of each channel, over all its connections.
type channelReader struct {
	mu            sync.Mutex
	first, cursor string
	// sent are the candles by channel, each as it came, by coin and start; twice counts those that came again.
	sent   map[string]map[string]charted
	kinds  map[string]int
	faults []string
	last   []byte
	gaps   []string
	// schemas hold the first message of each type against the document.
	schemas *messageSchemas
}

type charted struct {
	Open, High, Low, Close, Volume, VolumeUsd float64
	Trades                                    uint64
	Complete                                  bool
}

func newChannelReader(schemas *messageSchemas) *channelReader {
	return &channelReader{schemas: schemas, sent: map[string]map[string]charted{}, kinds: map[string]int{}}
}

func (c *channelReader) line(line []byte) {
	var m struct {
		Type, Cursor, Channel, Source string
		Data                          []struct {
			CoinID, Timestamp string
			charted
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.Unmarshal(line, &m); err != nil {
		c.faults = append(c.faults, fmt.Sprintf("%v in %s", err, line))
		return
	}
	if c.kinds[m.Type]++; c.kinds[m.Type] == 1 && len(line) > 0 {
		if err := c.schemas.fault(string(line)); err != nil {
			c.faults = append(c.faults, err.Error())
		}
	}
	if m.Source == "store" {
		c.kinds["resumed from the store"]++
	}
	c.last = bytes.Clone(line)
	if m.Type == "gap" {
		c.gaps = append(c.gaps, string(line))
	}
	if m.Type == "candle_update" {
		if c.sent[m.Channel] == nil {
			c.sent[m.Channel] = map[string]charted{}
		}
		for _, e := range m.Data {
			key := e.CoinID + " " + e.Timestamp
			if _, twice := c.sent[m.Channel][key]; twice {
				c.faults = append(c.faults, m.Channel+" sent twice: "+key)
			}
			c.sent[m.Channel][key] = e.charted
		}
	}
	if m.Cursor != "" {
		if c.first == "" {
			c.first = m.Cursor
		}
		c.cursor = m.Cursor
	}
}

// span is what it was sent of a channel: after one position and up to another; nil where it had no cursor.
func (c *channelReader) span(h *Hub, code byte) (after, until position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == "" {
		return nil, nil
	}
	for cursor, into := range map[string]*position{c.first: &after, c.cursor: &until} {
		_, places, err := parseCursors(cursor, h.partitionsOf)
		if err != nil {
			c.faults = append(c.faults, err.Error())
		}
		*into = places[code]
	}
	if after == nil || until == nil { // one cursor is both
		after, until = position(slices.Concat(after, until)), position(slices.Concat(after, until))
	}
	return after, until
}

// connect opens a connection and returns what cuts it. Pause is how long the client rests between two reads.
func (c *channelReader) connect(t *testing.T, h *Hub, asks request, pause func() time.Duration) (cut func()) {
	asks.extended = true
	if err := h.nameChannels(&asks, []string{"candles:1m", "candles:5m"}); err != nil {
		t.Fatal(err)
	}
	for _, of := range asks.channels {
		if !of.heads().whole() {
			return func() {} // it is answered that the server starts
		}
	}
	if c.cursor != "" {
		if err := h.readCursor(&asks, c.cursor); err != nil {
			t.Fatal(err)
		}
	}
	return readLines(h, &asks, pause, c.line)
}

// equal reports whether the client was sent exactly what the log holds between its first and its last cursor.
func (c *channelReader) equal(t *testing.T, log *candleLog, h *Hub, wanted func(coinID string) bool) {
	t.Helper()
	for name, of := range map[string]struct {
		code byte
		step time.Duration
	}{"candles:1m": {1, time.Minute}, "candles:5m": {2, 5 * time.Minute}} {
		after, until := c.span(h, of.code)
		if after == nil {
			return
		}
		want := map[string]charted{}
		for p, records := range log.partitions {
			for _, candle := range joined(records, of.step) {
				if end := candle.Start.Add(of.step).Unix(); wanted(candle.coin) && end > after[p] && end <= until[p] {
					want[candle.coin+" "+query.FormatTime(candle.Start.UnixNano())] = charted{candle.Open, candle.High, candle.Low, candle.Close,
						candle.Volume.InexactFloat64(), candle.VolumeUSD, candle.Trades, candle.Minutes == int(of.step/time.Minute)}
				}
			}
		}
		got := c.sent[name]
		for key, candle := range want {
			if got[key] != candle {
				t.Errorf("%s %s: got %+v, want %+v", name, key, got[key], candle)
			}
		}
		for key := range got {
			if _, known := want[key]; !known {
				t.Errorf("%s %s: got %+v, want none", name, key, got[key])
			}
		}
	}
	for _, fault := range c.faults {
		t.Error(fault)
	}
}

// Whatever cuts a client's connections, whichever replica it comes back to and however far the store has come: of each channel
// it is sent every candle once.
func TestChannelsResumeAtAnyCut(t *testing.T) {
	seed := rand.Uint64()
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	kinds := map[string]int{}
	schemas := newMessageSchemas(t, documented(t).document())
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) { channelRound(t, seed, uint64(round), kinds, schemas) })
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
	if testing.Short() {
		return // too few for each kind
	}
	for _, kind := range []string{"resumed", "live", "candle_update", "heartbeat", "resumed from the store"} {
		if kinds[kind] == 0 {
			t.Errorf("seed %d: %d rounds never came to %s", seed, rounds, kind)
		}
	}
	t.Logf("seed %d: %v", seed, kinds)
}

func channelRound(t *testing.T, seed, round uint64, kinds map[string]int, schemas *messageSchemas) {
	rng := rand.New(rand.NewPCG(seed, round))
	log := newCandleLog(scriptCoins(t))
	bytes := []int{priceBytes * 40, priceBytes * 400, 1 << 20}[rng.IntN(3)]
	late := []float64{0, 0.1, 0.4}[rng.IntN(3)]
	stall := rng.IntN(3) == 0
	end := time.Now().UTC().Truncate(time.Minute).Add(time.Duration(rng.IntN(5)) * time.Minute)
	step := func() {
		end = end.Add(time.Minute)
		log.minute(rng, end, late)
	}
	for range 5 {
		step()
	}
	replicas := []*channelReplica{newChannelReplica(t, log, rng, bytes), newChannelReplica(t, log, rng, bytes)}
	defer func() {
		for _, r := range replicas {
			r.stop()
		}
	}()
	var ranks []int
	for _, coin := range log.coins.All() {
		if rng.IntN(2) == 0 {
			ranks = append(ranks, coin.Rank)
		}
	}
	asks := request{heartbeat: time.Second, ranks: ranks, named: len(ranks) > 0}
	wanted := func(id string) bool {
		coin, _ := log.coins.ByID(id)
		if asks.named {
			return slices.Contains(ranks, coin.Rank)
		}
		return replicas[0].hub.all.has(coin.Rank)
	}
	client := newChannelReader(schemas)
	slow := time.Duration(rng.IntN(4)) * 300 * time.Millisecond
	pause := func() time.Duration { return slow }
	var cut func()
	for range 20 + rng.IntN(30) {
		step()
		if !stall || rng.IntN(8) == 0 {
			log.store(rng, false)
		}
		for i, r := range replicas {
			if rng.IntN(15) == 0 && cut == nil {
				r.stop()
				r = newChannelReplica(t, log, rng, bytes)
				replicas[i] = r
			}
			r.follow(t, log, rng, false)
		}
		time.Sleep(time.Duration(200+rng.IntN(1200)) * time.Millisecond)
		switch {
		case cut == nil && rng.IntN(3) > 0:
			cut = client.connect(t, replicas[rng.IntN(2)].hub, asks, pause)
		case cut != nil && rng.IntN(3) == 0:
			cut()
			cut = nil
		}
	}
	if cut != nil {
		cut()
	}
	// Each partition has another minute, without which a replica that began at its end would not know of it. Then all comes to the end.
	end = end.Add(time.Minute)
	log.minute(rng, end, 0)
	log.store(rng, true)
	for _, r := range replicas {
		r.follow(t, log, rng, true)
	}
	slow = 0
	hub := replicas[0].hub
	for range 20 {
		behind := false
		for _, of := range hub.channels[:2] {
			_, at := client.span(hub, of.code())
			behind = behind || at == nil || at.behind(of.heads())
		}
		if !behind {
			break
		}
		cut = client.connect(t, replicas[rng.IntN(2)].hub, asks, pause)
		time.Sleep(12 * time.Second)
		cut()
	}
	client.equal(t, log, hub, wanted)
	for _, of := range hub.channels[:2] {
		if _, at := client.span(hub, of.code()); at != nil && at.behind(of.heads()) {
			t.Errorf("%s: sent up to %v, want %v; last: %s", of.name(), at, of.heads(), client.last)
		}
	}
	if len(client.gaps) > 0 {
		t.Errorf("sent gaps: %s", client.gaps)
	}
	for kind, n := range maps.All(client.kinds) {
		kinds[kind] += n
	}
}
