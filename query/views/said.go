package views

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

const (
	// saidSoon is how far back the log is read first for what was published of coins, and saidFor how far for those that it has nothing of there:
	// an older price is not answered as current.
	saidSoon = schemas.PriceRepeat + 5*time.Second
	saidFor  = schemas.OwnPriceFor + saidSoon
	// PublishedWithin is how long after its log time a price is looked for in the log: a fold writes what one input causes at once.
	PublishedWithin = 30 * time.Second
	// mostSaid bounds the records that are read of a partition at a time.
	mostSaid = 400_000
)

// PriceLog is where prices are read as they were published, which no replay changes.
type PriceLog interface {
	// Scan hands the records of a span to visit until it returns false, and returns the offset of the first one. It fails with ErrSpanTooLong
	// where there are more than the span allows, and with an *OffsetGapError where the log has some no longer.
	Scan(ctx context.Context, span LogSpan, visit func(*kgo.Record) bool) (first int64, err error)
}

// ReadPastFrom makes the price cache read from the log what a replay has changed in history since it was published. It must be called before
// prices are read as of an instant.
func (b *PriceCache) ReadPastFrom(log PriceLog) { b.log = log }

// changedByReplay is why something cannot be answered as of an instant before a replay, and what there is instead besides.
func changedByReplay(restated time.Time, instead string) error {
	return &AgedOutError{Kept: "what no replay has changed afterwards is kept", Since: restated, Instead: "/api/v1/restatements lists what it changed" + instead}
}

// PricesUnchanged fails with an *AgedOutError where the tables have the prices of a coin from a time on otherwise than at an instant, now that a replay
// has changed some or days were dropped, and reports whether any days were.
func PricesUnchanged(ctx context.Context, history PublishedPrices, coinID string, from, at, now time.Time) (dropped bool, err error) {
	then, err := history.OldestPrice(ctx, at)
	if err != nil {
		return false, err
	}
	oldest, err := history.OldestPrice(ctx, now)
	if err != nil {
		return false, err
	}
	if kept := time.Unix(oldest, 0).UTC(); then != oldest && from.Before(kept) {
		return true, &AgedOutError{Kept: "every price is kept", Since: at.Add(kept.Sub(from)).UTC(), Instead: "/api/v1/charts/{coinId} reaches further back"}
	}
	restated, err := history.Restated(ctx, []string{tablePrices}, []string{coinID}, from, at, at)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	return then != oldest, err
}

// Unchanged fails with an *AgedOutError where candles of a coin that start in [from, to), of a length that there is a table of, were others as of an
// instant than the given ones, which are those of now: they were folded again of what sources reported since, or a replay has changed them.
func (c *Candles) Unchanged(ctx context.Context, coin schemas.Coin, interval time.Duration, from, to, at time.Time, candles []schemas.Candle) error {
	past := c.served.past
	restated, err := past.Restated(ctx, []string{tableCandles}, []string{coin.ID}, from, to, at)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	// Live candles stay once they have closed.
	if err != nil || len(candles) > 0 && !slices.ContainsFunc(candles, func(c schemas.Candle) bool { return c.Origin != schemas.OriginLive }) {
		return err
	}
	made, err := onceKept(ctx, func() (read.ServedCandles, error) { return c.servedAt(ctx, at) })
	if err != nil {
		return err
	}
	then, err := past.IntervalsAsOf(ctx, coin.ID, interval, from, to, made.Of(c.partition(coin)))
	if err != nil {
		return c.Unknown(ctx, err)
	}
	if slices.EqualFunc(then, candles, schemas.Candle.Same) {
		return nil
	}
	changed, err := past.PastSince(ctx, coin.ID, from, to)
	if err != nil {
		return err
	}
	since, err := past.CandlesServedSince(ctx, changed, 0)
	if err != nil {
		return err
	}
	if since.IsZero() { // not recorded yet
		since = c.served.foldedFrom(changed)
	}
	if !since.After(at) { // its last minutes had ended, and had not closed
		since = to.Add(time.Minute)
	}
	return &AgedOutError{Kept: "these candles are what they are now", Since: since, Instead: instead}
}

// countsAsOf reports whether a record of a price counts as of an instant, and whether neither it nor any that follows of its coin does.
type countsAsOf func(*eventsv1.Price, *eventsv1.Mark) (counts, later bool)

