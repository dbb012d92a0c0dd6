package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/singleflight"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/read"
)

const (
	// pastHeld is how many views of the past are held in memory once they were made: who asks for one asks for more of it.
	pastHeld = 4
	// pastRecords bounds the records that a past minute is made of.
	pastRecords = 400_000
	// pastPatience bounds how long one is read: longer than a request waits.
	pastPatience = 2 * time.Minute
)

// ServedHistory is where it is kept up to which minute topics were served.
type ServedHistory interface {
	// MinuteServed returns the end of the last minute of a topic that any process served at an instant; zero where nothing is recorded
	// of it or before.
	MinuteServed(ctx context.Context, topic string, at time.Time) (time.Time, error)
	// MinuteServedSince returns from which instant on that is recorded; zero where nothing is.
	MinuteServedSince(ctx context.Context, topic string) (time.Time, error)
	// ServedWritten is up to when all is kept that was recorded of what was served.
	ServedWritten(ctx context.Context) (time.Time, error)
}

// PastLog is the log as what is past is made again of it.
type PastLog interface {
	// Scan hands the records of a span to visit, as Log does.
	Scan(ctx context.Context, span LogSpan, visit func(*kgo.Record) bool) (first int64, err error)
	// Begins returns the first offset that is kept of each partition.
	Begins(ctx context.Context, topic string) (map[int32]int64, error)
}

// pastMinutes makes what a topic that is folded by the minute gave as of past minutes again: by the code that made it then, of the same
// stretch of the log. Safe for concurrent use.
type pastMinutes[T any] struct {
	topic string
	// repeated is within what time all that holds is in the topic again.
	repeated time.Duration
	log      PastLog
	history  ServedHistory
	served   *servedMinutes
	// instead is what reaches further back than what was served.
	instead string
	// made makes an empty value, the function that takes records, and the one that gives what they add up to.
	made func() (apply func(stream.TailRecord) error, result func() T)
	held *pastViews[int64, T] // by the end of the minute
}

// pastViews holds the views of the past that were made last. Safe for concurrent use.
type pastViews[K comparable, V any] struct {
	// making joins those who ask for the same view; turn is had by who reads the log.
	making singleflight.Group
	turn   chan struct{}
	most   int
	mu     sync.Mutex
	list   []pastView[K, V] // the one asked for last first, most of them
}

type pastView[K comparable, V any] struct {
	key   K
	value V
}

func newPastViews[K comparable, V any](most int) *pastViews[K, V] {
	return &pastViews[K, V]{turn: make(chan struct{}, 1), most: most}
}

