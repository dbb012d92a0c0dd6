package explain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// servedLog writes what was served to the log.
type servedLog struct{ *fixture }

func (l servedLog) WriteServed(_ context.Context, record *eventsv1.ServedRecord) error {
	l.append(schemas.TopicServed, 0, record.Replica, record.Time, record)
	l.flush()
	return nil
}

// stable lets two stablecoins wander for some minutes, and has their statistics served and recorded.
func (w *fixture) stable(random *rand.Rand) {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = start
	w.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: "1.0837", Date: "2026-11-20", IngestTime: start.UnixNano()})
	w.said("defillama", "1", "tether", "USDT", "peggedUSD", "5000000")
	w.said("defillama", "2", "euro-coin", "EURC", "peggedEUR", "4000000")
	const minutes = 45
	for i := range minutes {
		end := start.Add(time.Duration(i+1) * time.Minute)
		for coin, target := range map[string]float64{"tether": 1, "euro-coin": 1.0837} {
			if random.IntN(5) == 0 {
				continue // nobody traded
			}
			p := target * (1 + (random.Float64()-0.5)/50)
			w.traded(coin, end.Add(-time.Minute), p, p, p, p, 1e6)
		}
		w.close(end.UnixNano())
	}
	for coin, price := range map[string]float64{"tether": 0.9991, "euro-coin": 1.0850} {
		w.tick(coin, "kraken", coin+"/USD", price, "USD", 1)
		w.publish(coin)
	}
	w.Pulse()
	w.Now = w.Now.Add(9 * time.Second)
	steps := w.Prices.Steps()
	w.statistics.RememberBy(func() time.Time { return w.Now }, steps)
	steps.Begin(func() time.Time { return w.Now })
	w.Must(w.statistics.Refresh(w.T.Context()))
	ended, end := context.WithCancel(w.T.Context())
	end()
	w.Must(steps.Run(ended, "replica", servedLog{w}, slog.New(slog.DiscardHandler)))
	w.Now = w.Now.Add(20 * time.Second)
}

// said is what a source reports of a stablecoin.
func (w *fixture) said(source, id, coin, symbol, peg, circulating string) {
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Stablecoin{Stablecoin: &eventsv1.Stablecoin{
		Source: source, SourceId: id, CoinId: coin, Symbol: symbol, Name: coin, PegType: peg, Price: "1.001", Circulating: circulating, IngestTime: w.Now.UnixNano()}}}
	w.append(schemas.TopicReferenceRaw, 0, source, w.Now.UnixNano(), rec)
	w.flush()
	w.Said(rec)
}

// explained are the explanations that an answer holds within itself.
func (w *fixture) explained(path string) (numbers []string, in explain.Inlined) {
	w.T.Helper()
	response, err := http.Get(w.Base() + path)
	w.Must(err)
	defer response.Body.Close()
	var body struct{ Explanations explain.Inlined }
	w.Must(json.NewDecoder(response.Body).Decode(&body))
	for _, n := range body.Explanations.Numbers {
		numbers = append(numbers, n.Number)
		if n.Reproduced == nil || !*n.Reproduced || n.Value == nil {
			text, _ := json.Marshal(n)
			w.T.Errorf("%s: %s is not reproduced: %.700s", path, n.Number, text)
		}
	}
	return numbers, body.Explanations
}

