package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/position"
)

// servedPaths are what is asked for again as of the instant of its answer.
var servedPaths = []string{
	"/api/v1/prices/BTC", "/api/v1/prices/ETH?explain=1&vs=btc&region=DE", "/api/v1/prices?symbols=btc,eth,usdt,sol,xrp,doge,nothing",
	"/api/v1/prices?symbols=link,ada,ltc&vs=eth", "/api/v1/coins/ethereum/markets?limit=5", "/api/v1/global-stats/metrics", "/api/v1/global-stats/sentiment",
	"/api/v1/rates/eth", "/api/v1/rates?category=lending&limit=50", "/api/v1/rates/summary?category=staking",
	"/api/v1/prices/BTC?vs=eur", "/api/v1/fiat", "/api/v1/fiat/eur", "/api/v1/explain/fiat/eur?depth=2", "/api/v1/stablecoins/index",
	"/api/v1/global-stats/defi", "/api/v1/global-stats/defi/lending", "/api/v1/global-stats/defi/staking", "/api/v1/global-stats/defi/borrowing",
	"/api/v1/coins/markets?per_page=20", "/api/v1/coins/markets?sparkline=true&per_page=20", "/api/v1/coins/markets?order=price_change_percentage_24h&order_dir=desc&per_page=5", "/api/v1/coins/top?limit=10", "/api/v1/coins/trending?limit=5",
	"/api/v1/coins/featured?limit=20", "/api/v1/coins/with-rates?category=lending&limit=50", "/api/v1/charts/bitcoin/current",
	"/api/v1/coins?limit=50", "/api/v1/coins?q=bit&has_rates=true", "/api/v1/coins/bitcoin", "/api/v1/coins/by-id/tether", "/api/v1/coins/usdt/networks", "/api/v1/coins/ethereum/similar", "/api/v1/coins/categories",
	"/api/v1/symbols/resolve?symbol=XBT&source=kraken", "/api/v1/symbols/resolve?symbol=uni&price=5", "/api/v1/symbols/resolve?symbol=USDT&view=tool", "/api/v1/corrections",
	"/api/v1/coins/slugs?featured=true", "/api/v1/coins/stats", "/api/v1/coins/markets?category=layer-1&per_page=5",
	"/api/v1/coins/bitcoin/market-data", "/api/v1/global-stats/movers?limit=3", "/api/v1/global-stats/fear-greed", "/api/v1/global-stats/summary",
	// Of the whole market sources report the past in the first minutes of a demo, in which its series are 410.
	"/api/v1/global-stats/defi/ohlc/staking_tvl", "/api/v1/global-stats/defi/history/lending_tvl",
	"/api/v1/rates/history?coin=ethereum&country=DE&product=lending-rates", "/api/v1/rates/history?platform=aave-v3&country=DE&product=lending-rates", "/api/v1/charts/ethereum/rates/staking?timeframe=1h",
	"/api/v1/charts/ethereum/rates/lending?timeframe=24h", "/api/v1/rates/ETH/history?category=price&limit=50", "/api/v1/rates/ETH/history?category=price&provider=okx&days=60",
	"/api/v1/rates/ETH/history?to=2100-01-01T00:00:00Z&limit=20&from=" + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "/api/v1/stablecoins/USDT/peg-stability?window=24h",
	"/api/v1/stablecoins/EURC/peg-stability?window=24h", "/api/v1/stablecoins/EURC/peg-stability?window=30d",
}

// timedPaths are asked for again too. Their own time, of now, is how far the log was read, which is not compared.
var timedPaths = append([]string{"/api/v1/rates/providers/aave-v3", "/api/v1/rates/providers/lido"}, gatheredPaths...)

// gatheredPaths go through the prices of all coins, one by one, for some milliseconds in which prices come: now and then there is no one instant that an answer is of.
var gatheredPaths = []string{"/api/v1/providers", "/api/v1/providers?category=price", "/api/v1/rates/providers", "/api/v1/rates/providers/okx"}

