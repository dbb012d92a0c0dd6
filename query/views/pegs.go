package views

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// PegTarget is what one unit of the currency of a peg costs in USD, 0 where that is not known or stale, and the fixings that it is made of:
// the dollars that a euro costs and, of other currencies, the units. They are nil where the rate is the one that the fiat endpoints
// answer, and for the US dollar itself.
type PegTarget struct {
	USD            float64
	Dollars, Units *eventsv1.Fixing
}

// PegTarget is what one unit of a currency costs in USD by the reference rates of the newest day, as the views of pegs
// take it. Of a currency that has none of the last six days, such as the offshore yuan, it is the rate that the fiat endpoints
// answer.
func (f *Rates) PegTarget(snapshot *Snapshot, code string, now time.Time) (target PegTarget) {
	if code == schemas.USD {
		return PegTarget{USD: 1}
	}
	newest := ""
	for id, dollar := range snapshot.Fixings {
		if id.Base != "EUR" || id.Quote != schemas.USD || dollar.Date < newest {
			continue
		}
		rate := schemas.Float(dollar.Rate)
		var units *eventsv1.Fixing
		if code != "EUR" {
			units = snapshot.Fixings[FiatID{Source: id.Source, Base: "EUR", Quote: code}]
			if units == nil || units.Date != dollar.Date || schemas.Float(units.Rate) <= 0 {
				continue
			}
			rate /= schemas.Float(units.Rate)
		}
		if day, err := time.Parse(time.DateOnly, dollar.Date); err != nil || now.Truncate(24*time.Hour).Sub(day) > schemas.FixingDays*24*time.Hour {
			continue
		}
		if dollar.Date > newest || rate < target.USD { // of two sources of one day always the same
			newest, target = dollar.Date, PegTarget{rate, dollar, units}
		}
	}
	if target.USD > 0 {
		return target
	}
	for _, rate := range f.Of(snapshot, now) {
		if rate.Code == code && !rate.Stale {
			return PegTarget{USD: 1 / rate.Rate}
		}
	}
	return PegTarget{}
}

const (
	// pegsEvery is how often statistics of pegs are read: of 30 days, a minute moves little.
	pegsEvery = time.Minute
	// pegsPatience bounds one reading.
	pegsPatience = 10 * time.Second
)

// PegHistory is where statistics of pegs are read, and kept as they were served.
type PegHistory interface {
	// PegStatistics returns how each stablecoin has kept its peg since, by coin id.
	PegStatistics(ctx context.Context, since time.Time) ([]PegStatistic, error)
	// PegsServed returns by which statistics stablecoins were scored at an instant; nil where nothing is recorded of it or before.
	PegsServed(ctx context.Context, at time.Time) (*eventsv1.ServedPegs, error)
	// PegsServedSince returns from which instant on that is recorded; zero where nothing is.
	PegsServedSince(ctx context.Context) (time.Time, error)
	// ServedWritten is up to when all is kept that was recorded of what was served.
	ServedWritten(ctx context.Context) (time.Time, error)
}

// PegStatistics are how stablecoins kept their pegs over 30 days, read every minute from tables that go on meanwhile. What was read is remembered,
// and recorded as it is. Safe for concurrent use.
type PegStatistics struct {
	history PegHistory
	clock   func() time.Time // nil: what is read is not recorded
	steps   *ServedSteps
	reading sync.Mutex // held by who reads them first
	mu      sync.Mutex
	list    servedList[PegsByCoin]
}

// PegsByCoin are statistics of pegs by coin id. They must not be changed.
type PegsByCoin map[string]*eventsv1.ServedPeg

func pegsByCoin(pegs *eventsv1.ServedPegs) PegsByCoin {
	byCoin := make(PegsByCoin, len(pegs.Coins))
	for _, c := range pegs.Coins {
		byCoin[c.CoinId] = c
	}
	return byCoin
}

// NewPegStatistics reads them from history.
func NewPegStatistics(history PegHistory) *PegStatistics { return &PegStatistics{history: history} }

// RememberBy makes it record from when on it gave which statistics, by a clock. It must be called before they are used.
func (p *PegStatistics) RememberBy(clock func() time.Time, steps *ServedSteps) {
	p.clock, p.steps = clock, steps
}

