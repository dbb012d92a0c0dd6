package explain_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// pays is what a provider pays for lending a coin, received some time ago.
func (w *fixture) pays(provider, coin, pool, raw, tvl string, ago time.Duration) {
	w.offered(&eventsv1.Rate{Source: provider, Project: provider, Category: schemas.RateLending, Pool: pool, Symbol: coin, CoinId: coin, Raw: raw, RawUnit: "apy_fraction", TvlUsd: tvl,
		Interval: int64(time.Hour), IngestTime: w.Now.Add(-ago).UnixNano()})
}

// fixings writes those of a day, as the fold makes them of its rows.
func (w *fixture) fixings(midnight time.Time, written time.Duration) map[string]*eventsv1.EarnFixing {
	quotes, _ := schemas.EarnQuotes(w.Prices.Coins(), slices.Collect(maps.Values(w.variants)), midnight.UnixNano())
	all := map[string]*eventsv1.EarnFixing{}
	for i, segment := range schemas.EarnSegments {
		if f := schemas.NewEarnFixing(segment, quotes, midnight.UnixNano(), midnight.Add(written).UnixNano()); f != nil {
			w.fixed(f, uint32(i))
			all[segment] = f
		}
	}
	return all
}

func (w *fixture) fixed(f *eventsv1.EarnFixing, index uint32) {
	rec := &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: f}}
	if f.Revision == 0 {
		rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: f.Time, Index: 1_000_000 + index}
	}
	w.earnRecord("", f.Time, rec)
}

// twoDays has offers of three providers on two days, of which the fixings are written, the second with other rates.
func twoDays(t *testing.T) (w *fixture, first, second map[string]*eventsv1.EarnFixing) {
	w = newFixture(t)
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for i, raws := range [][]string{{"0.03", "0.05", "0.04", "0.08"}, {"0.031", "0.0625", "0.043", "0.0801"}} {
		midnight := day.AddDate(0, 0, i)
		w.Now = midnight.Add(-20 * time.Minute)
		w.pays("okx", "tether", "USDT", raws[0], "", 0)
		w.pays("gate", "tether", "USDT", raws[1], "", 0)
		w.pays("aave-v3", "tether", "a", raws[2], "3000000.1", 0)
		w.pays("aave-v3", "tether", "b", raws[3], "1000000", 0)
		w.pays("aave-v3", "tether", "dust", "0.5", "", 0)          // weighs nothing beside those with a TVL
		w.pays("kraken", "tether", "USDT", "0.2", "", 4*time.Hour) // not fresh enough for a fixing
		w.pays("okx", "euro-coin", "EURC", "0.6", "", 0)           // is of another currency
		if all := w.fixings(midnight, 0); i == 0 {
			first = all
		} else {
			second = all
		}
	}
	w.Now = day.AddDate(0, 0, 1).Add(90 * time.Second)
	return w, first, second
}

