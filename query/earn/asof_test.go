package earn_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// earnAsked are the operations that answer the past.
var earnAsked = []string{
	"/api/v1/earn/products?limit=500&", "/api/v1/earn/products?symbol=USDT&limit=3&offset=1&", "/api/v1/earn/products?category=staking&min_confidence=0.5&",
	"/api/v1/earn/benchmark?", "/api/v1/earn/benchmark?segment=defi&history_days=2&",
	"/api/v1/earn/changes?since=2026-01-05T20:00:00Z&limit=1000&", "/api/v1/earn/changes?since=2026-01-05T22:40:00Z&symbol=USDC&", "/api/v1/earn/changes?since=2026-01-05T22:00:00Z&provider=okx&limit=2&",
}

// offer is a variant as the fold of earn products has it.
type offer struct {
	provider, coin, symbol, category, pool, status string
	apy                                            float64
	written                                        time.Time
	changed                                        bool
}

// drawnOffers write variants as the fold does: when something changed, and those that are open or silent once an hour.
type drawnOffers struct {
	*querytest.Fixture
	*rand.Rand
	offers []*offer
}

func (w *drawnOffers) minute(end time.Time) {
	for _, o := range w.offers {
		switch n := w.IntN(200); {
		case n < 4:
			o.apy, o.changed = float64(w.IntN(900))/100, true
		case n < 6:
			before := o.status
			o.status, o.changed = []string{schemas.EarnOpen, schemas.EarnSilent, schemas.EarnReplaced, "closed"}[w.IntN(4)], true
			w.Run(fmt.Sprintf("change product_id: %q variant_id: %q provider: %q coin_id: %q symbol: %q field: \"status\" before: %q after: %q",
				schemas.EarnProductID(o.provider, o.coin, o.category), o.pool, o.provider, o.coin, o.symbol, before, o.status))
		}
		repeated := (o.status == schemas.EarnOpen || o.status == schemas.EarnSilent) && end.Sub(o.written) >= time.Hour
		if o.changed || repeated {
			w.Run(fmt.Sprintf("variant provider: %q source: %q pool: %q coin_id: %q symbol: %q category: %q status: %q apy: %v confidence: 0.7 tvl_usd: 5",
				o.provider, o.provider, o.pool, o.coin, o.symbol, o.category, o.status, o.apy))
			o.written, o.changed = end, false
		}
	}
	if end.Equal(end.Truncate(24 * time.Hour)) {
		for _, segment := range schemas.EarnSegments {
			w.Run(fmt.Sprintf("fixing date: %q segment: %q median: %v provider_count: 2 tvl_usd: 7", end.Format(time.DateOnly), segment, w.Float64()))
		}
	}
}

// Of an instant the products, the benchmark and the changes are those that the minutes had which had ended a minute before.
func TestEarnProductsAsOfAnInstantAreThoseOfItsMinute(t *testing.T) {
	w := &drawnOffers{Fixture: newFixture(t), Rand: streamtest.Rand(t)}
	for i, coin := range [][2]string{{"tether", "USDT"}, {"usd-coin", "USDC"}, {"ethereum", "ETH"}} {
		for _, provider := range []string{"bybit", "aave-v3", "okx"} {
			for pool := range 2 {
				w.offers = append(w.offers, &offer{provider: provider, coin: coin[0], symbol: coin[1], category: []string{schemas.RateLending, schemas.RateStaking}[i/2],
					pool: fmt.Sprint(pool), status: schemas.EarnOpen, apy: 1, changed: true})
			}
		}
	}
	begin := time.Date(2026, 1, 5, 22, 30, 0, 0, time.UTC)
	var answers []querytest.Answered
	for i := range 240 {
		end := begin.Add(time.Duration(i) * time.Minute)
		w.Now = end
		w.minute(end)
		if i%12 == 11 {
			w.Now = end.Add(time.Duration(w.IntN(59)) * time.Second)
			answers = append(answers, w.Ask(w.Now, false, earnAsked))
		}
	}
	w.Now = w.Now.Add(time.Hour)
	moved, changed := map[string]bool{}, map[string]bool{}
	for _, was := range answers {
		for i, body := range w.Ask(was.At.Add(time.Minute), true, earnAsked).Bodies {
			if got, want := withoutAge(t, body), withoutAge(t, was.Bodies[i]); got != want {
				t.Fatalf("%s as of a minute after %s:\n%s\nwhat was answered then:\n%s", earnAsked[i], was.At, got, want)
			}
		}
		moved[was.Bodies[0]], changed[was.Bodies[5]] = true, true
	}
	if len(moved) < 5 || len(changed) < 5 {
		t.Errorf("%d answers of products and %d of changes differ, want some more", len(moved), len(changed))
	}
	before := begin.Add(-time.Hour).Format(time.RFC3339)
	for path, want := range map[string]string{
		"/api/v1/earn/products?asOf=" + before:                                               "410 AGED_OUT availableFrom 2026-01-05T22:31:00.000Z",
		"/api/v1/earn/changes?asOf=" + before:                                                "410 AGED_OUT availableFrom 2026-01-05T22:31:00.000Z",
		"/api/v1/earn/changes?asOf=2026-01-06T01:00:00Z":                                     `"since":"2025-12-30T01:00:00.000Z"`,
		"/api/v1/earn/changes?asOf=2026-01-06T01:00:00Z&since=2026-01-06T01:00:01Z":          "400 VALIDATION_ERROR asOf since",
		"/api/v1/earn/benchmark?asOf=" + before:                                              "410 AGED_OUT availableFrom",
		"/api/v1/earn/benchmark?asOf=" + w.Now.Add(time.Hour).Format(time.RFC3339):           "400 VALIDATION_ERROR asOf",
		"/api/v1/earn/products?asOf=" + begin.Add(10*time.Minute).Format(time.RFC3339) + "x": "400 VALIDATION_ERROR asOf",
	} {
		for word := range strings.FieldsSeq(want) {
			if got := w.Get(path); !strings.Contains(got, word) {
				t.Errorf("%s: got %s; want %s", path, got, want)
			}
		}
	}

	for i, table := range []string{"earn_history", "earn_changes"} {
		w.Run(fmt.Sprintf(`restatement replay-%d 1 %s table { table: %q view: "earn" changed: 1 }`, i, w.Now.Format(time.RFC3339Nano), table))
	}
	for i, got := range w.Ask(answers[0].At, true, earnAsked).Bodies {
		if !strings.HasPrefix(got, "410 ") || !strings.Contains(got, "availableFrom") {
			t.Errorf("%s before a replay: %s", earnAsked[i], got)
		}
	}
}

