package views

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// Catalog holds in memory what sources state of coins, stablecoins, currencies and sentiment, and the
// newest rows of the markets fold. Readers take a Snapshot, which never changes; a new one appears with each
// minute that the fold ends and each clock of the sources. Safe for concurrent use.
type Catalog struct {
	table *schemas.CoinTable

	// due means that a new snapshot can be made. The first who reads makes it: a start reads days of records,
	// and would else sort all coins at every clock among them.
	due atomic.Bool
	// snapshot's mutex guards what follows; snapshots share the values, which are replaced, never changed.
	snapshot Lazy[Snapshot]
	reported map[string]map[part]*eventsv1.Coin
	rows     map[string]*eventsv1.Market
	coins    map[string]*CatalogCoin
	// changed are the coins of which something else was reported; moved those of which only the row is new.
	changed, moved map[string]bool
	// staged are the rows and the summary of the minute under way, which its pulse makes visible together.
	staged minuteRows
	minute int64
	// figures are those of candles, nil before they are known.
	figures *AllFigures
	summary *eventsv1.Summary
	clock   int64
	facts   facts
	words   map[string]string
	served  servedMinutes
	figured servedFigures
	sources servedSources
}

// minuteRows are what the markets fold reports of one minute.
type minuteRows struct {
	rows    []*eventsv1.Market
	summary *eventsv1.Summary
}

// part names what one feed of a source reports about a coin.
type part struct{ source, part string }

// facts are what sources state beside coins, by thing.
type facts struct {
	stablecoins map[string]*eventsv1.Stablecoin
	fixings     map[FiatID]*eventsv1.Fixing
	fearGreed   map[int64]*eventsv1.FearGreed
	notices     map[string]*eventsv1.SourceNotice
	fetches     map[string]*eventsv1.Fetch
	answers     map[string][]*eventsv1.Fetch
	read        map[string]int64
	overrides   []*eventsv1.SymbolOverride
	// changed means that any of them is new, noticed that a notice is.
	changed, noticed bool
}

// FiatID names the rate of a currency by a source.
type FiatID struct{ Source, Base, Quote string }

// Snapshot is the catalog at one moment. Nothing in it may be changed.
type Snapshot struct {
	// Time is the end of the last minute that the markets fold has ended, SourcesTime the last clock of the sources;
	// both Unix nanoseconds, 0 before the first.
	Time, SourcesTime int64
	// Coins by rank; those without one follow, first those that our table ranks, then by id.
	Coins []*CatalogCoin
	// CoinsVersion grows whenever Coins, or a notice, is another: what was made from the same is still right.
	CoinsVersion uint64
	// Simulated means that a source or a row invents what it reports.
	Simulated bool
	// Summary of that minute, nil before the first.
	Summary *eventsv1.Summary
	// Stablecoins by source and the source's id.
	Stablecoins []*eventsv1.Stablecoin
	// Fixings are the newest rates of each source.
	Fixings map[FiatID]*eventsv1.Fixing
	// FearGreed are days, oldest first, as far back as they were published lately.
	FearGreed []*eventsv1.FearGreed
	// Notices and the last Fetches, by source.
	Notices map[string]*eventsv1.SourceNotice
	Fetches map[string]*eventsv1.Fetch
	// Answers are the newest requests to a source that succeeded, oldest first, by source.
	Answers map[string][]*eventsv1.Fetch
	// Read is when the last request to a source began that succeeded, Unix nanoseconds, by source.
	Read map[string]int64
	// Overrides in the order of their times; a later one of the same source and symbol replaces an earlier one.
	Overrides []*eventsv1.SymbolOverride

	byID map[string]*CatalogCoin
	// bySymbol holds the coins with a symbol or an old name, the largest first.
	bySymbol map[string][]*CatalogCoin
}

