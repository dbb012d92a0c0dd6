package e2e

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// servedPaths are what is asked for again as of the instant of its answer.
var servedPaths = []string{
	"/api/v1/prices/BTC", "/api/v1/prices/ETH?explain=1&vs=btc&region=DE", "/api/v1/prices?symbols=btc,eth,usdt,sol,xrp,doge,nothing",
	"/api/v1/prices?symbols=link,ada,ltc&vs=eth", "/api/v1/coins/ethereum/markets?limit=5", "/api/v1/global-stats/metrics", "/api/v1/global-stats/sentiment",
	"/api/v1/rates/eth", "/api/v1/rates?category=lending&limit=50", "/api/v1/rates/summary?category=staking",
	"/api/v1/prices/BTC?vs=eur", "/api/v1/fiat", "/api/v1/fiat/eur", "/api/v1/explain/fiat/eur?depth=2", "/api/v1/stablecoins/index",
}

// servedAnswer is what was answered between two instants of this machine's clock, which is the demo's too.
type servedAnswer struct {
	path, body    string
	before, after time.Time
}

func (d *demo) served(t *testing.T, path string) servedAnswer {
	t.Helper()
	before := time.Now()
	response, err := d.do(http.MethodGet, path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, response.StatusCode, body, err)
	}
	return servedAnswer{path, string(body), before, time.Now()}
}

// What is asked for as of an instant is byte for byte what was answered then, whether this process still holds it or reads it from
// history.
func TestDemoAnswersThePastAsItWas(t *testing.T) {
	d := filledDemo(t)
	var answers []servedAnswer
	for range 7 {
		for _, path := range servedPaths {
			answers = append(answers, d.served(t, path))
		}
		time.Sleep(time.Second) // prices go on
	}
	if first, last := answers[0], answers[len(answers)-len(servedPaths)]; first.body == last.body {
		t.Errorf("%s did not move in %s", first.path, last.after.Sub(first.before))
	}
	var took []time.Duration
	for _, a := range answers {
		// A price may have come while the answer was made, on a busy machine several.
		var again []string
		for _, at := range a.instants() {
			for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
				asked := time.Now()
				response, err := d.do(http.MethodGet, withQuery(a.path, "asOf", at.UTC().Format(time.RFC3339Nano)), "")
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				// History gets a price a second or two after this process served it.
				if response.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
					again = append(again, string(body))
					took = append(took, time.Since(asked))
					break
				}
			}
		}
		if !slices.Contains(again, a.body) {
			t.Errorf("%s was answered between %s and %s with\n%.600s\nand as of these instants, and those between, with\n%.2400s", a.path, a.before.UTC(), a.after.UTC(), a.body, strings.Join(again, "\n"))
		}
	}
	slices.Sort(took)
	t.Logf("%d answers of the past took %s in the median, %s at most", len(took), took[len(took)/2], took[len(took)-1])

	for path, want := range map[string]string{
		"/api/v1/prices/BTC?asOf=2025-01-01T00:00:00Z":         "410 AGED_OUT availableFrom",
		"/api/v1/prices?symbols=btc&asOf=2025-01-01T00:00:00Z": "410 AGED_OUT availableFrom",
		"/api/v1/prices/BTC/explain?asOf=2025-01-01T00:00:00Z": "410 AGED_OUT availableFrom",
		"/api/v1/prices/BTC?asOf=2261-01-01T00:00:00Z":         "400 VALIDATION_ERROR",
		"/api/v1/fiat/eur?asOf=2025-01-01T00:00:00Z":           "410 AGED_OUT availableFrom",
		"/api/v1/rates/eth?asOf=2025-01-01T00:00:00Z":          "410 AGED_OUT availableFrom",
		"/api/v1/rates?asOf=" + answers[0].at():                "400 NOT_SUPPORTED category",
		"/api/v1/coins/markets?asOf=" + answers[0].at():        "400 VALIDATION_ERROR /api/v1/coins/{coinId}/markets",
		"/api/v1/prices/summary?asOf=" + answers[0].at():       "400 VALIDATION_ERROR /api/v1/coins/{coinId}/markets",
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
