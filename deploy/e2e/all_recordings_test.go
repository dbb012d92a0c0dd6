package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// recording is what one venue sent on one connection, or on several that follow each other.
type recording struct {
	name, slug string
	files      []string
}

// part is one connection of a recording.
type part struct {
	slug     string
	frames   []recordedFrame
	listings map[string]string
	symbols  map[string]bool
	expected []decodedLine

	feed *feed
}

// silence is how long a recording may be silent within one connection: less than any venue's.
const silence = int64(8 * time.Second)

// unknownTime is when a message without any time is taken to have come.
var unknownTime = time.Date(2024, 3, 4, 5, 6, 7, 0, time.UTC).UnixNano()

// open reads the recording into connections: a pause longer than any venue makes begins another.
func (r recording) open(t *testing.T) (parts []*part) {
	t.Helper()
	venue, ok := exchanges.Find(r.slug)
	if !ok {
		t.Fatalf("no adapter for %q", r.slug)
	}
	for _, file := range r.files {
		frames := readFrames(t, file)
		undated(t, venue, frames)
		slices.SortStableFunc(frames, func(a, b recordedFrame) int { return cmp.Compare(a.at, b.at) })
		for i := range frames {
			if i > 0 && frames[i].at <= frames[i-1].at {
				frames[i].at = frames[i-1].at + 1 // one after the other, as they came
			}
			if frames[i].at%int64(time.Second) == 0 {
				frames[i].at++ // the clock of that second is in the log already: what comes later is later
			}
		}
		listings := map[string]string{}
		for _, path := range venue.Listing {
			if body := readListing(t, file, path); body != "" {
				listings[path] = body
			}
		}
		begin := 0
		for i := range frames {
			if i+1 < len(frames) && frames[i+1].at-frames[i].at < silence {
				continue
			}
			p := &part{slug: r.slug, frames: frames[begin : i+1], symbols: map[string]bool{}, listings: map[string]string{}}
			begin = i + 1
			p.expected = decodeFrames(t, venue, p.frames)
			p.list(t, venue, listings)
			parts = append(parts, p)
		}
	}
	return parts
}

// undated dates messages whose receipt was not recorded by the newest time that they hold.
func undated(t *testing.T, venue adapter.Venue, frames []recordedFrame) {
	t.Helper()
	if len(frames) == 0 || frames[0].at != 0 {
		return
	}
	newest := int64(0)
	for _, l := range decodeFrames(t, venue, frames) {
		if l.EventTime != nil {
			newest = max(newest, l.EventTime.UnixNano())
		}
	}
	for i := range frames {
		frames[i].at = cmp.Or(newest, unknownTime) + int64(i+1)*int64(10*time.Millisecond)
	}
}

// list makes the venue's list of instruments: the recorded one, else one of the markets spoken of.
func (p *part) list(t *testing.T, venue adapter.Venue, recorded map[string]string) {
	t.Helper()
	var pairs []pair
	index := adapter.Instruments{}
	for path, body := range recorded {
		if list, err := venue.Instruments(path, []byte(body)); err == nil {
			maps.Copy(index, adapter.Index(list))
		}
	}
	for i, l := range p.expected {
		if l.VenueSymbol == nil {
			continue
		}
		if in, ok := index[*l.VenueSymbol]; ok {
			l.Base, l.Quote = &in.Base, &in.Quote
			p.expected[i] = l
		}
		if p.symbols[*l.VenueSymbol] {
			continue
		}
		p.symbols[*l.VenueSymbol] = true
		if l.Base != nil && l.Quote != nil {
			pairs = append(pairs, pair{*l.VenueSymbol, *l.Base, *l.Quote})
		}
	}
	if len(pairs) == 0 { // a venue without markets does not exist
		pairs = []pair{{"BTCUSDT", "BTC", "USDT"}}
		p.symbols["BTCUSDT"] = true
	}
	for _, path := range venue.Listing {
		key, _, _ := strings.Cut(path, "?")
		p.listings[strings.TrimSuffix(key, "/")] = cmp.Or(recorded[path], listing(t, venue.Slug, pairs))
	}
}

