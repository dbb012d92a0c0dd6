package views

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// figuresServedFor is how long it is remembered with which figures rows of coins were served: some 150 bytes a coin and version, of which there is one a
// minute. Those of before are read from where they are recorded.
const figuresServedFor = 5 * time.Minute

// servedFigures remembers from which instant of the query's clock on rows of coins were served with which figures.
type servedFigures struct {
	clock func() time.Time // nil: nothing is remembered
	steps *ServedSteps     // nil: nothing is recorded
	mu    sync.Mutex
	list  servedList[*AllFigures]
}

// note remembers that rows have figures from now on, and records it. Where readers are answered, show makes it what they get before, as it does for minutes.
func (s *servedFigures) note(figures *AllFigures, show func()) {
	if s.clock == nil {
		return
	}
	if _, answers := s.steps.began(); answers {
		show()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixNano()
	if s.steps != nil {
		s.steps.readFigures(now, figures)
	}
	s.list.add(now, figures, figuresServedFor)
}

// at are the figures that rows had at an instant; false where that is not remembered.
func (s *servedFigures) at(at time.Time) (figures *AllFigures, remembered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list.at(at)
}

// since are the figures that differ from others, all that are known where the others are nil. Figures that are nil have none.
func (f *AllFigures) since(before *AllFigures) *eventsv1.ServedFigures {
	changed := &eventsv1.ServedFigures{Whole: before == nil}
	if f == nil {
		return changed
	}
	changed.Time = f.At.UnixNano()
	for _, coin := range f.coins {
		if own := f.Of(coin); own != before.Of(coin) {
			changed.Coins = append(changed.Coins, ServedFigure(coin.ID, own))
		}
	}
	return changed
}

// ServedFigure is what is recorded of the figures that a coin was served with.
func ServedFigure(coinID string, f schemas.CandleFigures) *eventsv1.ServedFigure {
	served := &eventsv1.ServedFigure{CoinId: coinID, DayAgo: f.DayAgo, High: f.High, Low: f.Low, Whole: f.Whole, Highest: f.Ever.High, Lowest: f.Ever.Low,
		Days30Ago: f.Ago[0], Days60Ago: f.Ago[1], Days200Ago: f.Ago[2], YearAgo: f.Ago[3]}
	if !f.Ever.HighAt.IsZero() {
		served.HighestAt = f.Ever.HighAt.UnixNano()
	}
	if !f.Ever.LowAt.IsZero() {
		served.LowestAt = f.Ever.LowAt.UnixNano()
	}
	return served
}

// figuresOf puts figures together that were served in steps: those of a whole one, and what differed after it.
func figuresOf(coins []schemas.Coin, steps []*eventsv1.ServedFigures) *AllFigures {
	all := &AllFigures{coins: coins, byRank: make([]schemas.CandleFigures, len(coins))}
	ranks := make(map[string]int, len(coins))
	for _, coin := range coins {
		ranks[coin.ID] = coin.Rank
	}
	at := func(ns int64) (t time.Time) {
		if ns != 0 {
			t = time.Unix(0, ns).UTC()
		}
		return t
	}
	for _, step := range steps {
		all.At = at(step.Time)
		for _, c := range step.Coins {
			if rank := ranks[c.CoinId]; rank > 0 { // it is in this version's table
				all.byRank[rank-1] = schemas.CandleFigures{DayAgo: c.DayAgo, High: c.High, Low: c.Low, Whole: c.Whole,
					Ever: schemas.Extremes{High: c.Highest, Low: c.Lowest, HighAt: at(c.HighestAt), LowAt: at(c.LowestAt)},
					Ago:  schemas.LongCloses{c.Days30Ago, c.Days60Ago, c.Days200Ago, c.YearAgo}}
			}
		}
	}
	return all
}

// FiguresHistory is where it is kept with which figures rows of coins were served.
type FiguresHistory interface {
	// FiguresServed returns the steps of which the figures of an instant are put together, in the order of time, a whole one first; none where nothing is
	// recorded of it or before.
	FiguresServed(ctx context.Context, at time.Time) ([]*eventsv1.ServedFigures, error)
	// FiguresServedSince returns from which instant on that is recorded; zero where nothing is.
	FiguresServedSince(ctx context.Context) (time.Time, error)
	// ServedWritten is up to when all is kept that was recorded of what was served.
	ServedWritten(ctx context.Context) (time.Time, error)
}

// CoinsHistory is where it is kept of what answers of coins were made.
type CoinsHistory interface {
	FiguresHistory
	// CoinsServed returns of which records of the sources they were made at an instant; nil where nothing is recorded of it or before.
	CoinsServed(ctx context.Context, at time.Time) (*eventsv1.ServedSources, error)
	// CoinsServedSince returns from which instant on they were made of no record before an offset; zero where nothing is recorded of such.
	CoinsServedSince(ctx context.Context, first int64) (time.Time, error)
}

// CoinsLog is the log as what was known of coins is made again of it.
type CoinsLog interface {
	SourcesLog
	// Begins returns the first offset that is kept of each partition.
	Begins(ctx context.Context, topic string) (map[int32]int64, error)
}

// coinsHeld is how many catalogs of the past are held: one of 20,000 coins is some 50 MB, of which those that went on with one another share most.
const coinsHeld = 3

// PastCoins are the coins that were served at past instants: what the sources had stated of them, by the code that serves them now, and their rows. Safe for
// concurrent use.
type PastCoins struct {
	current *Catalog
	rows    *PastRows
	log     CoinsLog
	history CoinsHistory
	stated  *pastViews[[2]int64, *Snapshot] // by the first and the end of the records
	// reading is what was read last, which later records are added to, up to an offset; nil after a failure. It belongs to who makes a view.
	reading          *Catalog
	readFrom, readTo int64
}

// NewPastCoins makes them of what a catalog of the current ones remembers, of past rows, of the log, and of what history has recorded.
func NewPastCoins(current *Catalog, rows *PastRows, log CoinsLog, history CoinsHistory) *PastCoins {
	return &PastCoins{current: current, rows: rows, log: log, history: history, stated: newPastViews[[2]int64, *Snapshot](coinsHeld)}
}

// At returns a snapshot of an instant that has the coins, with what sources stated of them, their rows and their order, and the notices of the sources; it has no
// summary, and nothing else of the sources. It fails as PastYields does.
func (p *PastCoins) At(ctx context.Context, at time.Time) (*Snapshot, error) {
	figures, unfigured := onceKept(ctx, func() (*AllFigures, error) { return p.figures(ctx, at) })
	if unfigured != nil {
		unfigured = fmt.Errorf("reading figures of candles as of %s: %w", at.UTC().Format(time.RFC3339Nano), unfigured)
	}
	minute, stated, err := p.parts(ctx, at)
	if err := FaultOfParts(unfigured, err); err != nil {
		return nil, err
	}
	next := *stated
	next.Time = minute.Time
	coins := make([]*CatalogCoin, 0, len(next.Coins)+len(minute.rows))
	for _, coin := range next.Coins {
		coins = append(coins, coin.withRow(p.row(coin.ID, minute, figures)))
	}
	for id := range minute.rows {
		if next.byID[id] == nil {
			coins = append(coins, (&CatalogCoin{ID: id}).withRow(p.row(id, minute, figures)))
		}
	}
	next.arrange(coins, p.current.table)
	return &next, nil
}

// parts are the rows of an instant, and the coins as sources had stated them.
func (p *PastCoins) parts(ctx context.Context, at time.Time) (*MinuteRows, *Snapshot, error) {
	minute, unrowed := p.rows.At(ctx, at)
	stated, unstated := p.statedAt(ctx, at)
	return minute, stated, FaultOfParts(unrowed, unstated)
}

// CategorizedShare is that of the coins that were served at an instant. It fails as PastYields does; it needs no figures of candles, which are kept for the
// shortest.
func (p *PastCoins) CategorizedShare(ctx context.Context, at time.Time) (*float64, error) {
	minute, stated, err := p.parts(ctx, at)
	if err != nil {
		return nil, err
	}
	coins := make([]*CatalogCoin, 0, len(minute.rows))
	for id := range minute.rows {
		coin := CatalogCoin{ID: id}
		if known := stated.byID[id]; known != nil {
			coin = *known
		}
		coins = append(coins, coin.withRow(p.row(id, minute, nil)))
	}
	slices.SortFunc(coins, byRank)
	return CategorizedShare(coins), nil
}

// statedAt are the coins as sources had stated them by what was read at an instant, without rows.
func (p *PastCoins) statedAt(ctx context.Context, at time.Time) (*Snapshot, error) {
	read, err := onceKept(ctx, func() (*eventsv1.ServedSources, error) { return p.served(ctx, at) })
	if err == nil {
		var stated *Snapshot
		if stated, err = p.stated.get(ctx, [2]int64{read.First, read.Coins}, func(ctx context.Context) (*Snapshot, error) { return p.make(ctx, read) }); err == nil {
			return stated, nil
		}
	}
	return nil, fmt.Errorf("reading what sources stated of coins as of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
}

// coinsKept is what says that coins as sources state them have aged out.
const coinsKept = "of which records of the sources coins were served is recorded and in the log"

// served is of which records answers of coins were made at an instant.
func (p *PastCoins) served(ctx context.Context, at time.Time) (*eventsv1.ServedSources, error) {
	sources := &p.current.sources
	return whatServed(ctx, sources.steps, p.history, at, serving[*eventsv1.ServedSources]{
		remembered: sources.at,
		recorded: func(ctx context.Context) (*eventsv1.ServedSources, bool, error) {
			read, err := p.history.CoinsServed(ctx, at)
			return read, read != nil, err
		},
		since: func(ctx context.Context) (time.Time, error) { return p.history.CoinsServedSince(ctx, 0) },
		aged:  AgedOutError{Kept: coinsKept, Instead: rowsInstead},
	})
}

// countsForCoins reports whether something that a source reports may be in what is known of coins.
func countsForCoins(rec *eventsv1.ReferenceRecord) bool {
	return rec.GetCoin() != nil || rec.GetNotice() != nil
}

// make reads what sources stated of coins: what comes after what was read last, or all.
func (p *PastCoins) make(ctx context.Context, read *eventsv1.ServedSources) (*Snapshot, error) {
	begins, err := p.log.Begins(ctx, schemas.TopicReferenceRaw)
	if err != nil {
		return nil, err
	}
	if begin := begins[0]; read.First < begin {
		since, err := p.history.CoinsServedSince(ctx, begin)
		if err != nil {
			return nil, err
		}
		return nil, &AgedOutError{Kept: coinsKept, Since: since, Instead: rowsInstead}
	}
	catalog, from := p.reading, p.readTo
	if p.reading = nil; catalog == nil || p.readFrom != read.First || from > read.Coins {
		catalog, from = NewCatalog(p.current.table), read.First
	}
	if from < read.Coins {
		err := p.log.Range(ctx, schemas.TopicReferenceRaw, 0, from, read.Coins-1, func(r *kgo.Record) error {
			record, err := schemas.DecodeRecord(schemas.TopicReferenceRaw, r.Value)
			stated, is := record.(*eventsv1.ReferenceRecord)
			switch {
			case err != nil || !is: // as the reader of what is current passes over it
			case stated.GetCoin() != nil:
				catalog.hear(stated.GetCoin())
			case stated.GetNotice() != nil:
				catalog.notice(stated.GetNotice())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	catalog.due.Store(true)
	catalog.Settle()
	p.reading, p.readFrom, p.readTo = catalog, read.First, read.Coins
	return catalog.Snapshot(), nil
}

func (p *PastCoins) row(id string, minute *MinuteRows, figures *AllFigures) measuredRow {
	coin, _ := p.current.table.ByID(id)
	return measure(minute.Of(id), coin, figures, minute.Time)
}

func (p *PastCoins) figures(ctx context.Context, at time.Time) (*AllFigures, error) {
	figured := &p.current.figured
	return whatServed(ctx, figured.steps, p.history, at, serving[*AllFigures]{
		remembered: figured.at,
		recorded: func(ctx context.Context) (*AllFigures, bool, error) {
			steps, err := p.history.FiguresServed(ctx, at)
			return figuresOf(p.current.table.All(), steps), len(steps) > 0, err
		},
		since: p.history.FiguresServedSince,
		aged:  AgedOutError{Kept: "with which figures of candles coins were served is recorded", Instead: rowsInstead},
	})
}