// The benchmark names its numbers, and each is made again of the entries of rates, down to what sources reported.
func TestTheBenchmarkIsExplained(t *testing.T) {
	w, first, second := twoDays(t)
	want := []string{"earn-benchmark/overall/2026-11-21/median", "earn-benchmark/overall/2026-11-21/tvlWeighted", "earn-benchmark/overall/2026-11-21/providerCount", "earn-benchmark/overall/2026-11-21/tvl",
		"earn-benchmark/cefi/2026-11-21/median", "earn-benchmark/defi/2026-11-21/tvlWeighted", "earn-benchmark/overall/median", "earn-benchmark/overall/providerCount",
		"earn-benchmark/overall/2026-11-21/change1d", "earn-benchmark/overall/2026-11-20/median"}
	numbers, in := w.explained("/api/v1/earn/benchmark?explain=1")
	for _, number := range want {
		if !slices.Contains(numbers, number) {
			t.Errorf("the benchmark explains %s, and not %s", numbers, number)
		}
	}
	if in.LeftOut != 0 {
		t.Errorf("%d numbers are left out", in.LeftOut)
	}
	for number, want := range map[string]float64{
		"overall/2026-11-20/median": first["overall"].Median, "overall/2026-11-21T00:00:00.000Z/median": second["overall"].Median, "defi/2026-11-21/tvl": second["defi"].TvlUsd,
		"cefi/2026-11-21/median": second["cefi"].Median, "overall/2026-11-21/change1d": second["overall"].Median - first["overall"].Median,
		// The current value counts what is offered, fresh or not.
		"overall/providerCount": 4, "overall/2026-11-21/providerCount": 3, "cefi/2026-11-20T23:50:00Z/providerCount": 3, "cefi/2026-11-20T23:50:00Z/median": 6.25,
	} {
		if n := w.reproduced("earn-benchmark/"+number, "", true); *n.Value != want {
			t.Errorf("%s is %g, want %g", number, *n.Value, want)
		}
	}
	n := w.reproduced("earn-benchmark/defi/2026-11-21/tvlWeighted", "?depth=3", true)
	if len(n.Records) != 1 || n.Records[0].Topic != schemas.TopicEarn || len(n.Inputs) != 2 || n.Inputs[0].Number != "quote/aave-v3/rate" || n.Inputs[1].Number != "quote/aave-v3/tvl" ||
		len(n.Inputs[0].Inputs) != 3 || n.Inputs[0].Inputs[0].Number != "earn/aave-v3:tether:lending/aave-v3:a/rate" || !strings.HasPrefix(n.Inputs[0].Inputs[2].Note, "does not count") ||
		n.Inputs[0].Inputs[1].Records[0].Topic != schemas.TopicRates || n.Inputs[0].Inputs[0].Inputs[0].Inputs[0].Records[0].Topic != schemas.TopicRatesRaw || !*n.Inputs[1].Reproduced {
		text, _ := json.Marshal(n)
		t.Errorf("a fixing does not lead to what sources reported: %s", text)
	}
	if n = w.reproduced("earn-benchmark/overall/2026-11-21/median", "", true); len(n.Inputs) != 3 || n.Inputs[0].Inputs != nil || len(n.Inputs[0].Records) != 3 {
		text, _ := json.Marshal(n)
		t.Errorf("with one level: %s", text)
	}
	for number, want := range map[string]string{
		"overal/2026-11-20/median":                                "did you mean earn-benchmark/overall/2026-11-20/median?",
		"overall/2026-11-20/medan":                                "did you mean earn-benchmark/overall/2026-11-20/median?",
		"overall/change1d":                                        "is of the fixing of a day",
		"overall/yesterday/median":                                "the day of a fixing must be as",
		"overall/2026-11-19/median":                               "there is no fixing of overall of 2026-11-19",
		"overall/2026-11-20/change1d":                             "there is no fixing of overall of 2026-11-19",
		"overall/2026-11-22/median":                               "had not come by",
		"overall/2026-11-21/median?asOf=2026-11-20T23:00:00Z":     "had not come by",
		"defi/2026-11-20T01:00:00Z/tvl?asOf=2026-11-20T00:30:00Z": "had not come by",
		"overall/2019-11-19/median":                               "includes 1825 days of history",
		"overall/2026-11-19T12:00:00Z/median":                     "the log has no earn products of the day before",
	} {
		if got := w.Get("/api/v1/explain/earn-benchmark/" + number); !strings.Contains(got, want) {
			t.Errorf("%s: got %.400s, want %s", number, got, want)
		}
	}
}

// Before the first midnight the benchmark is of now, and so are the names of its numbers; of a segment without providers their number is explained.
func TestTheProvisionalBenchmarkIsExplained(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.pays("okx", "tether", "USDT", "0.03", "", 0)
	w.Now = w.Now.Add(90 * time.Second)
	numbers, _ := w.explained("/api/v1/earn/benchmark?explain=1")
	for _, want := range []string{"earn-benchmark/overall/2026-11-20T10:00:00.000Z/median", "earn-benchmark/defi/2026-11-20T10:00:00.000Z/providerCount"} {
		if !slices.Contains(numbers, want) {
			t.Errorf("the benchmark explains %s, and not %s", numbers, want)
		}
	}
	// As of then it is what it was, whatever came since.
	then := "?asOf=" + w.Now.Format(time.RFC3339)
	w.Now = w.Now.Add(10 * time.Minute)
	w.pays("okx", "tether", "USDT", "0.06", "", 0)
	w.Now = w.Now.Add(time.Minute)
	if n := w.reproduced("earn-benchmark/cefi/median", then, true); *n.Value != 3 {
		t.Errorf("it was %g, want 3", *n.Value)
	}
	if n := w.reproduced("earn-benchmark/cefi/median", "", true); *n.Value != 6 {
		t.Errorf("it is %g, want 6", *n.Value)
	}
}