func (p *part) begin() int64 { return p.frames[0].at }
func (p *part) end() int64   { return p.frames[len(p.frames)-1].at }

// scheduled is a part of a recording, moved on the axis of the log's time.
type scheduled struct {
	*part
	shift time.Duration
}

// play lets the venues send their frames, each at its time on the axis, to their adapters.
func (l *recordedLog) play(parts []scheduled) {
	l.t.Helper()
	type action struct {
		at  int64
		run func()
		// anytime means that the clock need not show that time: the record holds no value.
		anytime bool
	}
	var actions []action
	for _, s := range parts {
		venue, _ := exchanges.Find(s.slug)
		actions = append(actions, action{s.begin() + int64(s.shift), func() {
			server := newLoopbackVenue(l.t, s.slug, s.listings)
			s.feed = l.openFeed(venue, server, s.shift, func(in adapter.Instrument) bool {
				return s.symbols[in.Symbol] || slices.ContainsFunc(in.Aliases, func(name string) bool { return s.symbols[name] })
			})
		}, false})
		received := map[int64]bool{}
		for _, line := range s.expected {
			received[line.ReceivedTime.UnixNano()] = true
		}
		for i, f := range s.frames {
			step := action{f.at + int64(s.shift), func() { s.feed.venue.sendAndWait(f) }, false}
			if last := i == len(s.frames)-1; !received[f.at] && !last {
				step.run, step.anytime = func() { s.feed.venue.mumble(f) }, true
			}
			actions = append(actions, step)
		}
		actions = append(actions, action{s.end() + int64(s.shift), func() { s.feed.stop() }, false})
	}
	slices.SortStableFunc(actions, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	for _, a := range actions {
		if !a.anytime {
			l.advance(time.Unix(0, a.at))
		}
		a.run()
	}
}

// settle lets the log's time pass until the last minute spoken of is closed, and waits for the folds.
func (l *recordedLog) settle() {
	l.t.Helper()
	end := l.clock.Now().Truncate(time.Minute).Add(time.Minute + 7*time.Second)
	l.leap(end.Add(-9 * time.Second))
	l.advance(end)
	l.awaitFolds(end, schemas.TopicPrices, schemas.TopicCandles)
}

// check compares the whole of the log and of the tables with what must follow from the parts.
func (l *recordedLog) check(parts []scheduled) oracle.Views {
	l.t.Helper()
	for _, s := range parts {
		s.checkTicks(l.t)
	}
	l.checkRaw(parts)
	views := l.checkViews()
	l.checkRows()
	l.checkJoins(views)
	return views
}

// checkJoins asks whether ticks were converted by rates that quotes.v1 holds at their places, whether the
// stablecoin's are what the scripted venue sent, and whether every coin that could be priced was.
func (l *recordedLog) checkJoins(views oracle.Views) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	rates := map[int64]*eventsv1.QuoteRate{}
	for _, r := range l.records[schemas.TopicQuotes][0] {
		rec := &eventsv1.QuoteRecord{}
		if err := rec.UnmarshalVT(r.Value); err != nil {
			l.t.Fatal(err)
		}
		rate := rec.GetRate()
		rates[r.Offset] = rate
		if rate.GetQuoteId() != "tether" {
			continue
		}
		const market, second = 2, int64(time.Second)
		recorded := func(at int64) bool { return math.Abs(rate.Rate-float64(scriptedPrice(market, at))/1e5) < 1e-12 }
		if !recorded(rate.Time/second) && !recorded(rate.Time/second-1) {
			l.t.Errorf("%s was %v USD at %s, which %s sent neither then nor a second before", rate.QuoteId, rate.Rate, time.Unix(0, rate.Time), scriptedSlug)
		}
	}
	inputs := map[string]bool{}
	for _, p := range views.Prices {
		for _, in := range p.Inputs {
			inputs[p.Coin+" by "+in.Provider+" "+in.Symbol] = true
		}
	}
	for _, records := range l.records[schemas.TopicTicks] {
		for _, r := range records {
			rec := &eventsv1.ResolvedRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				l.t.Fatal(err)
			}
			tick := rec.GetTick()
			if tick == nil {
				continue
			}
			if used := rates[tick.RateOffset]; tick.Rate != 0 && tick.QuoteId != schemas.USD &&
				(used.GetQuoteId() != tick.QuoteId || used.Rate != tick.Rate || used.Time != tick.RateTime) {
				l.t.Errorf("%s %s was converted by %v of %s, and quotes.v1 holds %v at %d", tick.Tick.Venue, tick.Tick.Symbol, tick.Rate, tick.QuoteId, used, tick.RateOffset)
			}
			if name := tick.CoinId + " by " + tick.Tick.Venue + " " + tick.Tick.Symbol; tick.CoinId != "" && !inputs[name] {
				l.t.Errorf("no price of %s, which sent %v", name, tick.Tick)
			}
		}
	}
}