// NewCatalog begins with the coins of the table alone.
func NewCatalog(table *schemas.CoinTable) *Catalog {
	c := &Catalog{
		table: table, reported: map[string]map[part]*eventsv1.Coin{}, rows: map[string]*eventsv1.Market{},
		coins: map[string]*CatalogCoin{}, changed: map[string]bool{}, moved: map[string]bool{}, words: map[string]string{},
		facts: facts{
			stablecoins: map[string]*eventsv1.Stablecoin{}, fixings: map[FiatID]*eventsv1.Fixing{}, fearGreed: map[int64]*eventsv1.FearGreed{},
			notices: map[string]*eventsv1.SourceNotice{}, fetches: map[string]*eventsv1.Fetch{}, read: map[string]int64{}, changed: true,
			answers: map[string][]*eventsv1.Fetch{},
		},
	}
	for _, coin := range table.All() {
		c.changed[coin.ID] = true
	}
	c.Settle()
	return c
}

// Snapshot is the newest one; it is never nil. Where one is due, the caller makes it; while another does, the
// one before is the newest.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Get(c.current, c.build) }

// Settle makes what was applied so far visible before it returns: until then a reader may get the snapshot before.
func (c *Catalog) Settle() { c.snapshot.Settle(c.current, c.build) }

func (c *Catalog) current(*Snapshot) bool { return !c.due.Load() }

// ApplyReference takes a record of reference.raw.v1.
func (c *Catalog) ApplyReference(rec stream.TailRecord) error {
	record, err := schemas.DecodeRecord(schemas.TopicReferenceRaw, rec.Value)
	if err != nil {
		return nil // the sink of the topic reports it
	}
	reported, ok := record.(*eventsv1.ReferenceRecord)
	if !ok {
		return nil
	}
	c.snapshot.mu.Lock()
	defer c.snapshot.mu.Unlock()
	c.sources.take(rec.Offset, reported)
	switch b := reported.Body.(type) {
	case *eventsv1.ReferenceRecord_Clock:
		c.clock = max(c.clock, b.Clock.Time)
		c.due.Store(true)
		return nil
	case *eventsv1.ReferenceRecord_Coin:
		c.hear(b.Coin)
		return nil
	case *eventsv1.ReferenceRecord_Stablecoin:
		c.facts.stablecoins[b.Stablecoin.Source+" "+b.Stablecoin.SourceId] = b.Stablecoin
	case *eventsv1.ReferenceRecord_Fixing:
		id := FiatID{b.Fixing.Source, b.Fixing.Base, b.Fixing.Quote}
		if before := c.facts.fixings[id]; before == nil || before.Date <= b.Fixing.Date {
			c.facts.fixings[id] = b.Fixing
		}
	case *eventsv1.ReferenceRecord_FearGreed:
		c.facts.fearGreed[b.FearGreed.EventTime] = b.FearGreed
	case *eventsv1.ReferenceRecord_Notice:
		c.notice(b.Notice)
	case *eventsv1.ReferenceRecord_Fetch:
		c.facts.fetches[b.Fetch.Source] = b.Fetch
		if b.Fetch.Error == "" {
			c.facts.answered(b.Fetch)
			c.facts.read[b.Fetch.Source] = max(c.facts.read[b.Fetch.Source], b.Fetch.Started)
		}
	case *eventsv1.ReferenceRecord_Override:
		c.facts.overrides = append(c.facts.overrides, b.Override)
	}
	c.facts.changed = true
	return nil
}

// notice notes who a source is.
func (c *Catalog) notice(notice *eventsv1.SourceNotice) {
	c.facts.notices[notice.Source] = notice
	c.facts.changed, c.facts.noticed = true, true
}

// keptAnswers bounds the answers of a source that are kept: those of a round, of most sources.
const keptAnswers = 16

// answered keeps an answer. Snapshots share the lists, so that a new one is made.
func (f *facts) answered(fetch *eventsv1.Fetch) {
	before := f.answers[fetch.Source]
	before = before[max(0, len(before)-keptAnswers+1):]
	f.answers[fetch.Source] = append(before[:len(before):len(before)], fetch)
}