var ownTime = regexp.MustCompile(`"timestamp":"[^"]*"|("meta":\{[^{}]*)"lastUpdated":"[^"]*"`)

// timeless is the answer to a path as it is compared.
func timeless(path string, body []byte) string {
	path, _, _ = strings.Cut(path, "asOf=")
	if slices.Contains(timedPaths, strings.TrimRight(path, "?&")) {
		body = ownTime.ReplaceAll(body, []byte("$1"))
	}
	return string(body)
}

// servedAnswer is what was answered between two instants of this machine's clock, which is the demo's too.
type servedAnswer struct {
	path, body, position string
	before, after        time.Time
}

// served asks for a path, patiently where there is nothing to answer with yet.
func (d *demo) served(t *testing.T, path string) servedAnswer {
	t.Helper()
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
		before := time.Now()
		response, err := d.do(http.MethodGet, path, "")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK {
			return servedAnswer{path, timeless(path, body), response.Header.Get("X-Position"), before, time.Now()}
		}
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("%s: %d %s %v", path, response.StatusCode, body, err)
		}
	}
}

// explainsThePast explains answers as of an instant: what is made of many rows, and what symbols meant, is made again of the log.
func (d *demo) explainsThePast(t *testing.T, at string) {
	t.Helper()
	for path, form := range map[string]string{"/api/v1/coins/categories": "category/", "/api/v1/global-stats/movers?view=tool&segment=top50&limit=1": "movers/", "/api/v1/symbols/resolve?symbol=BTC&price=100000": "symbol/",
		"/api/v1/symbols/mappings?limit=5": "symbol-mapping/"} {
		var body struct {
			Explanations struct {
				Numbers []struct {
					Number, Note string
					Value        *float64
					Reproduced   *bool
				}
			}
		}
		text := d.patiently(t, withQuery(withQuery(path, "asOf", at), "explain", "1"))
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		explained := 0
		for _, n := range body.Explanations.Numbers {
			if !strings.HasPrefix(n.Number, form) {
				continue
			}
			if explained++; n.Value == nil || n.Reproduced == nil || !*n.Reproduced {
				t.Errorf("%s as of %s: %+v is not reproduced", path, at, n)
			}
		}
		if explained == 0 {
			t.Errorf("%s as of %s explains no %s: %.600s", path, at, form, text)
		}
	}
}