// checkTicks compares what the adapter handed over with what decode prints of the same frames.
func (s scheduled) checkTicks(t *testing.T) {
	t.Helper()
	want, reasons := s.expectedTicks()
	got := slices.Clone(s.feed.out.ticks)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: got %d ticks, want %d, the next of them %s", s.slug, len(got), len(want), want[i])
			return
		case i >= len(want):
			t.Errorf("%s: got %d ticks, want %d; the next is %s", s.slug, len(got), len(want), tickLine(got[i], 0))
			return
		case tickLine(got[i], s.shift) != want[i]:
			t.Errorf("%s: tick %d:\n got %s\nwant %s", s.slug, i, tickLine(got[i], s.shift), want[i])
			return
		}
	}
	gotReasons := map[string]int{}
	for _, d := range s.feed.out.dead {
		gotReasons[d.Reason]++
	}
	if !maps.Equal(gotReasons, reasons) {
		t.Errorf("%s: refused messages by reason: got %v, want %v", s.slug, gotReasons, reasons)
	}
}

// tickLine writes a tick as decode's line has it.
func tickLine(t *eventsv1.Tick, shift time.Duration) string {
	event := int64(0)
	if t.EventTime != 0 {
		event = t.EventTime - int64(shift)
	}
	kind, side := "ticker", map[eventsv1.Side]string{1: "buy", 2: "sell"}[t.Side]
	if t.Kind == eventsv1.TickKind_TICK_KIND_TRADE {
		kind = "trade"
	}
	return fmt.Sprintf("%s %s %s/%s price=%s size=%s side=%s id=%s bid=%s ask=%s last=%s volume=%s,%s at=%d heard=%d snapshot=%t", kind, t.Symbol,
		t.Base, t.Quote, t.Price, t.Size, side, t.TradeId, t.Bid, t.Ask, t.Last, t.VolumeBase, t.VolumeQuote, event, t.IngestTime-int64(shift), t.Snapshot)
}

// expectedTicks are the ticks that must follow from what decode prints, and how many frames must be
// refused for which reason. Candles make none, nor does an empty ticker, nor history that is no news.
func (s scheduled) expectedTicks() (ticks []string, reasons map[string]int) {
	type newest struct {
		at int64
		id string
	}
	known, before := map[string]newest{}, map[string]newest{}
	frame := int64(0)
	reasons = map[string]int{}
	refused := map[string]bool{}
	for _, l := range s.expected {
		received := l.ReceivedTime.UnixNano()
		if received != frame {
			frame, before = received, maps.Clone(known)
			clear(refused)
		}
		if l.Kind == "error" {
			if !refused[l.Reason] {
				refused[l.Reason] = true
				reasons[l.Reason]++
			}
			continue
		}
		symbol, at := *l.VenueSymbol, int64(0)
		if l.EventTime != nil {
			at = l.EventTime.UnixNano()
		}
		was, seen := before[symbol]
		later := func(n newest) bool {
			return at > n.at || at == n.at && (len(l.ID) > len(n.id) || len(l.ID) == len(n.id) && l.ID > n.id)
		}
		stale := l.Snapshot && (seen && !later(was) || !seen && at <= received-int64(2*time.Minute))
		if l.Kind == "trade" && later(known[symbol]) {
			known[symbol] = newest{at, l.ID}
		}
		if l.Kind == "candle" || l.Kind == "trade" && stale || l.Kind == "ticker" && l.Bid+l.Ask+l.Last == "" {
			continue
		}
		if _, _, spot := adapter.SplitSymbol(symbol); spot && l.Base == nil {
			continue // a market of another kind that has the name of one
		}
		base, quote := "", ""
		if l.Base != nil && l.Quote != nil {
			base, quote = *l.Base, *l.Quote
		}
		ticks = append(ticks, fmt.Sprintf("%s %s %s/%s price=%s size=%s side=%s id=%s bid=%s ask=%s last=%s volume=%s,%s at=%d heard=%d snapshot=%t", l.Kind, symbol,
			base, quote, l.Price, l.Size, l.Side, l.ID, l.Bid, l.Ask, l.Last, l.VolumeBase, l.VolumeQuote, at, received, l.Snapshot))
	}
	return ticks, reasons
}