// hear notes what a source reports about a coin that it names in a way we know.
func (c *Catalog) hear(coin *eventsv1.Coin) {
	id, ok := schemas.CanonicalCoin(coin.Source, coin.SourceId, coin.Symbol, coin.Name)
	if !ok {
		return
	}
	c.shareWords(coin)
	if c.reported[id] == nil {
		c.reported[id] = map[part]*eventsv1.Coin{}
	}
	c.reported[id][part{coin.Source, coin.Part}] = coin
	c.changed[id] = true
}

// shareWords keeps what thousands of coins say alike once: names of categories and platforms above all.
func (c *Catalog) shareWords(coin *eventsv1.Coin) {
	share := func(word *string) {
		kept, ok := c.words[*word]
		if !ok {
			kept = *word
			c.words[kept] = kept
		}
		*word = kept
	}
	share(&coin.Source)
	share(&coin.Part)
	share(&coin.Kind)
	for i := range coin.Categories {
		share(&coin.Categories[i])
	}
	for _, platform := range coin.Platforms {
		share(&platform.Name)
	}
	for _, link := range coin.Links {
		share(&link.Kind)
	}
	for _, statistic := range coin.Developer {
		share(&statistic.Name)
	}
}

// ApplyMarkets takes a record of markets.v1. Rows appear together, with the pulse that ends their minute.
func (c *Catalog) ApplyMarkets(rec stream.TailRecord) error {
	m, ok := rec.Marked.(*eventsv1.MarketRecord)
	if !ok {
		return nil
	}
	c.snapshot.mu.Lock()
	defer c.snapshot.mu.Unlock()
	switch b := m.Body.(type) {
	case *eventsv1.MarketRecord_Market:
		c.staged.rows = append(c.staged.rows, b.Market)
	case *eventsv1.MarketRecord_Summary:
		c.staged.summary = b.Summary
	case *eventsv1.MarketRecord_Pulse:
		c.endMinute(b.Pulse.Now)
	}
	return nil
}

// endMinute makes what was published of a minute visible. A record that comes twice never takes a coin back in time.
func (c *Catalog) endMinute(at int64) {
	for _, row := range c.staged.rows {
		if held := c.rows[row.CoinId]; held != nil && held.Time > row.Time {
			continue
		}
		c.rows[row.CoinId] = row
		c.moved[row.CoinId] = true
	}
	next := c.staged.summary
	newer := next != nil && next.Time >= c.summary.GetTime()
	if newer {
		c.summary = next
	}
	clear(c.staged.rows)
	c.staged = minuteRows{rows: c.staged.rows[:0]}
	before := c.minute
	c.minute = max(c.minute, at)
	if c.figures.Near(time.Unix(0, before)) != c.figures.Near(time.Unix(0, c.minute)) {
		c.measureAgain() // not only those of which a new row came
	}
	c.due.Store(true)
	if newer {
		c.served.note(next.Time, func() { c.snapshot.update(c.current, c.build) })
	}
}

// Measure takes what candles say of coins, whose rows state that from then on.
func (c *Catalog) Measure(figures *AllFigures) {
	c.snapshot.mu.Lock()
	defer c.snapshot.mu.Unlock()
	c.figures = figures
	c.measureAgain()
	c.figured.note(figures, func() { c.snapshot.update(c.current, c.build) })
}

// measureAgain has the rows of all coins that have figures made again.
func (c *Catalog) measureAgain() {
	for _, coin := range c.table.All() {
		if c.rows[coin.ID] != nil {
			c.moved[coin.ID] = true
		}
	}
	c.due.Store(true)
}

