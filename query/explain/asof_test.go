package explain_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/position"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// remember has it remembered and recorded from now on what is served.
func (w *fixture) remember() {
	w.remembers = true
	clock := func() time.Time { return w.Now }
	w.Prices.RememberBy(clock)
	w.Catalog.RememberBy(clock, w.Prices.Steps())
	w.newest.RememberBy(clock, w.Prices.Steps())
	w.Prices.Steps().Begin(clock)
}

// sourced is what a source states, in the log and read from there.
func (w *fixture) sourced(rec *eventsv1.ReferenceRecord) {
	r := w.append(schemas.TopicReferenceRaw, 0, rec.GetCoin().GetSource(), w.Now.UnixNano(), rec)
	w.flush()
	w.Must(w.Catalog.ApplyReference(views.TailRecord{Offset: r.Offset, Value: r.Value}))
	w.heard()
}

// heard has what sources stated served.
func (w *fixture) heard() {
	r := w.append(schemas.TopicReferenceRaw, 0, "sources", w.Now.UnixNano(), &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}})
	w.flush()
	w.Must(w.Catalog.ApplyReference(views.TailRecord{Offset: r.Offset, Value: r.Value}))
	w.Catalog.Settle()
}

// record writes what was served to the log and to the store.
func (w *fixture) record() { w.recordBy(servedRecorder{w}) }

func (w *fixture) recordBy(recorder views.ServedLog) {
	ended, end := context.WithCancel(w.T.Context())
	end()
	w.Must(w.Prices.Steps().Run(ended, "first", recorder, slog.New(slog.DiscardHandler)))
	w.Must(w.Store.Record(w.T.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
}

type servedRecorder struct{ w *fixture }

func (l servedRecorder) WriteServed(ctx context.Context, record *eventsv1.ServedRecord) error {
	r := l.w.append(schemas.TopicServed, 0, record.Replica, record.Time, record)
	l.w.flush()
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicServed, Offset: r.Offset}, record)
	return b.Insert(ctx, l.w.Store, "")
}

// servedNumber is a number as it was answered at an instant.
type servedNumber struct {
	number string
	value  float64
	at     time.Time
}

// shared has a minute in which sources report coins that share a symbol anew, and venues trade one of them.
func (w *fixture) shared(random *rand.Rand) {
	end := w.Now.Truncate(time.Minute).Add(time.Minute)
	w.Now = end.Add(-20 * time.Second)
	for i, coin := range []string{"bitcoin", "ethereum", "btc-a", "btc-b"} {
		if w.ended != 0 && random.IntN(3) == 0 {
			continue
		}
		symbol := []string{"BTC", "ETH", "BTC", "BTC"}[i]
		w.outside[coin] = [2]string{symbol, coin}
		w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: coin, Symbol: symbol, Name: coin, Price: plain(100 + 20*random.Float64()), CirculatingSupply: plain(1e6 * random.Float64()),
			Volume24H: "90000", Change24H: plain(random.Float64() - 0.5), IngestTime: w.Now.UnixNano()})
	}
	if random.IntN(2) == 0 {
		price := 100 + 20*random.Float64() // near enough to what sources report
		w.traded("bitcoin", end.Add(-time.Minute), price, price, price, price, 1e6)
	}
	w.close(end.UnixNano())
}

// overridden is an operator's word about a symbol.
func (w *fixture) overridden(symbol, coin string) {
	rec := &eventsv1.ReferenceRecord{Producer: "operator", Body: &eventsv1.ReferenceRecord_Override{Override: &eventsv1.SymbolOverride{Source: "gate", Symbol: symbol, CoinId: coin, Time: w.Now.UnixNano()}}}
	w.append(schemas.TopicReferenceRaw, 0, "operator", w.Now.UnixNano(), rec)
	w.flush()
	w.Said(rec)
	w.heard()
}

// resolved are the numbers of answers to what symbols mean.
func (w *fixture) resolved(random *rand.Rand) (numbers []servedNumber) {
	for _, asked := range []string{"symbol=BTC", "symbol=BTC&price=" + plain(100+20*random.Float64()), "symbol=ETH&price=110", "symbol=HOT&source=gate", "symbol=0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce"} {
		var body symbols.ResolutionBody
		w.read("/api/v1/symbols/resolve?"+asked, &body)
		numbers = append(numbers, servedNumber{"symbol/" + body.Data.Question + "/confidence", float64(*body.Data.Confidence), w.Now})
		for _, c := range body.Data.Candidates {
			numbers = append(numbers, servedNumber{"symbol/" + body.Data.Question + "/score/" + c.CoinID, float64(c.Score), w.Now})
		}
	}
	return numbers
}