// What is asked for as of an instant is byte for byte what was answered then, whether this process still holds it or reads it from
// history.
func TestDemoAnswersThePastAsItWas(t *testing.T) {
	d := filledDemo(t)
	asked := slices.Concat(servedPaths, timedPaths)
	var answers []servedAnswer
	for range 7 {
		for _, path := range asked {
			answers = append(answers, d.served(t, path))
		}
		time.Sleep(time.Second) // prices go on
	}
	if first, last := answers[0], answers[len(answers)-len(asked)]; first.body == last.body {
		t.Errorf("%s did not move in %s", first.path, last.after.Sub(first.before))
	}
	var took []time.Duration
	exact, mixed := 0, 0
	for i, a := range answers {
		again := []string{d.patiently(t, withQuery(a.path, "asOf", a.position))}
		if again[0] == a.body {
			exact++
		}
		if again[0] == a.body && i%3 > 0 {
			continue // as of instants fewer are asked
		}
		// A price may have come while the answer was made, on a busy machine several.
		for _, at := range a.instants() {
			for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
				begun := time.Now()
				response, err := d.do(http.MethodGet, withQuery(a.path, "asOf", at.UTC().Format(time.RFC3339Nano)), "")
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				// History gets a price two or three seconds after this process served it.
				if response.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
					again = append(again, timeless(a.path, body))
					took = append(took, time.Since(begun))
					break
				}
			}
		}
		switch {
		case slices.Contains(again, a.body):
		case slices.Contains(gatheredPaths, a.path):
			mixed++
		default:
			t.Errorf("%s was answered between %s and %s with\n%.600s\nand as of these instants, and those between, with\n%.2400s", a.path, a.before.UTC(), a.after.UTC(), a.body, strings.Join(again, "\n"))
		}
	}
	if mixed > len(gatheredPaths) {
		t.Errorf("%d answers that gather prices are those of no instant", mixed)
	}
	// What came while an answer was made may be in it, and is rare.
	if t.Logf("%d of %d answers are the same as of their positions", exact, len(answers)); exact*100 < len(answers)*97 {
		t.Errorf("%d of %d answers are the same as of their positions", exact, len(answers))
	}
	d.explainsThePast(t, answers[0].position)
	slices.Sort(took)
	t.Logf("%d answers of the past took %s in the median, %s at most", len(took), took[len(took)/2], took[len(took)-1])

	for path, want := range map[string]string{
		"/api/v1/prices/BTC?asOf=2025-01-01T00:00:00Z":                                                    "410 AGED_OUT availableFrom",
		"/api/v1/prices?symbols=btc&asOf=2025-01-01T00:00:00Z":                                            "410 AGED_OUT availableFrom",
		"/api/v1/prices/BTC/explain?asOf=2025-01-01T00:00:00Z":                                            "410 AGED_OUT availableFrom",
		"/api/v1/prices/BTC?asOf=mlp1.nothing":                                                            "400 VALIDATION_ERROR X-Position",
		"/api/v1/prices/BTC?asOf=" + position.Position{At: answers[0].before, Replica: "nobody"}.String(): "410 AGED_OUT nobody hint",
		"/api/v1/coins/top?asOf=" + position.Position{At: answers[0].before, Replica: "nobody"}.String():  "410 AGED_OUT nobody",
		"/api/v1/prices/BTC?asOf=2261-01-01T00:00:00Z":                                                    "400 VALIDATION_ERROR",
		"/api/v1/fiat/eur?asOf=2025-01-01T00:00:00Z":                                                      "410 AGED_OUT availableFrom",
		"/api/v1/rates/eth?asOf=2025-01-01T00:00:00Z":                                                     "410 AGED_OUT availableFrom",
		"/api/v1/global-stats/defi?asOf=2025-01-01T00:00:00Z":                                             "410 AGED_OUT availableFrom",
		"/api/v1/rates/ETH/history?asOf=2025-01-01T00:00:00Z":                                             "410 AGED_OUT availableFrom",
		"/api/v1/charts/ethereum/rates/lending?asOf=2025-01-01T00:00:00Z":                                 "410 AGED_OUT availableFrom",
		"/api/v1/rates/history?coin=ethereum&country=DE&product=lending-rates&asOf=2025-01-01T00:00:00Z":  "410 AGED_OUT availableFrom",
		"/api/v1/stablecoins/USDT/peg-stability?asOf=2025-01-01T00:00:00Z":                                "410 AGED_OUT availableFrom",
		"/api/v1/rates/ETH/history?category=price&asOf=2025-01-01T00:00:00Z":                              "410 AGED_OUT availableFrom",
		"/api/v1/rates?asOf=" + answers[0].at():                                                           "200 count rates",
		"/api/v1/coins/recent?asOf=" + answers[0].at():                                                    "200 createdAt", // first prices that are some minutes old may differ
		"/api/v1/coins/top?asOf=2025-01-01T00:00:00Z":                                                     "410 AGED_OUT availableFrom",
		"/api/v1/coins/featured?asOf=2025-01-01T00:00:00Z":                                                "410 AGED_OUT availableFrom",
		"/api/v1/coins/with-rates?category=lending&asOf=2025-01-01T00:00:00Z":                             "410 AGED_OUT availableFrom",
		"/api/v1/charts/bitcoin/current?asOf=2025-01-01T00:00:00Z":                                        "410 AGED_OUT availableFrom",
		"/api/v1/prices/summary?asOf=" + answers[0].at():                                                  "200 count prices",
		"/api/v1/prices/summary?asOf=2025-01-01T00:00:00Z":                                                "410 AGED_OUT availableFrom",
		"/api/v1/providers?asOf=2025-01-01T00:00:00Z":                                                     "410 AGED_OUT availableFrom",
		"/api/v1/coins/bitcoin?asOf=2025-01-01T00:00:00Z":                                                 "410 AGED_OUT availableFrom",
		"/api/v1/coins/categories?asOf=2025-01-01T00:00:00Z":                                              "410 AGED_OUT availableFrom",
	} {
		status, body, err := d.ask(path)
		if words := strings.Fields(want); err != nil || !holdsAll(words, status, excerpt(body)) {
			t.Errorf("%s: got %d %s, %v; want %s", path, status, excerpt(body), err, want)
		}
	}
}