// build makes the snapshot of what has changed. Callers hold the mutex.
func (c *Catalog) build() *Snapshot {
	c.due.Store(false)
	next := &Snapshot{}
	if before := c.snapshot.value.Load(); before != nil {
		*next = *before
	}
	next.Time, next.SourcesTime, next.Summary = c.minute, c.clock, c.summary
	if len(c.changed)+len(c.moved) > 0 {
		c.rebuild(next)
	}
	if c.facts.changed {
		c.facts.changed = false
		next.Stablecoins, next.FearGreed = sorted(c.facts.stablecoins), sorted(c.facts.fearGreed)
		next.Fixings, next.Notices, next.Fetches = maps.Clone(c.facts.fixings), maps.Clone(c.facts.notices), maps.Clone(c.facts.fetches)
		next.Read, next.Overrides = maps.Clone(c.facts.read), slices.Clone(c.facts.overrides)
		next.Answers = maps.Clone(c.facts.answers)
		for _, notice := range next.Notices {
			next.Simulated = next.Simulated || notice.Simulated
		}
	}
	if c.facts.noticed {
		c.facts.noticed = false
		next.CoinsVersion++
	}
	c.sources.note(c.clock)
	return next
}

// rebuild makes the changed coins again and sorts all.
func (c *Catalog) rebuild(next *Snapshot) {
	for id := range c.changed {
		c.coins[id] = c.describe(id)
	}
	for id := range c.moved {
		if before := c.coins[id]; before != nil && !c.changed[id] {
			c.coins[id] = before.withRow(c.row(id))
		} else if before == nil {
			c.coins[id] = c.describe(id)
		}
	}
	for _, touched := range []map[string]bool{c.changed, c.moved} {
		for id := range touched {
			if coin := c.coins[id]; coin != nil && !coin.known() {
				delete(c.coins, id)
			}
		}
	}
	clear(c.changed)
	clear(c.moved)
	next.CoinsVersion++
	all := make([]*CatalogCoin, 0, len(c.coins))
	for _, before := range next.Coins { // nearly in order
		if coin := c.coins[before.ID]; coin != nil {
			all = append(all, coin)
		}
	}
	if len(all) < len(c.coins) {
		for id, coin := range c.coins {
			if next.byID[id] == nil {
				all = append(all, coin)
			}
		}
	}
	next.arrange(all, c.table)
}

// arrange makes coins those of a snapshot: by rank, and to be found by id and symbol.
func (s *Snapshot) arrange(all []*CatalogCoin, table *schemas.CoinTable) {
	s.Simulated = s.Simulated || slices.ContainsFunc(all, func(coin *CatalogCoin) bool { return coin.Market.GetSimulated() })
	slices.SortFunc(all, byRank)
	s.Coins = all
	s.byID, s.bySymbol = make(map[string]*CatalogCoin, len(all)), make(map[string][]*CatalogCoin, len(all))
	// One array holds all the short lists of bySymbol: a list of its own for each of 20,000 symbols is what a
	// rebuild would spend most on.
	alone := slices.Clone(all)
	for i, coin := range all {
		s.byID[coin.ID] = coin
		if with := s.bySymbol[coin.Symbol]; with != nil {
			s.bySymbol[coin.Symbol] = append(with, coin)
		} else {
			s.bySymbol[coin.Symbol] = alone[i : i+1 : i+1]
		}
	}
	for alias, own := range table.Aliases() {
		if coin := s.byID[own.ID]; coin.Symbol != alias {
			s.bySymbol[alias] = append(slices.Clip(s.bySymbol[alias]), coin)
		}
	}
	for _, with := range s.bySymbol {
		if len(with) > 1 {
			slices.SortStableFunc(with, bySize)
		}
	}
}

// ByID returns a coin by its canonical id, nil for none.
func (s *Snapshot) ByID(id string) *CatalogCoin { return s.byID[id] }

// BySymbol returns the coins with a symbol in upper case, or with it as an old name, the largest first. The list is shared.
func (s *Snapshot) BySymbol(symbol string) []*CatalogCoin { return s.bySymbol[symbol] }

func sorted[K cmp.Ordered, V any](m map[K]V) []V {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	values := make([]V, len(keys))
	for i, k := range keys {
		values[i] = m[k]
	}
	return values
}