// asPublished returns records of coins that were read from history as of an instant, with those that a replay may have changed since as the log
// has them: of each coin the newest with a price that counts, and the newest that counts if it has a reason in place of a price. What counts is not
// older than oldest, or not older than what was read. It fails with an *AgedOutError where the log has it no longer.
func (b *PriceCache) asPublished(ctx context.Context, history PublishedPrices, records []*eventsv1.PriceRecord, coins []string, asOf, oldest time.Time,
	counts countsAsOf) ([]*eventsv1.PriceRecord, error) {
	from, priced := oldest, map[string]bool{}
	for _, rec := range records {
		if at := time.Unix(0, rec.GetPrice().GetTime()); at.Before(from) {
			from = at
		}
		priced[rec.GetPrice().GetCoinId()] = priced[rec.GetPrice().GetCoinId()] || rec.GetPrice().GetReason() == ""
	}
	if slices.ContainsFunc(coins, func(id string) bool { return !priced[id] }) { // a replay may have removed it
		from = earlier(from, asOf.Add(-saidFor))
	}
	restated := func(coins []string) (time.Time, error) {
		return history.Restated(ctx, []string{tablePrices}, coins, from, asOf.Add(time.Nanosecond), asOf)
	}
	at, err := restated(coins)
	if err != nil || at.IsZero() {
		return records, err
	}
	if b.log == nil {
		return nil, changedByReplay(at, "")
	}
	said, lacking := newSaid(counts, len(b.nows)), coins
	for _, back := range []time.Duration{saidSoon, saidFor} {
		err := said.read(ctx, b.log, lacking, earlier(oldest, asOf.Add(-back)), asOf)
		var gap *OffsetGapError
		switch {
		case errors.As(err, &gap), errors.Is(err, ErrSpanTooLong):
			return nil, changedByReplay(at, "")
		case err != nil:
			return nil, err
		}
		if lacking = said.lacking(coins); len(lacking) == 0 {
			return said.records(), nil
		}
		if at, err = restated(lacking); err != nil {
			return nil, err
		} else if at.IsZero() {
			records = slices.DeleteFunc(records, func(rec *eventsv1.PriceRecord) bool { return !slices.Contains(lacking, rec.GetPrice().CoinId) })
			return append(records, said.records()...), nil
		}
	}
	return nil, changedByReplay(at, "")
}

// said is what the log has of the prices of coins.
type said struct {
	counts     countsAsOf
	partitions int32
	// priced are the newest records with a price, newest those of all, by coin id.
	priced, newest map[string]*eventsv1.PriceRecord
}

func newSaid(counts countsAsOf, partitions int) *said {
	return &said{counts: counts, partitions: int32(partitions), priced: map[string]*eventsv1.PriceRecord{}, newest: map[string]*eventsv1.PriceRecord{}}
}

// lacking are the coins of which no price was found.
func (s *said) lacking(coins []string) []string {
	return slices.DeleteFunc(slices.Clone(coins), func(id string) bool { return s.priced[id] != nil })
}

// read reads what counts of the coins and was published in [from, to], by log time.
func (s *said) read(ctx context.Context, log PriceLog, coins []string, from, to time.Time) error {
	wanted := map[int32]map[string]bool{}
	for _, id := range coins {
		p := PartitionOf(id, s.partitions)
		if wanted[p] == nil {
			wanted[p] = map[string]bool{}
		}
		wanted[p][id] = true
	}
	for _, p := range slices.Sorted(maps.Keys(wanted)) {
		open := wanted[p] // coins for which nothing was seen that is later than what counts
		span := LogSpan{Topic: schemas.TopicPrices, Partition: p, From: from, To: to.Add(PublishedWithin), Most: mostSaid}
		if _, err := log.Scan(ctx, span, func(r *kgo.Record) bool {
			if id := string(r.Key); open[id] && s.take(r) {
				delete(open, id)
			}
			return len(open) > 0
		}); err != nil {
			return err
		}
	}
	return nil
}

// take takes a record, and reports whether no later one of its coin counts: a fold publishes in the order of log time.
func (s *said) take(r *kgo.Record) (later bool) {
	decoded, err := schemas.DecodeRecord(schemas.TopicPrices, r.Value)
	rec, ok := decoded.(*eventsv1.PriceRecord)
	if err != nil || !ok || rec.GetPrice() == nil {
		return false // the sink reports what cannot be read
	}
	p := rec.GetPrice()
	if counts, later := s.counts(p, rec.Mark); !counts {
		return later
	}
	if held := s.newest[p.CoinId]; held == nil || held.GetPrice().Time < p.Time {
		s.newest[p.CoinId] = rec
	}
	if held := s.priced[p.CoinId]; p.Reason == "" && (held == nil || held.GetPrice().Time < p.Time) {
		s.priced[p.CoinId] = rec
	}
	return false
}

// records are the newest with a price, and those newer ones that have a reason instead.
func (s *said) records() []*eventsv1.PriceRecord {
	all := slices.Collect(maps.Values(s.priced))
	for id, rec := range s.newest {
		if s.priced[id] != nil && rec != s.priced[id] {
			all = append(all, rec)
		}
	}
	return all
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