// What an answer is asked to explain it explains within itself: numbers of stablecoins, of earn products and of movers, down to the log.
func TestAnswersExplainTheirNumbers(t *testing.T) {
	w := newFixture(t)
	w.stable(streamtest.Rand(t))
	w.offered(&eventsv1.Rate{Source: "okx-earn", Project: "okx", Category: "lending", Pool: "USDT/flexible", Symbol: "USDT", CoinId: "tether", Raw: "0.08", RawUnit: "apr_fraction",
		Compounding: "none", Interval: int64(time.Hour), IngestTime: w.Now.UnixNano(), MinAmount: "10", MaxAmount: "5000", LockupDays: proto.Float64(7), NoticeDays: proto.Float64(2),
		Tiers: []*eventsv1.RateTier{{From: "0", To: "100", Raw: "0.1"}, {From: "100", Raw: "0.05"}}})
	w.Now = w.Now.Add(90 * time.Second)
	for path, want := range map[string][]string{
		"/api/v1/stablecoins/index?explain=1": {"peg/tether", "peg/tether/price", "peg/tether/marketCap", "peg/tether/circulating", "peg/tether/target", "peg/tether/stabilityScore",
			"peg/euro-coin/meanBps", "peg/euro-coin/p95Bps", "peg/euro-coin/nowBps", "peg/euro-coin/samples"},
		"/api/v1/stablecoins/EURC/peg-stability?window=1h&explain=1": {"peg/euro-coin", "peg/euro-coin/target", "peg/euro-coin/stabilityScore"},
		"/api/v1/earn/products?explain=true": {"earn/okx:tether:lending/okx-earn:USDT/flexible/rate", "earn/okx:tether:lending/okx-earn:USDT/flexible/confidence",
			"earn/okx:tether:lending/okx-earn:USDT/flexible/lockupDays", "earn/okx:tether:lending/okx-earn:USDT/flexible/cap",
			"earn/okx:tether:lending/okx-earn:USDT/flexible/tiers/100/rate", "earn/okx:tether:lending/okx-earn:USDT/flexible/tiers/0/to", "earn/okx:tether:lending/okx-earn:USDT/flexible/tiers/100/from"},
		"/api/v1/prices/summary?explain=1": {"price/tether", "price/tether/providers", "price/euro-coin/min", "price/euro-coin/max", "price/euro-coin/confidence", "price/euro-coin/score",
			"price/euro-coin/volume24h", "price/euro-coin/rejected"},
	} {
		numbers, in := w.explained(path)
		for _, number := range want {
			if !slices.Contains(numbers, number) {
				t.Errorf("%s explains %s, and not %s", path, numbers, number)
			}
		}
		if history := strings.Contains(path, "window="); in.LeftOut != 0 && !history { // whose points come last
			t.Errorf("%s leaves out %d numbers", path, in.LeftOut)
		}
	}
	if n := w.reproduced("peg/tether/meanBps", "", true); len(n.Records) != 1 || n.Records[0].Topic != schemas.TopicServed || n.LeftOut == nil {
		t.Errorf("the statistics are at %v, with %v left out", n.Records, n.LeftOut)
	}
	n := w.reproduced("earn/okx:tether:lending/okx-earn:USDT/flexible/maxRate", "?depth=2", true)
	if len(n.Records) != 1 || n.Records[0].Topic != schemas.TopicEarn || n.Method.Version != 3 || len(n.Inputs) != 1 || len(n.Inputs[0].Inputs) != 1 || n.Inputs[0].Inputs[0].Records[0].Topic != schemas.TopicRatesRaw {
		text, _ := json.Marshal(n)
		t.Errorf("an earn product does not lead to what its source reported: %s", text)
	}

	// What became of an offer counts, though its entry reports nothing of it.
	silent := schemas.NewEarnVariant(w.offered(&eventsv1.Rate{Source: "gate-earn", Project: "gate", Category: "staking", Pool: "ETH", Symbol: "ETH", CoinId: "ethereum", Raw: "0.03", RawUnit: "apy_fraction",
		Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()}), schemas.Minute(w.Now.UnixNano())+2*minute)
	silent.Status = schemas.EarnSilent
	silent.Confidence = schemas.EarnConfidence(silent)
	offered := w.Now
	w.Now = w.Now.Add(3 * time.Minute)
	w.earned(silent)
	w.reproduced("earn/okx:tether:lending/okx-earn:USDT/flexible/rate", "?asOf="+offered.Add(2*time.Minute).Format(time.RFC3339Nano), true)
	if n := w.reproduced("earn/gate:ethereum:staking/gate-earn:ETH/confidence", "", true); *n.Value != 0.5 {
		t.Errorf("the confidence of a silent offer is %g", *n.Value)
	}
}