// checkRaw compares ticks.raw.v1 with what the adapters handed over, event ids included.
func (l *recordedLog) checkRaw(parts []scheduled) {
	l.t.Helper()
	want := map[string]int{}
	ids := map[string]string{}
	for _, f := range append(feeds(parts), l.rates) {
		for _, tick := range f.out.ticks {
			want[fmt.Sprintf("%x %s", tick.EventId, tickLine(tick, 0))]++
			if tick.TradeId == "" {
				continue
			}
			name := tick.Venue + " " + tick.Symbol + " " + tick.TradeId
			if id, seen := ids[name]; seen && id != string(tick.EventId) {
				l.t.Errorf("trade %s has two event ids, %x and %x", name, id, tick.EventId)
			}
			ids[name] = string(tick.EventId)
		}
	}
	got := map[string]int{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, records := range l.records[schemas.TopicTicksRaw] {
		for _, r := range records {
			rec := &eventsv1.RawRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				l.t.Fatal(err)
			}
			if tick := rec.GetTick(); tick != nil {
				got[fmt.Sprintf("%x %s", tick.EventId, tickLine(tick, 0))]++
			}
		}
	}
	for line, n := range want {
		if got[line] != n {
			l.t.Errorf("%s: got %d times in %s, want %d", line, got[line], schemas.TopicTicksRaw, n)
			return
		}
	}
	if len(got) != len(want) {
		l.t.Errorf("%s holds %d different ticks, want %d", schemas.TopicTicksRaw, len(got), len(want))
	}
}

func feeds(parts []scheduled) (list []*feed) {
	for _, s := range parts {
		list = append(list, s.feed)
	}
	return list
}

// store is the instance's ClickHouse.
func (l *recordedLog) store() *history.Store {
	l.t.Helper()
	store, err := l.in.History(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return store
}

// checkRows asks where each event went: into the ticks or, with its reason, into the dead letters.
func (l *recordedLog) checkRows() {
	l.t.Helper()
	l.mu.Lock()
	want, err := oracle.Events(l.records[schemas.TopicTicksRaw])
	l.mu.Unlock()
	if err != nil {
		l.t.Fatal(err)
	}
	var wrong []string
	l.eventually("every event in one table", func() []string {
		wrong = wrong[:0]
		ticks, dead := readEvents(l.t, l.store())
		for id, w := range want {
			name := fmt.Sprintf("%X", id)
			reasons := dead[name]
			switch {
			case w.Reason == "" && (ticks[name] != 1 || len(reasons) != 0), w.Reason != "" && (ticks[name] != 0 || !slices.Equal(reasons, []string{w.Reason})):
				wrong = append(wrong, fmt.Sprintf("event %s of %s: got %d ticks and dead letters %q, want reason %q", name, w.Venue, ticks[name], reasons, w.Reason))
			}
			delete(ticks, name)
			delete(dead, name)
		}
		for name := range ticks {
			wrong = append(wrong, fmt.Sprintf("tick %s is not in the log", name))
		}
		for name := range dead {
			wrong = append(wrong, fmt.Sprintf("dead letter %s is not in the log", name))
		}
		return wrong
	})
}

// checkViews compares prices and candles with an independent fold of the log.
func (l *recordedLog) checkViews() oracle.Views {
	l.t.Helper()
	l.mu.Lock()
	want, err := oracle.Fold(l.records[schemas.TopicTicks])
	l.mu.Unlock()
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range want.Prices {
		want.Prices[i].Symbol = "" // it knows few
	}
	var got oracle.Views
	l.eventually("the views equal to the log", func() []string {
		got = readViews(l.t, l.store())
		return oracle.Compare(want, got)
	})
	return got
}

// eventually waits for the tables, which follow the log within a second, to be without fault.
func (l *recordedLog) eventually(what string, faults func() []string) {
	l.t.Helper()
	deadline := time.Now().Add(demoPatience)
	for {
		wrong := faults()
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, w := range wrong[:min(5, len(wrong))] {
				l.t.Error(w)
			}
			l.t.Fatalf("%s: %d faults", what, len(wrong))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-l.t.Context().Done():
		}
	}
}

