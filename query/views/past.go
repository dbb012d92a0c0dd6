package views

import (
	"context"
	"slices"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

// OfReplica returns a context in which what was served at an instant is what one replica served, by its name: else what any of them did.
func OfReplica(ctx context.Context, replica string) context.Context {
	return read.OfReplica(ctx, replica)
}

// AnyReplica reports whether what was served at an instant is what any replica served.
func AnyReplica(ctx context.Context) bool { return read.ReplicaOf(ctx) == "" }

const (
	// AllFixings is the offset before which all rates of currencies were told.
	AllFixings = read.AllFixings
	// FoldedNow is for back-filled candles as they are now.
	FoldedNow = read.FoldedNow
)

// What history holds, by the names that units use.
type (
	// SummaryOHLC is what a figure of the whole market did in a step.
	SummaryOHLC = read.SummaryOHLC
	// FigurePoint is a figure as it was at the end of a minute.
	FigurePoint = read.FigurePoint
	// GlobalPast is the whole market at a full hour, as far as a source reported it afterwards.
	GlobalPast = read.GlobalPast
	// DefiPast is what was locked in all of DeFi, as a source reported it afterwards.
	DefiPast = read.DefiPast
	// ReportedPart is a number that a source reported afterwards, with its record.
	ReportedPart = read.ReportedPart
	// ReportedRate is a rate of the past as a source reported it afterwards.
	ReportedRate = read.ReportedRate
	// Refolded is a candle of the past as it is folded now, and of what.
	Refolded = read.Refolded
	// RefoldedMarket is a venue's own candle that it is folded of.
	RefoldedMarket = read.RefoldedMarket
	// StatedFixing is a central bank's rate, and the record that states it.
	StatedFixing = read.StatedFixing
	// PegSample is the price of a stablecoin at a moment.
	PegSample = read.PegSample
	// PegStatistic is how well a stablecoin kept its peg.
	PegStatistic = read.PegStatistic
	// SourceHealth is how requests to a source went.
	SourceHealth = read.SourceHealth
	// PriceSecond names the record of a coin's price in a second (Unix).
	PriceSecond = read.PriceSecond
	// ServedPrices is how far prices had been read at an instant by any process that answered.
	ServedPrices = read.ServedPrices
	// ServedMinute is a minute of the whole market, and from when on a process served it.
	ServedMinute = read.ServedMinute
	// ServedSeries is what series of yields were read from at an instant, besides the minute that was served.
	ServedSeries = read.ServedSeries
	// CandlesAsOf is what of the tables counts in the candles of a coin as of an instant.
	CandlesAsOf = read.CandlesAsOf
	// EarnFilter narrows changes of earn products.
	EarnFilter = read.EarnFilter
	// RestatementFilter narrows restatements.
	RestatementFilter = read.RestatementFilter
	// Restatement is a row of the past that was changed after it may have been read.
	Restatement = read.Restatement
	// CorrectionFilter narrows corrections.
	CorrectionFilter = read.CorrectionFilter
	// Correction is what an operator excluded of a venue's ticks, or took back.
	Correction = read.Correction
	// RestatedTable is how many rows of a table were restated that are not listed.
	RestatedTable = read.RestatedTable
	// RateQuery reports which rates are read, and of when.
	RateQuery = read.RateQuery
	// RatePoint is what a rate was, or did in an hour or a day.
	RatePoint = read.RatePoint
	// RateSeries is what a provider's rates of a coin and a category did.
	RateSeries = read.RateSeries
	// RateSeriesPoint is one step of it.
	RateSeriesPoint = read.RateSeriesPoint
)

// EarnHistory is where earn products of the past are read.
type EarnHistory interface {
	// EarnVariantsAt returns the variants of a product by their newest rows of minutes that had ended at a time.
	EarnVariantsAt(ctx context.Context, productID string, at time.Time) ([]*eventsv1.EarnVariant, error)
	// Restated returns when a replay last changed, after an instant, rows of tables of some coins, nil for any, and a time in [from, to); zero if none did.
	Restated(ctx context.Context, tables, coins []string, from, to, after time.Time) (time.Time, error)
}

// EarnVariantsAsOf reads the variants of a product as of an instant in the past: of minutes that had ended a minute before, so that all of it was
// published. It fails with an AgedOutError where a replay has changed products of the coin since.
func EarnVariantsAsOf(ctx context.Context, history EarnHistory, productID string, asOf time.Time) ([]*eventsv1.EarnVariant, error) {
	until := asOf.Add(-time.Minute)
	variants, err := history.EarnVariantsAt(ctx, productID, until)
	if err != nil {
		return nil, err
	}
	// A replay may have removed the newest row of any variant, so that what an older row says is no proof.
	restated, err := history.Restated(ctx, []string{tableEarn}, []string{schemas.EarnProductCoin(productID)}, time.Unix(0, 0), until.Add(time.Nanosecond), asOf)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	if err != nil {
		return nil, err
	}
	return variants, nil
}

// EarnListHistory is where all earn products of the past, what changed of them, and the fixings of the benchmark, are read.
type EarnListHistory interface {
	// EarnVariantsUntil returns the variants of all products by their newest rows of minutes that had ended at a time, by product; those that were closed or replaced
	// only if that was since another time.
	EarnVariantsUntil(ctx context.Context, until, since time.Time) ([]*eventsv1.EarnVariant, error)
	// EarnSince returns the end of the first minute that earn products are kept of; zero where none are.
	EarnSince(ctx context.Context) (time.Time, error)
	// EarnFixings returns the fixings of the days from one on, by date, segment and revision.
	EarnFixings(ctx context.Context, from time.Time) ([]*eventsv1.EarnFixing, error)
	// EarnChanges returns the newest changes, the newest first, at most limit.
	EarnChanges(ctx context.Context, filter EarnFilter, limit int) ([]*eventsv1.EarnChange, error)
	// Restated is that of EarnHistory.
	Restated(ctx context.Context, tables, coins []string, from, to, after time.Time) (time.Time, error)
}

// EarnProductsAsOf reads the variants of all products as EarnVariantsAsOf does; of those that were closed, as long before as is kept. Before anything was
// recorded it fails with an AgedOutError: an empty list would say that nobody offered anything.
func EarnProductsAsOf(ctx context.Context, history EarnListHistory, kept time.Duration, asOf time.Time) ([]*eventsv1.EarnVariant, error) {
	until := asOf.Add(-time.Minute)
	since := until.Add(-kept)
	variants, err := history.EarnVariantsUntil(ctx, until, since)
	if err != nil {
		return nil, err
	}
	if len(variants) == 0 {
		if err := earnBegan(ctx, history, until); err != nil {
			return nil, err
		}
	}
	restated, err := history.Restated(ctx, []string{tableEarn}, nil, since, until.Add(time.Nanosecond), asOf)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	return variants, err
}

// earnBegan fails where nothing was recorded of earn products by a time.
func earnBegan(ctx context.Context, history EarnListHistory, until time.Time) error {
	first, err := history.EarnSince(ctx)
	switch {
	case err != nil:
		return err
	case first.IsZero():
		return ErrHistoryBehind
	case first.After(until):
		return &AgedOutError{Kept: "earn products are recorded", Since: first.Add(time.Minute), Instead: "/api/v1/earn/changes has what changed since"}
	}
	return nil
}

// EarnChangesAsOf reads changes as EarnVariantsAsOf does variants: of minutes that had ended a minute before an instant in the past, the newest first, at most limit. It fails with
// an AgedOutError before anything was recorded, and where a replay has changed changes since then, or of the coin, of the filter afterwards.
func EarnChangesAsOf(ctx context.Context, history EarnListHistory, filter EarnFilter, limit int, asOf time.Time) ([]*eventsv1.EarnChange, error) {
	filter.Until = asOf.Add(-time.Minute)
	changes, err := history.EarnChanges(ctx, filter, limit)
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		if err := earnBegan(ctx, history, filter.Until); err != nil {
			return nil, err
		}
	}
	var coins []string
	if filter.CoinID != "" {
		coins = []string{filter.CoinID}
	}
	restated, err := history.Restated(ctx, []string{tableEarnChanges}, coins, filter.Since, filter.Until.Add(time.Nanosecond), asOf)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	return changes, err
}

// EarnFixingsAsOf reads the fixings of the days from one on that had been written in minutes that had ended a minute before an instant in the past, by date, segment and
// revision. It fails with an AgedOutError where a replay has changed some since.
func EarnFixingsAsOf(ctx context.Context, history EarnListHistory, from, asOf time.Time) ([]*eventsv1.EarnFixing, error) {
	fixings, err := history.EarnFixings(ctx, from)
	if err != nil {
		return nil, err
	}
	until := asOf.Add(-time.Minute)
	fixings = slices.DeleteFunc(fixings, func(f *eventsv1.EarnFixing) bool { return f.Time > until.UnixNano() })
	restated, err := history.Restated(ctx, []string{tableFixings}, nil, from, until.Add(time.Nanosecond), asOf)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	return fixings, err
}