// A plan whose history ends within that of the benchmark gives as of a moment ago what it gave then; as of a day ago a day less.
func TestBenchmarkOfThePastHasTheHistoryOfThePlan(t *testing.T) {
	w := newFixture(t)
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for i := range 12 {
		w.Now = begin.AddDate(0, 0, i)
		w.Run(fmt.Sprintf("variant provider: \"okx\" source: \"okx\" pool: \"1\" coin_id: \"tether\" symbol: \"USDT\" category: \"lending\" status: %q apy: %d", schemas.EarnOpen, i))
		w.Run(fmt.Sprintf("fixing date: %q segment: \"cefi\" median: %d provider_count: 2", w.Now.Format(time.DateOnly), i))
	}
	w.Now = w.Now.Add(10 * time.Hour)
	base := querytest.ServeFree(t, func() time.Time { return w.Now }, earn.New(querytest.Coins("tether,USDT,Tether,1,stablecoin,USD,"), w.Catalog, w.History(), nil).Endpoints())
	days := func(asked string) (n int, clamped int64) {
		t.Helper()
		var body struct {
			Data struct{ History []earn.DayRate }
			Meta struct{ Clamped map[string]int64 }
		}
		querytest.Decode(t, base+"/api/v1/earn/benchmark?segment=cefi&history_days=30"+asked, &body)
		return len(body.Data.History), body.Meta.Clamped["history_days"]
	}
	at := w.Now
	now, clamped := days("")
	if now < 7 || clamped != 7 {
		t.Fatalf("got %d days, clamped to %d, want 7", now, clamped)
	}
	w.Now = w.Now.Add(2 * time.Minute)
	if got, cut := days("&asOf=" + at.Add(time.Minute).Format(time.RFC3339)); got != now || cut != clamped {
		t.Errorf("as of a minute ago: %d days, clamped to %d, want %d and %d", got, cut, now, clamped)
	}
	if got, cut := days("&asOf=" + at.Add(-24*time.Hour).Format(time.RFC3339)); got != now-1 || cut != clamped-1 {
		t.Errorf("as of a day ago: %d days, clamped to %d, want %d and %d", got, cut, now-1, clamped-1)
	}
}

// withoutAge is an answer without what depends on when it is asked for.
func withoutAge(t *testing.T, answer string) string {
	t.Helper()
	status, text, _ := strings.Cut(answer, " ")
	var body map[string]any
	if err := json.Unmarshal([]byte(text), &body); err != nil || status != "200" {
		t.Fatalf("%s: %v", answer, err)
	}
	if meta, ok := body["meta"].(map[string]any); ok {
		for _, name := range []string{"dataAge", "isStale", "isCritical"} {
			delete(meta, name)
		}
	}
	rest, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}