// runRecording runs one recording on a log of its own, whose time begins as much before the recording's
// as the rates need.
func runRecording(t *testing.T, e *engine.Engine, database string, r recording) []scheduled {
	t.Helper()
	parts := r.open(t)
	if len(parts) == 0 {
		t.Fatal("the recording is empty")
	}
	first := time.Unix(0, parts[0].begin())
	l := newRecordedLog(t, e, database, first.Truncate(time.Second).Add(-time.Minute))
	axis := l.clock.Now()
	if !axis.Before(first) {
		t.Fatalf("the rates took until %s, and the recording begins at %s", axis, first)
	}
	l.leap(first.Add(-3 * time.Second))
	l.advance(first)
	// A later connection begins a second or two after the one before, whatever lies between them.
	var plan []scheduled
	next := first
	for _, p := range parts {
		// Whole seconds, so that what is sent in the recording's seconds is of the log's seconds.
		shift := next.Sub(time.Unix(0, p.begin())).Truncate(time.Second)
		plan = append(plan, scheduled{p, shift})
		next = time.Unix(0, p.end()).Add(shift + 2*time.Second)
	}
	l.play(plan)
	l.settle()
	views := l.check(plan)
	fates, priced := map[string]int{}, map[string]bool{}
	l.mu.Lock()
	events, err := oracle.Events(l.records[schemas.TopicTicksRaw])
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range plan {
		for _, tick := range s.feed.out.ticks {
			fates[cmp.Or(events[string(tick.EventId)].Reason, "taken")]++
		}
	}
	for _, p := range views.Prices {
		for _, in := range p.Inputs {
			if in.Accepted && in.Provider == r.slug {
				priced[p.Coin] = true
			}
		}
	}
	t.Logf("%d connections, ticks %v, %d prices, %d minutes; %d coins priced by %s", len(plan), fates, len(views.Prices), len(views.Candles), len(priced), r.slug)
	return plan
}

// totals are what an independent reader found of one symbol in a recorded session.
type totals struct {
	Trades *struct {
		N             int
		Qty, Notional decimal.Decimal
		DistinctIDs   int `json:"distinct_ids"`
	}
	Tickers *struct{ N int }
}