// Run reads them from time to time until the context ends; it needs a clock. While they cannot be read, those that were read before count.
func (p *PegStatistics) Run(ctx context.Context, log *slog.Logger) error {
	const failure = "loading how stablecoins kept their pegs failed, continuing with what was read before"
	return KeepRead(ctx, log, failure, func(ctx context.Context) (time.Duration, error) {
		return pegsEvery, p.Refresh(ctx)
	})
}

// Refresh reads them once, by the clock that they are remembered by.
func (p *PegStatistics) Refresh(ctx context.Context) error {
	pegs, err := p.read(ctx, p.clock())
	if err == nil {
		p.serve(p.clock, pegs)
	}
	return err
}

// Current returns those that are served at a time of the query's clock. Who asks first reads them.
func (p *PegStatistics) Current(ctx context.Context, now time.Time) (PegsByCoin, error) {
	if byCoin := p.newest(now); byCoin != nil {
		return byCoin, nil
	}
	p.reading.Lock()
	defer p.reading.Unlock()
	if byCoin := p.newest(now); byCoin != nil {
		return byCoin, nil
	}
	// What is read for all who wait must not end with the first of them.
	pegs, err := p.read(context.WithoutCancel(ctx), now)
	if err != nil {
		return nil, err
	}
	return p.serve(func() time.Time { return now }, pegs), nil
}

// newest are those of an instant, or the oldest that are remembered; nil before the first.
func (p *PegStatistics) newest(now time.Time) PegsByCoin {
	if byCoin, remembered := p.at(now); remembered {
		return byCoin
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return nil
	}
	return p.list[0].value
}

// at are those that were served at an instant; false where that is not remembered.
func (p *PegStatistics) at(at time.Time) (byCoin PegsByCoin, remembered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list.at(at)
}

func (p *PegStatistics) read(ctx context.Context, now time.Time) (*eventsv1.ServedPegs, error) {
	ctx, cancel := context.WithTimeout(ctx, pegsPatience)
	defer cancel()
	all, err := p.history.PegStatistics(ctx, now.Add(-schemas.PegScoreSpan))
	if err != nil {
		return nil, err
	}
	pegs := &eventsv1.ServedPegs{}
	for _, s := range all {
		pegs.Coins = append(pegs.Coins, &eventsv1.ServedPeg{CoinId: s.CoinID, MeanBps: s.MeanBps, P95Bps: s.P95Bps, Samples: uint32(s.Samples)})
	}
	return pegs, nil
}

// serve makes statistics what is served from now on, and records them. The clock is read while nobody takes any: who took those of before did so
// earlier.
func (p *PegStatistics) serve(clock func() time.Time, pegs *eventsv1.ServedPegs) PegsByCoin {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := clock()
	if n := len(p.list); n > 0 && p.list[n-1].from >= from.UnixNano() { // two read at a time
		return p.list[n-1].value
	}
	if p.steps != nil {
		p.steps.readPegs(from.UnixNano(), pegs)
	}
	byCoin := pegsByCoin(pegs)
	p.list.add(from.UnixNano(), byCoin, servedFor)
	return byCoin
}

// At returns those that were served at an instant. It fails with an *AgedOutError where that is not recorded, and with ErrHistoryBehind where it is
// not kept yet, after it has waited for it for six seconds.
func (p *PegStatistics) At(ctx context.Context, at time.Time) (PegsByCoin, error) {
	byCoin, err := onceKept(ctx, func() (PegsByCoin, error) {
		return whatServed(ctx, p.steps, p.history, at, serving[PegsByCoin]{
			remembered: p.at,
			recorded: func(ctx context.Context) (PegsByCoin, bool, error) {
				pegs, err := p.history.PegsServed(ctx, at)
				if err != nil || pegs == nil {
					return nil, false, err
				}
				return pegsByCoin(pegs), true, nil
			},
			since: p.history.PegsServedSince,
			aged:  AgedOutError{Kept: "by what stablecoins were scored is recorded", Instead: "v_peg and v_peg_episodes reach further back: /api/v1/sql"},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading how stablecoins kept their pegs as of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return byCoin, nil
}