// instants are those at which it may have been made: prices come once a second.
func (a servedAnswer) instants() (list []time.Time) {
	for at := a.before; at.Before(a.after); at = at.Add(time.Second / 2) {
		list = append(list, at)
	}
	return append(list, a.after)
}

func (a servedAnswer) at() string { return a.before.UTC().Format(time.RFC3339Nano) }

// holdsAll reports whether an answer has the status that the first word says, and all other words in it.
func holdsAll(words []string, status int, body string) bool {
	return words[0] == strconv.Itoa(status) && !slices.ContainsFunc(words[1:], func(word string) bool { return !strings.Contains(body, word) })
}

// chartPaths are charts that are asked for again as of the instant of their answers.
var chartPaths = []string{"/api/v1/charts/bitcoin?timeframe=1h", "/api/v1/charts/ethereum?timeframe=24h", "/api/v1/charts/tether?timeframe=30d"}

// A chart is asked for as of instants around that of its answer: its intervals that had ended are the same to the byte, and the one under way ends
// with the price that was answered then. What is known now of the time until then is the same, where nothing was back-filled since.
func TestDemoChartsAreTheSameLater(t *testing.T) {
	d := filledDemo(t)
	var answers []servedAnswer
	for range 4 {
		for _, path := range chartPaths {
			answers = append(answers, d.served(t, path))
		}
		time.Sleep(3 * time.Second) // charts are held for five
	}
	whole := 0
	for _, a := range answers {
		found, toTheByte := false, false
		var differs []string
		// What has closed counts as of two seconds later at the latest.
		for at := a.before.Add(-5 * time.Second); at.Before(a.after.Add(3*time.Second)) && !toTheByte; at = at.Add(time.Second / 2) {
			again := d.patiently(t, withQuery(a.path, "asOf", at.UTC().Format(time.RFC3339Nano)))
			found = found || sameButUnderWay(t, a.body, again)
			differs = append(differs, at.UTC().Format("15:04:05.0 ")+firstUnlike(pointsOf(t, a.body), pointsOf(t, again)))
			toTheByte = again == a.body
		}
		if toTheByte {
			whole++
		}
		if !found {
			t.Errorf("%s was answered between %s and %s, and as of no instant around with the same: %s", a.path, a.before.UTC(), a.after.UTC(), strings.Join(differs, "\n"))
		}
	}
	t.Logf("%d of %d charts are the same to the byte as of an instant around", whole, len(answers))

	at := answers[0].before.UTC().Format(time.RFC3339Nano)
	chart, price := pointsOf(t, d.patiently(t, "/api/v1/charts/bitcoin?timeframe=1h&asOf="+at)), struct {
		Data struct{ Aggregated struct{ Price float64 } }
	}{}
	if err := json.Unmarshal([]byte(d.patiently(t, "/api/v1/prices/BTC?asOf="+at)), &price); err != nil {
		t.Fatal(err)
	}
	if last := chart[len(chart)-1]; last.Close != price.Data.Aggregated.Price {
		t.Errorf("as of %s the chart ends with %v, and the price is %v", at, last.Close, price.Data.Aggregated.Price)
	}
	begun := answers[len(answers)-1].before.UTC().Truncate(time.Minute)
	minute := begun.Format(time.RFC3339)
	said, latest := d.patiently(t, "/api/v1/charts/bitcoin?timeframe=24h&asOf="+minute), d.patiently(t, "/api/v1/charts/bitcoin?timeframe=24h&knowledge=latest&asOf="+minute)
	least := len(pointsOf(t, said))
	if begun.Equal(begun.Truncate(time.Hour)) {
		least-- // the hour that begins then has the price that was carried into it, which is not of the time before
	}
	if !sameButUnderWay(t, said, latest) && len(pointsOf(t, latest)) < least {
		t.Errorf("as of %s was said\n%.600s\nand is known now\n%.600s", minute, said, latest)
	}

	for path, want := range map[string]string{
		"/api/v1/charts/bitcoin?asOf=2025-01-01T00:00:00Z":                               "410 AGED_OUT availableFrom knowledge=latest",
		"/api/v1/charts?coins=btc,eth&asOf=2025-01-01T00:00:00Z":                         "410 AGED_OUT availableFrom",
		"/api/v1/coins/history/BTC?asOf=2025-01-01T00:00:00Z":                            "410 AGED_OUT availableFrom",
		"/api/v1/charts/bitcoin?asOf=2025-01-01T00:00:00.5Z&knowledge=latest":            "410 AGED_OUT whole minute",
		"/api/v1/charts/bitcoin?timeframe=30d&asOf=2025-01-01T00:00Z&knowledge=latest":   "400 VALIDATION_ERROR asOf",
		"/api/v1/charts/bitcoin?timeframe=1y&asOf=2025-01-01T00:00:00Z&knowledge=latest": "200 dataPoints",
		"/api/v1/charts/bitcoin?knowledge=latest":                                        "400 VALIDATION_ERROR knowledge asOf",
		"/api/v1/charts/bitcoin?knowledge=all&asOf=" + at:                                "400 VALIDATION_ERROR knowledge",
	} {
		status, body, err := d.ask(path)
		if words := strings.Fields(want); err != nil || !holdsAll(words, status, excerpt(body)) {
			t.Errorf("%s: got %d %s, %v; want %s", path, status, excerpt(body), err, want)
		}
	}
}