func expectedTotals(t *testing.T, root, file string) map[string]totals {
	t.Helper()
	var all struct {
		Files map[string]struct {
			BySymbol map[string]totals `json:"by_symbol"`
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "expected.json"))
	if err == nil {
		// The expectations of other files have other shapes.
		var files struct{ Files map[string]json.RawMessage }
		if err = json.Unmarshal(text, &files); err == nil {
			name, _ := filepath.Rel(root, file)
			err = json.Unmarshal([]byte(fmt.Sprintf(`{"files":{%q:%s}}`, name, files.Files[filepath.ToSlash(name)])), &all)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all.Files {
		return f.BySymbol
	}
	return nil
}

// compareTotals compares what came into the log with what the independent reader found. Trades that a
// snapshot sent too late to be news are not in the log; then only that nothing was added is compared.
func compareTotals(t *testing.T, s scheduled, want map[string]totals) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("nothing is expected of this recording")
	}
	type sum struct {
		trades, tickers int
		qty, notional   decimal.Decimal
		ids             map[string]bool
	}
	got := map[string]*sum{}
	of := func(symbol string) *sum {
		if got[symbol] == nil {
			got[symbol] = &sum{ids: map[string]bool{}}
		}
		return got[symbol]
	}
	for _, tick := range s.feed.out.ticks {
		g := of(tick.Symbol)
		if tick.Kind != eventsv1.TickKind_TICK_KIND_TRADE {
			g.tickers++
			continue
		}
		price, size := decimal.RequireFromString(tick.Price), decimal.RequireFromString(tick.Size)
		g.trades, g.qty, g.notional = g.trades+1, g.qty.Add(size), g.notional.Add(price.Mul(size))
		g.ids[tick.TradeId] = true
	}
	late := map[string]int{}
	for _, l := range s.expected {
		if l.Kind == "trade" && l.Snapshot {
			late[*l.VenueSymbol]++
		}
	}
	for symbol, w := range want {
		g := of(symbol)
		if w.Tickers != nil && g.tickers != w.Tickers.N {
			t.Errorf("%s: got %d tickers in the log, want %d", symbol, g.tickers, w.Tickers.N)
		}
		switch {
		case w.Trades == nil:
		case late[symbol] > 0 && (g.trades > w.Trades.N || g.trades < w.Trades.N-late[symbol]):
			t.Errorf("%s: got %d trades in the log, want %d less at most %d", symbol, g.trades, w.Trades.N, late[symbol])
		case late[symbol] == 0 && (g.trades != w.Trades.N || !g.qty.Equal(w.Trades.Qty) || !g.notional.Equal(w.Trades.Notional) || len(g.ids) != w.Trades.DistinctIDs):
			t.Errorf("%s: got %d trades (%d ids) of %s for %s in the log, want %d (%d) of %s for %s", symbol,
				g.trades, len(g.ids), g.qty, g.notional, w.Trades.N, w.Trades.DistinctIDs, w.Trades.Qty, w.Trades.Notional)
		}
		delete(got, symbol)
	}
	for symbol, g := range got {
		t.Errorf("%s is not expected, and the log has %d trades and %d tickers of it", symbol, g.trades, g.tickers)
	}
}

// samples are messages that were written after the venues' documentation.
func samples(t *testing.T) (list []recording) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "recorded", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		slug := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		list = append(list, recording{slug, slug, []string{file}})
	}
	return list
}

// TestSampleRecordingsRunEndToEnd plays what needs no recordings at hand.
func TestSampleRecordingsRunEndToEnd(t *testing.T) {
	e := openEngine(t)
	for _, r := range samples(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			runRecording(t, e, "sample_"+r.name, r)
		})
	}
}

// currentSessions are the recorded sessions of today's APIs.
var currentSessions = map[string]string{
	"BINANCE.ws.1.0": "binance", "BINANCE.ws.1.0@4fe029744e": "binance", "BINANCE_US.ws.1.0": "binance", "BINANCE_TR.ws.1.0": "binance",
	"BITSTAMP.ws.1.0": "bitstamp", "COINBASE.ws.28.0": "coinbase", "GATEIO.ws.1.0": "gate", "HUOBI.ws.44.0": "htx",
	"KUCOIN.ws.1.0": "kucoin", "OKX.ws.1.0": "okx",
}