// A correction takes the place of a fixing from when it was written on, and is made again without the providers that it leaves out. A fixing that
// is written late is of what came before its midnight.
func TestCorrectionsAndLateFixingsAreExplained(t *testing.T) {
	w, _, second := twoDays(t)
	w.Now = w.Now.Add(20 * time.Minute)
	correction := schemas.CorrectEarnFixing(second["overall"], []string{"gate"}, "gate sent nonsense", w.Now.UnixNano())
	w.fixed(correction, 0)
	w.Now = w.Now.Add(time.Minute)
	n := w.reproduced("earn-benchmark/overall/2026-11-21/median", "", true)
	if *n.Value != correction.Median || n.Note != "takes the place of 2026-11-21/overall/0: gate sent nonsense" || len(n.Records) != 1 || len(n.Inputs) != 2 {
		text, _ := json.Marshal(n)
		t.Errorf("the correction is %s", text)
	}
	if n = w.reproduced("earn-benchmark/overall/2026-11-21/median", "?asOf=2026-11-21T00:10:00Z", true); *n.Value != second["overall"].Median || n.Note != "" {
		t.Errorf("before it the fixing was %g, %s", *n.Value, n.Note)
	}
	w.reproduced("earn-benchmark/overall/2026-11-21/change1d", "", true)
	numbers, _ := w.explained("/api/v1/earn/benchmark?explain=1")
	if !slices.Contains(numbers, "earn-benchmark/overall/2026-11-21/median") {
		t.Errorf("the corrected benchmark explains %s", numbers)
	}

	// The service stands still from 22:00, longer than within what each rate is repeated, until it goes on at three o'clock with another rate.
	midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	w.Now = midnight.Add(-2 * time.Hour)
	w.pays("okx", "tether", "USDT", "0.011", "", 0)
	w.pays("gate", "tether", "USDT", "0.012", "", 0)
	late := w.fixings(midnight, 3*time.Hour)
	w.Now = midnight.Add(3 * time.Hour)
	w.pays("okx", "tether", "USDT", "0.099", "", 0)
	w.Now = w.Now.Add(time.Minute)
	if n = w.reproduced("earn-benchmark/cefi/2026-11-22/median", "", true); *n.Value != late["cefi"].Median || n.Method.Version != schemas.EarnMethodology {
		t.Errorf("the late fixing is %g, want %g", *n.Value, late["cefi"].Median)
	}
}

// What the log has otherwise than it was published is not called reproduced. A fixing of which the log has no rates any more is made again of the quotes that it has.
func TestABenchmarkThatDiffersIsNotReproduced(t *testing.T) {
	w, first, second := twoDays(t)
	number := "earn-benchmark/cefi/2026-11-21/"
	right := *w.reproduced(number+"median", "", true).Value
	w.Now = w.Now.Add(time.Minute)
	wrong := proto.CloneOf(second["cefi"])
	wrong.Median++
	wrong.Quotes[0].Apy += 2
	w.earnRecord("", wrong.Time, &eventsv1.EarnRecord{Mark: &eventsv1.Mark{LogicVersion: 9, Offset: wrong.Time, Index: 2_000_000}, Body: &eventsv1.EarnRecord_Fixing{Fixing: wrong}})
	if n := w.reproduced(number+"median", "", false); *n.Value != right+1 || n.Recomputed == nil || *n.Recomputed != right {
		t.Errorf("%v was recomputed as %v, want %g", n.Value, n.Recomputed, right)
	}
	// The other segments are as they were, and so is the day before.
	w.reproduced("earn-benchmark/overall/2026-11-21/change1d", "", true)
	row := proto.CloneOf(w.variants["gate:tether:lending gate:USDT"])
	row.Apy, row.Time = row.Apy+1, schemas.Minute(w.Now.UnixNano())
	w.Now = w.Now.Add(time.Minute)
	w.earned(row)
	w.reproduced("earn-benchmark/overall/tvlWeighted", "", true)
	w.reproduced("earn-benchmark/overall/median", "", false)
	w.reproduced("earn-benchmark/cefi/median", "?asOf="+w.Now.Format(time.RFC3339), false)
	newer := proto.CloneOf(second["defi"])
	newer.MethodologyVersion = schemas.EarnMethodology + 1
	w.earnRecord("", newer.Time, &eventsv1.EarnRecord{Mark: &eventsv1.Mark{LogicVersion: 9, Offset: newer.Time, Index: 2_000_001}, Body: &eventsv1.EarnRecord_Fixing{Fixing: newer}})
	if n := w.reproduced("earn-benchmark/defi/2026-11-21/median", "", false); n.Method.Version != newer.MethodologyVersion || !strings.Contains(n.Note, "version 2 of the formulas") {
		t.Errorf("a fixing by other formulas: version %d, %s", n.Method.Version, n.Note)
	}

	begins := kadm.Offsets{}
	begins.AddOffset(schemas.TopicRates, 0, 8, -1)
	_, err := kadm.NewClient(w.client).DeleteRecords(t.Context(), begins)
	w.Must(err)
	n := w.reproduced("earn-benchmark/overall/2026-11-20/median", "?depth=2", true)
	if *n.Value != first["overall"].Median || !strings.HasPrefix(n.Note, "computed again of the quotes that its record states") || len(n.Inputs) != 3 || n.Inputs[0].Reproduced != nil ||
		!slices.Equal(n.Inputs[0].Records, n.Records) || len(n.Records) != 1 {
		text, _ := json.Marshal(n)
		t.Errorf("without rates: %s", text)
	}
	past := w.reproduced("earn-benchmark/overall/median", "?asOf=2026-11-20T00:00:00Z", false)
	if !strings.Contains(past.Note, "no longer has the rates of then") {
		t.Errorf("without rates the value of an instant has the note %q", past.Note)
	}
}