// patiently asks until history has what was answered just now.
func (d *demo) patiently(t *testing.T, path string) string {
	t.Helper()
	return d.served(t, path).body
}

// chartedPoint is a point of a chart.
type chartedPoint struct {
	Timestamp, Origin                         string
	Open, High, Low, Close, Volume, VolumeUSD float64
	Complete                                  bool
	Trades                                    *uint64
}

func pointsOf(t *testing.T, body string) []chartedPoint {
	t.Helper()
	var chart struct {
		Data struct{ DataPoints []chartedPoint }
	}
	if err := json.Unmarshal([]byte(body), &chart); err != nil || len(chart.Data.DataPoints) == 0 {
		t.Fatalf("%v: %.300s", err, body)
	}
	return chart.Data.DataPoints
}

// firstUnlike reports the first point in which charts differ.
func firstUnlike(answered, again []chartedPoint) string {
	for i := range min(len(answered), len(again)) {
		if !reflect.DeepEqual(answered[i], again[i]) {
			return fmt.Sprintf("point %d of %d: answered %+v, as of then %+v", i, len(answered), answered[i], again[i])
		}
	}
	return fmt.Sprintf("%d points were answered, as of then %d", len(answered), len(again))
}

// sameButUnderWay reports whether charts have the same points, but for what has closed and been traded meanwhile of the last two.
func sameButUnderWay(t *testing.T, a, b string) bool {
	t.Helper()
	one, other := pointsOf(t, a), pointsOf(t, b)
	if len(one) != len(other) {
		return false
	}
	ended, last := max(len(one)-2, 0), len(one)-1
	for i := ended; i <= last; i++ {
		if one[i].Timestamp != other[i].Timestamp || one[i].Open != other[i].Open {
			return false
		}
	}
	return reflect.DeepEqual(one[:ended], other[:ended]) && one[last].Close == other[last].Close
}