// recordedSamples are the folders and files of single messages, by venue.
var recordedSamples = map[string][]string{
	"binance":   {"jkorf/Binance.Net/*.txt", "tardis-node/binance.jsonl"},
	"bitget":    {"jkorf/Bitget.Net/*.txt", "tardis-node/bitget.jsonl"},
	"bitstamp":  {"jkorf/Bitstamp.Net/*.txt", "tardis-node/bitstamp.jsonl"},
	"bybit":     {"jkorf/Bybit.Net/*.txt", "tardis-node/bybit-spot.jsonl"},
	"coinbase":  {"jkorf/Coinbase.Net/*.txt", "tardis-node/coinbase.jsonl"},
	"cryptocom": {"jkorf/CryptoCom.Net/*.txt", "tardis-node/crypto-com.jsonl"},
	"gate":      {"jkorf/GateIo.Net/*.txt", "tardis-node/gate-io.jsonl"},
	"htx":       {"jkorf/HTX.Net/*.txt", "tardis-node/huobi.jsonl"},
	"kraken":    {"jkorf/Kraken.Net/*.txt", "tardis-node/kraken.jsonl"},
	"kucoin":    {"jkorf/Kucoin.Net/*.txt", "tardis-node/kucoin.jsonl"},
	"mexc":      {"tardis-node/mexc.jsonl"},
	"okx":       {"jkorf/OKX.Net/*.txt", "tardis-node/okex.jsonl"},
}

// recordings are all sessions by themselves, and the messages of each venue together.
func recordings(t *testing.T, root string) (list []recording) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(currentSessions)) {
		list = append(list, recording{name, currentSessions[name], []string{filepath.Join(root, "cryptofeed", name+".jsonl.gz")}})
	}
	for _, slug := range slices.Sorted(maps.Keys(recordedSamples)) {
		r := recording{"messages of " + slug, slug, nil}
		for _, pattern := range recordedSamples[slug] {
			files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: no recordings (%v)", pattern, err)
			}
			r.files = append(r.files, files...)
		}
		list = append(list, r)
	}
	return list
}

// TestRecordingsRunEndToEnd plays real messages to the adapters, each recording on a log of its own.
func TestRecordingsRunEndToEnd(t *testing.T) {
	root := streamtest.Recordings(t)
	e := openEngine(t)
	for i, r := range recordings(t, root) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			plan := runRecording(t, e, fmt.Sprintf("recorded%d", i), r)
			if _, session := currentSessions[r.name]; session {
				compareTotals(t, plan[0], expectedTotals(t, root, r.files[0]))
			}
		})
	}
}

// mergedBegin is when the axis of merged recordings begins: they play across the end of a minute.
var mergedBegin = time.Date(2026, 1, 5, 10, 0, 20, 0, time.UTC)

// merge says when the first frame of each recording is received, in seconds of the axis: the time-shift.
type merge map[string]int

// runMerged plays recordings of several venues side by side on one log, each moved as the merge says, and
// returns its views after they were compared with the independent fold.
func runMerged(t *testing.T, e *engine.Engine, database string, list []recording, at merge) oracle.Views {
	t.Helper()
	l := newRecordedLog(t, e, database, mergedBegin.Add(-time.Minute))
	if !l.clock.Now().Before(mergedBegin) {
		t.Fatalf("the rates took until %s", l.clock.Now())
	}
	l.leap(mergedBegin.Add(-3 * time.Second))
	l.advance(mergedBegin)
	var plan []scheduled
	for _, r := range list {
		second, ok := at[r.name]
		if !ok {
			t.Fatalf("nothing says when %q plays", r.name)
		}
		next := mergedBegin.Add(time.Duration(second) * time.Second)
		for _, p := range r.open(t) {
			shift := next.Sub(time.Unix(0, p.begin())).Truncate(time.Second)
			plan = append(plan, scheduled{p, shift})
			next = time.Unix(0, p.end()).Add(shift + 2*time.Second)
		}
	}
	l.play(plan)
	l.settle()
	views := l.check(plan)
	together, reasons, traded := map[string]int{}, map[string]int{}, 0
	for _, p := range views.Prices {
		together[p.Coin] = max(together[p.Coin], int(p.Accepted))
		reasons[p.Reason]++
		for _, in := range p.Inputs {
			reasons[in.Reason]++
		}
	}
	for _, c := range views.Candles {
		if c.Trades > 0 {
			traded++
		}
	}
	t.Logf("%d venues' connections, %d prices, %d minutes (%d with trades), %d minutes of venues; providers in one median: %v; reasons: %v",
		len(plan), len(views.Prices), len(views.Candles), traded, len(views.VenueCandles), together, reasons)
	l.plant(views)
	return views
}

