package globalstats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// drawnStep is a step of a kind whose value is a number that never falls, as those of one replica do.
func drawnStep(kind int, at time.Time, n int64) *eventsv1.ServedStep {
	step := &eventsv1.ServedStep{Time: at.UnixNano()}
	switch minute := int64(time.Minute); kind {
	case 0:
		step.Read = &eventsv1.ServedStep_Prices{Prices: &eventsv1.ServedPrices{Partition: 1, Offset: n}}
	case 1:
		step.Read = &eventsv1.ServedStep_Minute{Minute: n * minute}
	case 2:
		step.Read = &eventsv1.ServedStep_Rates{Rates: n * minute}
	case 3:
		step.Read = &eventsv1.ServedStep_Sources{Sources: &eventsv1.ServedSources{Last: n}}
	case 4:
		step.Read = &eventsv1.ServedStep_Pegs{Pegs: &eventsv1.ServedPegs{Coins: []*eventsv1.ServedPeg{{CoinId: "tether", Samples: uint32(n)}}}}
	case 5:
		step.Read = &eventsv1.ServedStep_Candles{Candles: &eventsv1.ServedCandles{Folded: n}}
	case 6:
		step.Read = &eventsv1.ServedStep_Series{Series: &eventsv1.ServedSeries{Written: minute, Past: n}}
	case 7:
		step.Read = &eventsv1.ServedStep_Figures{Figures: &eventsv1.ServedFigures{Whole: true, Coins: []*eventsv1.ServedFigure{{CoinId: "tether", High: float64(n)}}}}
	}
	return step
}

const kindsOfSteps = 8

// Replicas read the log at paces of their own. As of a position counts what its replica had read, and as of an instant never less than any of them had of the prices.
func TestWhatOneReplicaServedIsKeptApart(t *testing.T) {
	w, random := querytest.NewFixture(t, querytest.Coins("tether,USDT,Tether,1,stablecoin,USD,")), streamtest.Rand(t)
	w.Open(enginetest.Migrated(t))
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	replicas := []string{"one", "two", "three"}
	type value struct {
		at time.Time
		n  int64
	}
	served := map[string][kindsOfSteps][]value{}
	var b rows.Batch
	for _, replica := range replicas {
		record, list, n, at := &eventsv1.ServedRecord{Replica: replica}, served[replica], int64(100), begin
		for range 120 {
			at, n = at.Add(time.Duration(1+random.IntN(20_000))*time.Millisecond), n+random.Int64N(3)
			kind := random.IntN(kindsOfSteps)
			record.Steps, list[kind] = append(record.Steps, drawnStep(kind, at, n)), append(list[kind], value{at, n})
		}
		served[replica] = list
		b.Add(rows.Place{Topic: schemas.TopicServed, Offset: w.Offset()}, record)
	}
	w.Must(b.Insert(t.Context(), w.Store, ""))

	past := w.History()
	for range 60 {
		replica := replicas[random.IntN(len(replicas))]
		at := begin.Add(time.Duration(random.Int64N(int64(20 * time.Minute))))
		ctx := views.OfReplica(t.Context(), replica)
		var got [kindsOfSteps]string
		known := func(kind int, recorded bool, n any, err error) {
			w.Must(err)
			if recorded {
				got[kind] = fmt.Sprint(n)
			}
		}
		prices, err := past.PricesServed(ctx, at)
		known(0, prices != nil, prices[1], err)
		for kind, topic := range map[int]string{1: schemas.TopicMarkets, 2: schemas.TopicRates} {
			minute, err := past.MinuteServed(ctx, topic, at)
			known(kind, !minute.IsZero(), minute.Unix()/60, err)
		}
		sources, err := past.SourcesServed(ctx, at)
		known(3, sources != nil, sources.GetLast(), err)
		pegs, err := past.PegsServed(ctx, at)
		known(4, pegs != nil, append(pegs.GetCoins(), &eventsv1.ServedPeg{})[0].Samples, err)
		candles, recorded, err := past.CandlesServed(ctx, at)
		known(5, recorded, candles.Folded, err)
		series, recorded, err := past.SeriesServed(ctx, at)
		known(6, recorded, series.Past, err)
		figures, err := past.FiguresServed(ctx, at)
		known(7, len(figures) > 0, append(figures, &eventsv1.ServedFigures{Coins: []*eventsv1.ServedFigure{{}}})[0].Coins[0].High, err)
		for kind, got := range got {
			want := ""
			for _, v := range served[replica][kind] {
				if !v.at.After(at) {
					want = fmt.Sprint(v.n)
				}
			}
			if got != want {
				t.Errorf("kind %d as of %s of %s: got %q, want %q", kind, at, replica, got, want)
			}
		}
		all, err := past.PricesServed(t.Context(), at)
		w.Must(err)
		if all[1] < prices[1] {
			t.Errorf("as of %s %s had read up to %d, and all of them up to %d", at, replica, prices[1], all[1])
		}
	}
}
