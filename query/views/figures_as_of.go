package views

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

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
			changed.Coins = append(changed.Coins, servedFigure(coin.ID, own))
		}
	}
	return changed
}

func servedFigure(coinID string, f schemas.CandleFigures) *eventsv1.ServedFigure {
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

// PastCoins are the coins with the rows that were served at past instants.
type PastCoins struct {
	catalog *Catalog
	rows    *PastRows
	history FiguresHistory
}

// NewPastCoins makes them of what a catalog of the current ones remembers, of past rows, and of what history has recorded.
func NewPastCoins(current *Catalog, rows *PastRows, history FiguresHistory) *PastCoins {
	return &PastCoins{current, rows, history}
}

// At returns the newest snapshot with the rows, and in the order, of an instant: names and what else sources state of coins are those of now. It fails as
// PastYields does.
func (p *PastCoins) At(ctx context.Context, at time.Time) (*Snapshot, error) {
	minute, err := p.rows.At(ctx, at)
	if err != nil {
		return nil, err
	}
	figures, err := onceKept(ctx, func() (*AllFigures, error) { return p.figures(ctx, at) })
	if err != nil {
		return nil, fmt.Errorf("reading figures of candles as of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	next := *p.catalog.Snapshot()
	next.Time, next.Summary = minute.Time, nil
	coins := make([]*CatalogCoin, 0, len(next.Coins))
	of := func(coin *CatalogCoin) { coins = append(coins, coin.withRow(p.row(coin.ID, minute, figures))) }
	for _, coin := range next.Coins {
		of(coin)
	}
	for id := range minute.rows {
		if next.byID[id] == nil {
			of(&CatalogCoin{ID: id})
		}
	}
	slices.SortFunc(coins, byRank)
	next.Coins = coins
	return &next, nil
}

func (p *PastCoins) row(id string, minute *MinuteRows, figures *AllFigures) measuredRow {
	coin, _ := p.catalog.table.ByID(id)
	return measure(minute.Of(id), coin, figures, minute.Time)
}

func (p *PastCoins) figures(ctx context.Context, at time.Time) (*AllFigures, error) {
	figured := &p.catalog.figured
	return whatServed(ctx, figured.steps, p.history, at, serving[*AllFigures]{
		remembered: figured.at,
		recorded: func(ctx context.Context) (*AllFigures, bool, error) {
			steps, err := p.history.FiguresServed(ctx, at)
			return figuresOf(p.catalog.table.All(), steps), len(steps) > 0, err
		},
		since: p.history.FiguresServedSince,
		aged:  AgedOutError{Kept: "with which figures of candles coins were served is recorded", Instead: rowsInstead},
	})
}