// Which coin a symbol means follows ranks, prices, contracts and overrides, each of which changes at any time. As of an instant it is explained by those of the instant.
func TestWhatSymbolsMeantIsReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.outside = map[string][2]string{}
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.remember()
	contract := func(coin string) *eventsv1.ReferenceRecord {
		return &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{Source: "coingecko", SourceId: coin, Part: "list", Symbol: "BTC", Name: coin,
			Platforms: []*eventsv1.Platform{{Name: "ethereum", Address: "0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce"}}, IngestTime: w.Now.UnixNano()}}}
	}
	w.sourced(contract("btc-a"))
	w.shared(random)
	w.Must(w.figures.Refresh(t.Context()))
	var numbers []servedNumber
	for range 12 {
		w.Now = w.Now.Add(time.Duration(1+random.IntN(20_000)) * time.Millisecond)
		switch random.IntN(4) {
		case 0:
			w.shared(random)
		case 1:
			w.tick("bitcoin", "kraken", "XBT/USD", 100+20*random.Float64(), "USD", 1)
			w.publish("bitcoin")
		case 2:
			w.sourced(contract([]string{"btc-a", "btc-b"}[random.IntN(2)]))
		case 3:
			w.overridden("HOT", []string{"bitcoin", "ethereum", schemas.NoCoin}[random.IntN(3)])
		}
		w.Now = w.Now.Add(time.Duration(1+random.IntN(3000)) * time.Millisecond)
		numbers = append(numbers, w.resolved(random)...)
	}
	w.Now = w.Now.Add(5 * time.Minute)
	w.record()
	random.Shuffle(len(numbers), func(a, b int) { numbers[a], numbers[b] = numbers[b], numbers[a] })
	for _, was := range numbers[:30] {
		n := w.reproduced(was.number, "?asOf="+was.at.Format(time.RFC3339Nano), true)
		if n.Value == nil || *n.Value != was.value {
			t.Errorf("%s as of %s is explained as %v, and was %v", was.number, was.at, n.Value, was.value)
		}
	}
	then := "?asOf=" + numbers[0].at.Format(time.RFC3339Nano)
	w.answered(map[string]int{"symbol/general/BTC/price=110/quote=EUR/confidence" + then: http.StatusBadRequest, "symbol/general/BTC/price=110/quote=USD/confidence" + then: http.StatusOK,
		"symbol/general/BTC/confidence?asOf=2026-11-20T09:00:00Z": http.StatusGone})
}

// summed are the numbers of answers that are made of many rows.
func (w *fixture) summed() (numbers []servedNumber) {
	var categories coins.CategoriesBody
	w.read("/api/v1/coins/categories", &categories)
	for _, c := range categories.Data {
		for field, value := range map[string]*float64{"marketCap": c.MarketCap, "volume24h": c.Volume24h, "marketCapChangePercentage24h": c.MarketCapChangePercentage24h} {
			if value != nil {
				numbers = append(numbers, servedNumber{"category/" + c.ID + "/" + field, *value, w.Now})
			}
		}
	}
	var movers globalstats.MoversBody
	w.read("/api/v1/global-stats/movers?segment=1-50&min_volume=0", &movers)
	for _, m := range movers.Data.Movers {
		numbers = append(numbers, servedNumber{"movers/1-50/0/totalGainers", float64(m.TotalGainers), w.Now}, servedNumber{"movers/1-50/0/totalLosers", float64(m.TotalLosers), w.Now})
	}
	return numbers
}