// get returns the view with a key, which make makes where it is not held: one at a time, and to its end even if nobody waits for it any more,
// so that who asks again gets it.
func (p *pastViews[K, V]) get(ctx context.Context, key K, make func(context.Context) (V, error)) (value V, err error) {
	if value, held := p.known(key); held {
		return value, nil
	}
	made := p.making.DoChan(fmt.Sprint(key), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pastPatience)
		defer cancel()
		select {
		case p.turn <- struct{}{}:
			defer func() { <-p.turn }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		value, err := make(ctx)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.list = append([]pastView[K, V]{{key, value}}, p.list[:min(len(p.list), p.most-1)]...)
		return value, nil
	})
	select {
	case result := <-made:
		if result.Err != nil {
			return value, result.Err
		}
		return result.Val.(V), nil
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// known is a view that was made before; the one that is asked for stays in memory longest.
func (p *pastViews[K, V]) known(key K) (value V, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, h := range p.list {
		if h.key == key {
			copy(p.list[1:i+1], p.list[:i])
			p.list[0] = h
			return h.value, true
		}
	}
	return value, false
}

// at returns what was served at an instant. It fails with an *AgedOutError where that is not recorded or not in the log any more, and with
// ErrHistoryBehind where it is not kept yet, after it has waited for it for six seconds.
func (p *pastMinutes[T]) at(ctx context.Context, at time.Time) (value T, err error) {
	end, err := onceKept(ctx, func() (int64, error) { return p.minute(ctx, at) })
	if err != nil {
		return value, fmt.Errorf("reading %s as of %s: %w", p.topic, at.UTC().Format(time.RFC3339Nano), err)
	}
	if value, err = p.held.get(ctx, end, func(ctx context.Context) (T, error) { return p.make(ctx, end) }); err != nil {
		return value, fmt.Errorf("reading %s of %s: %w", p.topic, time.Unix(0, end).UTC().Format(time.RFC3339), err)
	}
	return value, nil
}

// minute is the end of the minute that was served at an instant, Unix nanoseconds.
func (p *pastMinutes[T]) minute(ctx context.Context, at time.Time) (int64, error) {
	return whatServed(ctx, p.served.steps, p.history, at, serving[int64]{
		remembered: p.served.at,
		recorded: func(ctx context.Context) (int64, bool, error) {
			end, err := p.history.MinuteServed(ctx, p.topic, at)
			return end.UnixNano(), !end.IsZero(), err
		},
		since: func(ctx context.Context) (time.Time, error) {
			since, err := p.history.MinuteServedSince(ctx, p.topic)
			if err == nil && since.IsZero() {
				since = p.served.first()
			}
			return since, err
		},
		aged: AgedOutError{Kept: "which minute was served is recorded", Instead: p.instead},
	})
}

// serving is where it is known what was served at an instant: what this process remembers, what is recorded, since when, and what the
// error says where neither knows.
type serving[T any] struct {
	remembered func(at time.Time) (T, bool)
	recorded   func(ctx context.Context) (T, bool, error)
	since      func(ctx context.Context) (time.Time, error)
	aged       AgedOutError
}

// whatServed is what was served at an instant: by what this process remembers since it answers, else by what was recorded. It fails with
// ErrHistoryBehind where that is not kept yet, and with an *AgedOutError where nothing is recorded of the instant.
func whatServed[T any](ctx context.Context, steps *ServedSteps, history interface {
	ServedWritten(ctx context.Context) (time.Time, error)
}, at time.Time, of serving[T]) (none T, err error) {
	began, answers := steps.began()
	if answers && at.UnixNano() >= began && steps.mine(ctx) {
		if served, remembered := of.remembered(at); remembered {
			return served, nil
		}
	}
	written, err := history.ServedWritten(ctx)
	if err != nil {
		return none, err
	}
	if answers && written.Before(steps.recordedBy(ctx, at.UnixNano())) {
		return none, ErrHistoryBehind
	}
	served, recorded, err := of.recorded(ctx)
	if err != nil || recorded {
		return served, err
	}
	if replica := read.ReplicaOf(ctx); replica != "" {
		return none, &UnknownReplicaError{replica, at}
	}
	if of.aged.Since, err = of.since(ctx); err != nil {
		return none, err
	}
	// Where nothing is recorded yet, all before the first answer is out of reach.
	if of.aged.Since.IsZero() && at.UnixNano() < began {
		of.aged.Since = time.Unix(0, began).UTC()
	}
	return none, &of.aged
}

// make reads a minute from the log.
func (p *pastMinutes[T]) make(ctx context.Context, end int64) (value T, err error) {
	apply, result := p.made()
	var mark *eventsv1.Mark
	ended, oldest := false, time.Time{}
	var wrong error
	to := time.Unix(0, end)
	first, err := p.log.Scan(ctx, LogSpan{Topic: p.topic, From: to.Add(-p.repeated), To: to, Most: pastRecords}, func(r *kgo.Record) bool {
		if oldest.IsZero() {
			oldest = r.Timestamp
		}
		record, err := schemas.DecodeRecord(p.topic, r.Value)
		if err != nil || !record.GetMark().After(mark) { // as tails pass over them
			return true
		}
		mark = record.GetMark()
		wrong = apply(stream.TailRecord{Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Marked: record})
		pulse, is := record.(interface{ GetPulse() *eventsv1.Pulse })
		ended = is && pulse.GetPulse().GetNow() == end
		return wrong == nil && !ended
	})
	if err = errors.Join(err, wrong); err != nil {
		return value, err
	}
	begins, err := p.log.Begins(ctx, p.topic)
	if err != nil {
		return value, err
	}
	begin := begins[0]
	switch {
	case ended && (begin == 0 || first > begin):
		return result(), nil
	case first > begin && !ended:
		return value, fmt.Errorf("the log does not have the end of this minute, which was served")
	case oldest.IsZero():
		if _, err := p.log.Scan(ctx, LogSpan{Topic: p.topic, To: time.Unix(0, 1<<62), Most: 1}, func(r *kgo.Record) bool {
			oldest = r.Timestamp
			return false
		}); err != nil {
			return value, err
		}
	}
	aged := &AgedOutError{Kept: "the log has all that held", Instead: p.instead}
	if !oldest.IsZero() {
		aged.Since = oldest.Add(p.repeated).UTC()
	}
	return value, aged
}

// PastYields are the yields that were served at past instants.
type PastYields struct{ minutes pastMinutes[*RateSnapshot] }

// NewPastYields reads them from the log, by what a store of the current ones remembers and history has recorded.
func NewPastYields(current *YieldStore, log PastLog, history ServedHistory) *PastYields {
	return &PastYields{pastMinutes[*RateSnapshot]{topic: schemas.TopicRates, repeated: RatesKept, instead: "/api/v1/rates/{symbol}/history reaches further back", log: log, history: history, served: &current.served,
		made: func() (func(stream.TailRecord) error, func() *RateSnapshot) {
			store := NewYieldStore()
			return store.Apply, func() *RateSnapshot { store.Settle(); return store.Snapshot() }
		}, held: newPastViews[int64, *RateSnapshot](pastHeld)}}
}

// At returns the rates that counted at an instant. It fails with an *AgedOutError where the minute that was served is not recorded or not in
// the log any more, and with ErrHistoryBehind where that is not kept yet, after it has waited for it for six seconds.
func (p *PastYields) At(ctx context.Context, at time.Time) (*CurrentRates, error) {
	snapshot, err := p.minutes.at(ctx, at)
	if err != nil {
		return nil, err
	}
	return snapshot.counting(at.UnixNano()), nil
}

// PastRows are the rows of coins that were served at past instants, as far as the markets fold wrote them.
type PastRows struct{ minutes pastMinutes[*MinuteRows] }

// MinuteRows are the rows of coins after a minute, as the markets fold wrote them. Nothing in it may be changed.
type MinuteRows struct {
	// Time is the end of the minute, Unix nanoseconds.
	Time int64
	rows map[string]pastRow
}

// pastRow is what is held of a row, of which a minute has some 20,000: its rank, and the whole row as it is encoded.
type pastRow struct {
	rank    uint32
	encoded []byte
}

// Of returns the row of a coin; nil for a coin without a price.
func (m *MinuteRows) Of(coinID string) *eventsv1.Market {
	row := &eventsv1.Market{}
	if held, ok := m.rows[coinID]; !ok || row.UnmarshalVT(held.encoded) != nil {
		return nil
	}
	return row
}

// NewPastRows reads them from the log, by what a catalog of the current ones remembers and history has recorded.
func NewPastRows(current *Catalog, log PastLog, history ServedHistory) *PastRows {
	return &PastRows{pastMinutes[*MinuteRows]{topic: schemas.TopicMarkets, repeated: rowsRepeated, instead: rowsInstead, log: log, history: history, served: &current.served,
		made: func() (func(stream.TailRecord) error, func() *MinuteRows) {
			made := &MinuteRows{rows: map[string]pastRow{}}
			return func(rec stream.TailRecord) error {
				record := rec.Marked.(*eventsv1.MarketRecord)
				if pulse := record.GetPulse(); pulse != nil {
					made.Time = pulse.Now
				}
				row := record.GetMarket()
				if row == nil {
					return nil
				}
				if row.Price <= 0 {
					delete(made.rows, row.CoinId)
					return nil
				}
				encoded, err := row.MarshalVT()
				made.rows[row.CoinId] = pastRow{row.Rank, encoded}
				return err
			}, func() *MinuteRows { return made }
		}, held: newPastViews[int64, *MinuteRows](pastHeld)}}
}

// rowsInstead is what reaches further back than rows as they were.
const rowsInstead = "/api/v1/explain/{number} and candles, /api/v1/charts/{coinId}, reach further back"

// rowsRepeated is within what time each row of a coin is in the topic again: an hour, and what a minute may be late.
const rowsRepeated = 65 * time.Minute

// At returns the rows that were served at an instant. It fails as PastYields does.
func (p *PastRows) At(ctx context.Context, at time.Time) (*MinuteRows, error) {
	return p.minutes.at(ctx, at)
}

// Order returns the coins of a snapshot in the order in which they were served at an instant. It fails as PastYields does.
func (p *PastRows) Order(ctx context.Context, snapshot *Snapshot, at time.Time) ([]*CatalogCoin, error) {
	minute, err := p.minutes.at(ctx, at)
	if err != nil {
		return nil, err
	}
	coins := slices.Clone(snapshot.Coins)
	slices.SortFunc(coins, func(a, b *CatalogCoin) int {
		return cmp.Or(rankLast(int(minute.rows[a.ID].rank), int(minute.rows[b.ID].rank)), rankLast(a.Own.Rank, b.Own.Rank), strings.Compare(a.ID, b.ID))
	})
	return coins, nil
}

// PastSummaries are the summaries of the whole market as the markets fold wrote them, whatever a replay put in their place.
type PastSummaries struct {
	minutes pastMinutes[*eventsv1.Summary]
}

// NewPastSummaries reads them from the log.
func NewPastSummaries(current *Catalog, log PastLog, history ServedHistory) *PastSummaries {
	return &PastSummaries{pastMinutes[*eventsv1.Summary]{topic: schemas.TopicMarkets, repeated: summaryWritten, instead: "/api/v1/global-stats/metrics/history/{metricType} and /api/v1/explain/{number} reach further back", log: log, history: history, served: &current.served,
		made: func() (func(stream.TailRecord) error, func() *eventsv1.Summary) {
			var newest *eventsv1.Summary
			return func(rec stream.TailRecord) error {
				if s := rec.Marked.(*eventsv1.MarketRecord).GetSummary(); s != nil {
					newest = s
				}
				return nil
			}, func() *eventsv1.Summary { return newest }
		}, held: newPastViews[int64, *eventsv1.Summary](pastHeld)}}
}

// summaryWritten is more than what lies between the minute of a summary and the end of that minute in the log.
const summaryWritten = 2 * time.Minute

// At returns the summary that was served at an instant, nil for none. It fails as PastYields does.
func (p *PastSummaries) At(ctx context.Context, at time.Time) (*eventsv1.Summary, error) {
	return p.minutes.at(ctx, at)
}