// A minute that was restated, and a row that the log has otherwise, are not called reproduced.
func TestNumbersThatDifferAreNotReproduced(t *testing.T) {
	w := newFixture(t)
	w.stable(rand.New(rand.NewPCG(1, 2)))
	w.reproduced("peg/tether/p95Bps", "", true)
	w.AddCandles(&eventsv1.Candle{CoinId: "tether", Start: time.Date(2026, 11, 20, 10, 20, 0, 0, time.UTC).UnixNano(), Open: 2, High: 2, Low: 2, Close: 2, Volume: "1"})
	w.reproduced("peg/tether/meanBps", "", false)
	w.reproduced("peg/tether/stabilityScore", "", false)
	row := schemas.NewEarnVariant(w.offered(&eventsv1.Rate{Source: "gate-earn", Project: "gate", Category: "staking", Pool: "ETH", Symbol: "ETH", CoinId: "ethereum", Raw: "0.03", RawUnit: "apy_fraction",
		Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()}), schemas.Minute(w.Now.UnixNano())+2*minute)
	row.Apy++
	w.Now = w.Now.Add(3 * time.Minute)
	w.earned(row)
	if n := w.reproduced("earn/gate:ethereum:staking/gate-earn:ETH/apy", "", false); n.Recomputed == nil || *n.Recomputed != 3 {
		t.Errorf("recomputed %v, want 3", n.Recomputed)
	}
}

// An answer is the one without explanations, and they are added to it: at most 20, the others are counted; what is not a number of ours is no reason to fail.
func TestExplanationsAreAddedToAnAnswer(t *testing.T) {
	w := newFixture(t)
	w.stable(rand.New(rand.NewPCG(3, 4)))
	for _, pools := range []string{"A", "B", "C", "D"} {
		w.offered(&eventsv1.Rate{Source: "okx-earn", Project: "okx", Category: "lending", Pool: pools, Symbol: "USDT", CoinId: "tether", Raw: "0.08", RawUnit: "apr_fraction", Compounding: "none",
			Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()})
	}
	w.Now = w.Now.Add(90 * time.Second)
	w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano(), Watermark: w.Now.UnixNano()}}})
	plain, whole := w.Get("/api/v1/earn/products"), w.Get("/api/v1/earn/products?explain=1")
	if before, _, ok := strings.Cut(whole, `,"explanations":`); !ok || before+"}" != plain {
		t.Errorf("the answer was %.300s, and with explanations %.300s", plain, whole)
	}
	_, in := w.explained("/api/v1/earn/products?explain=1")
	if len(in.Numbers) != 20 || in.LeftOut != 4*6-20 {
		t.Errorf("%d numbers are explained and %d left out", len(in.Numbers), in.LeftOut)
	}
	for path, want := range map[string]string{
		"/api/v1/earn/changes?explain=1":      "is not a parameter of this operation",
		"/api/v1/earn/products?explain=0":     plain[4:],
		"/api/v1/earn/products?explain=maybe": "must be true or false",
	} {
		if got := w.Get(path); !strings.Contains(got, want) {
			t.Errorf("%s: got %.300s, want %.100s", path, got, want)
		}
	}
	for number, want := range map[string]string{
		"earn/okx:tether:lending/okx-earn:A/rates":       "did you mean earn/okx:tether:lending/okx-earn:A/rate?",
		"earn/okx:tether:lending/okx-earn:AA/rate":       "did you mean earn/okx:tether:lending/okx-earn:A/rate?",
		"earn/okx:tether:lending/okx-earn:A/tiers/0/rat": "did you mean earn/okx:tether:lending/okx-earn:A/tiers/0/rate?",
		"earn/nobody:tether:lending/okx-earn:A/rate":     "there is no number",
		"peg/tether/meanBp":                              "did you mean peg/tether/meanBps?",
		"peg/bitcoin/meanBps":                            "bitcoin has no peg",
		"rate/okx/lending/" + "okx-earn%7Clending%7CA":   `"reproduced":true`,
	} {
		if got := w.Get(fmt.Sprint("/api/v1/explain/", number)); !strings.Contains(got, want) {
			t.Errorf("%s: got %.400s, want %s", number, got, want)
		}
	}
}