// Sums over categories and numbers of movers follow categories, rows, and prices of a day ago by candles, each of which is read at a pace of its own and changed later. As of an
// instant they are explained by those of the instant, to records.
func TestSumsAsTheyWereServedAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.outside = map[string][2]string{}
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.remember()
	traded := func(price float64) {
		for minute := range 20 {
			for _, coin := range []string{"bitcoin", "ethereum"} {
				closed := price + 20*random.Float64()
				w.AddCandles(&eventsv1.Candle{CoinId: coin, Start: w.Now.Truncate(time.Hour).Add(-24*time.Hour + time.Duration(minute-10)*time.Minute).UnixNano(), Open: closed, High: closed, Low: closed, Close: closed, Volume: "1"})
			}
		}
	}
	traded(100)
	categorize := func() {
		var categories []string
		for n := range 3 {
			if random.IntN(2) == 0 {
				categories = append(categories, fmt.Sprint("Category ", n))
			}
		}
		coin := []string{"bitcoin", "ethereum", "btc-a"}[random.IntN(3)]
		w.sourced(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{Source: "coingecko", SourceId: coin, Part: "detail", Symbol: coin, Name: coin,
			Categories: categories, IngestTime: w.Now.UnixNano()}}})
	}
	for range 4 {
		categorize()
	}
	w.shared(random)
	w.Must(w.figures.Refresh(t.Context()))
	var numbers []servedNumber
	for range 14 {
		w.Now = w.Now.Add(time.Duration(1+random.IntN(9_000)) * time.Millisecond)
		switch random.IntN(3) {
		case 0:
			w.shared(random)
		case 1:
			w.Must(w.figures.Refresh(t.Context()))
		case 2:
			categorize()
		}
		w.record()
		w.Now = w.Now.Add(time.Millisecond)
		numbers = append(numbers, w.summed()...)
	}
	w.shared(random)
	w.Must(w.figures.Refresh(t.Context()))
	last := "?asOf=" + w.Now.Format(time.RFC3339Nano)
	w.Now = w.Now.Add(time.Minute)
	if slices.ContainsFunc(w.Catalog.Snapshot().Coins, func(c *views.CatalogCoin) bool { return c.Rank > 0 && c.Figures.DayAgo > 0 }) {
		if n := w.reproduced("movers/1-50/0/totalGainers", last, false); !strings.Contains(n.Note, "does not have the record") {
			t.Errorf("before it is recorded what candles showed: got %+v", n)
		}
	}
	w.Now = w.Now.Add(5 * time.Minute)
	w.record()
	traded(1000)
	w.shared(random)
	w.Must(w.figures.Refresh(t.Context()))
	categorize()
	random.Shuffle(len(numbers), func(a, b int) { numbers[a], numbers[b] = numbers[b], numbers[a] })
	for _, was := range numbers[:25] {
		n := w.reproduced(was.number, "?depth=2&asOf="+was.at.Format(time.RFC3339Nano), true)
		if n.Value == nil || *n.Value != was.value {
			t.Errorf("%s as of %s is explained as %v, and was %v", was.number, was.at, n.Value, was.value)
		}
		for _, in := range n.Inputs {
			if in.Reproduced == nil || !*in.Reproduced {
				t.Errorf("%s as of %s: its input %s is not reproduced", was.number, was.at, in.Number)
			}
			if i := slices.IndexFunc(in.Inputs, func(n *explain.Node) bool { return strings.HasPrefix(n.Number, "figures/") }); i >= 0 && (len(in.Inputs[i].Records) != 1 || in.Inputs[i].Records[0].Topic != schemas.TopicServed) {
				t.Errorf("%s as of %s: %s leads to no record of %s", was.number, was.at, in.Inputs[i].Number, schemas.TopicServed)
			}
		}
	}
}

// mirrored records what was served under two names.
type mirrored struct{ servedRecorder }

func (l mirrored) WriteServed(ctx context.Context, record *eventsv1.ServedRecord) error {
	also := proto.CloneOf(record)
	also.Replica = "second"
	return errors.Join(l.servedRecorder.WriteServed(ctx, record), l.servedRecorder.WriteServed(ctx, also))
}

// As of a position the market is that of the replica's minute, which another may be ahead of.
func TestTheMarketOfAPositionIsThatOfItsReplica(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.outside = map[string][2]string{}
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.remember()
	for range 100 { // the log is longer than what the fixture counts of it
		w.sourcesClock(w.Now.UnixNano())
	}
	numbers := []string{"market/ethereum/price", "global/totalMarketCap", "sentiment/all/positive"}
	served := func() (values []float64) {
		w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: "ethereum", Symbol: "ETH", Name: "ethereum", Price: plain(100 + 20*random.Float64()), CirculatingSupply: plain(1e6 * random.Float64()),
			Change24H: plain(float64(len(numbers)) - 2), IngestTime: w.Now.UnixNano()})
		w.close(w.Now.Truncate(time.Minute).Add(time.Minute).UnixNano())
		w.sourced(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{Source: "coingecko", SourceId: "ethereum", Part: "detail", Symbol: "ETH",
			Name: "ethereum", IngestTime: w.Now.UnixNano()}}})
		w.Must(w.figures.Refresh(t.Context()))
		for _, number := range numbers {
			values = append(values, *w.ask(number, "").Value)
		}
		return values
	}
	behind := served()
	w.recordBy(mirrored{servedRecorder{w}})
	w.Now = w.Now.Add(10 * time.Second)
	ahead := served()
	w.Now = w.Now.Add(time.Second)
	at := w.Now
	w.Now = w.Now.Add(time.Minute)
	w.record()
	w.Must(servedRecorder{w}.WriteServed(t.Context(), &eventsv1.ServedRecord{Replica: "second", Time: w.Now.UnixNano()}))
	for replica, want := range map[string][]float64{"first": ahead, "second": behind} {
		for i, number := range numbers {
			n := w.reproduced(number, "?asOf="+position.Position{At: at, Replica: replica}.String(), true)
			if n.Value == nil || *n.Value != want[i] {
				t.Errorf("%s, as the %s served it: got %+v, want %v", number, replica, n, want[i])
			}
		}
	}
	if behind[0] == ahead[0] {
		t.Error("nothing moved")
	}
}