// plant alters the views and asks whether the comparison sees it: one that does not proves nothing.
func (l *recordedLog) plant(views oracle.Views) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	want, err := oracle.Fold(l.records[schemas.TopicTicks])
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range want.Prices {
		want.Prices[i].Symbol = ""
	}
	for what, alter := range map[string]func(*oracle.Views){
		"a price that is one bit off": func(v *oracle.Views) {
			v.Prices = slices.Clone(v.Prices)
			i := slices.IndexFunc(v.Prices, func(p oracle.Price) bool { return p.Reason == "" })
			v.Prices[i].Price = math.Nextafter(v.Prices[i].Price, 0)
		},
		"a candle with a trade more": func(v *oracle.Views) {
			v.Candles = slices.Clone(v.Candles)
			v.Candles[0].Trades++
		},
		"a minute that is missing": func(v *oracle.Views) { v.Candles = v.Candles[1:] },
	} {
		altered := views
		alter(&altered)
		if n := len(oracle.Compare(want, altered)); n != 1 {
			l.t.Errorf("the comparison sees %d differences in %s, want 1", n, what)
		}
	}
}

// TestMergedRecordingsAgreeWithAnIndependentCalculation plays all recordings on one log.
func TestMergedRecordingsAgreeWithAnIndependentCalculation(t *testing.T) {
	root := streamtest.Recordings(t)
	views := runMerged(t, openEngine(t), "merged", recordings(t, root), merge{
		"BINANCE.ws.1.0": 3, "BINANCE.ws.1.0@4fe029744e": 20, "BINANCE_TR.ws.1.0": 8, "BINANCE_US.ws.1.0": 25, "BITSTAMP.ws.1.0": 10,
		"COINBASE.ws.28.0": 15, "GATEIO.ws.1.0": 22, "HUOBI.ws.44.0": 28, "KUCOIN.ws.1.0": 31, "OKX.ws.1.0": 36,
		"messages of binance": 5, "messages of bitget": 30, "messages of bitstamp": 40, "messages of bybit": 33, "messages of coinbase": 12,
		"messages of cryptocom": 18, "messages of gate": 35, "messages of htx": 26, "messages of kraken": 41, "messages of kucoin": 38,
		"messages of mexc": 34, "messages of okx": 29,
	})
	reached := map[string]uint32{}
	outlier, candles := false, map[string]bool{}
	for _, p := range views.Prices {
		reached[p.Coin] = max(reached[p.Coin], p.Accepted)
		outlier = outlier || slices.ContainsFunc(p.Inputs, func(in oracle.Input) bool { return in.Reason == "outlier" })
	}
	for _, c := range views.Candles {
		candles[c.Coin] = candles[c.Coin] || c.Trades > 0
	}
	if reached["bitcoin"] < 4 || reached["ethereum"] < 2 || reached["omisego"] < 2 {
		t.Errorf("providers in one median: got %d of bitcoin, %d of ethereum, %d of omisego, want 4, 2, 2 at least",
			reached["bitcoin"], reached["ethereum"], reached["omisego"])
	}
	if !outlier || !candles["bitcoin"] || !candles["skale"] {
		t.Errorf("an outlier was seen: %v; bitcoin and skale have candles with trades: %v, %v, want all", outlier, candles["bitcoin"], candles["skale"])
	}
}

// TestMergedSamplesAgreeWithAnIndependentCalculation plays the samples on one log.
func TestMergedSamplesAgreeWithAnIndependentCalculation(t *testing.T) {
	views := runMerged(t, openEngine(t), "merged_samples", samples(t), merge{"coinbase": 5, "okx": 8, "htx": 12})
	most, outlier := uint32(0), false
	for _, p := range views.Prices {
		if p.Coin == "bitcoin" {
			most = max(most, p.Accepted)
			outlier = outlier || slices.ContainsFunc(p.Inputs, func(in oracle.Input) bool { return in.Reason == "outlier" })
		}
	}
	if most < 3 || !outlier {
		t.Errorf("bitcoin: got %d providers in one median and an outlier: %v, want 3 at least, and one", most, outlier)
	}
}
