package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// explained are requests whose answers hold numbers that name themselves, by the paths of the document.
var explained = map[string]string{
	"/api/v1/prices/{symbol}":         "/api/v1/prices/BTC?vs=eur&region=DE",
	"/api/v1/coins/markets":           "/api/v1/coins/markets?per_page=2&sparkline=true",
	"/api/v1/coins/{coinId}":          "/api/v1/coins/tether",
	"/api/v1/global-stats/metrics":    "/api/v1/global-stats/metrics",
	"/api/v1/global-stats/sentiment":  "/api/v1/global-stats/sentiment",
	"/api/v1/global-stats/fear-greed": "/api/v1/global-stats/fear-greed",
	"/api/v1/global-stats/defi":       "/api/v1/global-stats/defi",
	"/api/v1/fiat/{symbol}":           "/api/v1/fiat/EUR",
	"/api/v1/charts/{coinId}":         "/api/v1/charts/bitcoin?timeframe=24h&format=simple",
	// Of lists not each number is asked for: those of a row are made alike.
	"/api/v1/stablecoins/index":                         "/api/v1/stablecoins/index?limit=2",
	"/api/v1/stablecoins/{symbol}/peg-stability":        "/api/v1/stablecoins/EURC/peg-stability?window=1h",
	"/api/v1/earn/products":                             "/api/v1/earn/products?limit=3",
	"/api/v1/earn/benchmark":                            "/api/v1/earn/benchmark",
	"/api/v1/rates":                                     "/api/v1/rates?category=lending&limit=3",
	"/api/v1/coins/{coinId}/market-data":                "/api/v1/coins/ethereum/market-data",
	"/api/v1/coins/top":                                 "/api/v1/coins/top?limit=2",
	"/api/v1/coins/trending":                            "/api/v1/coins/trending?limit=2",
	"/api/v1/coins/recent":                              "/api/v1/coins/recent?limit=2",
	"/api/v1/global-stats/movers":                       "/api/v1/global-stats/movers?segment=1-50&limit=1",
	"/api/v1/global-stats/movers/{rankRange}":           "/api/v1/global-stats/movers/1-250?limit=1",
	"/api/v1/global-stats/summary":                      "/api/v1/global-stats/summary",
	"/api/v1/global-stats/defi/lending":                 "/api/v1/global-stats/defi/lending",
	"/api/v1/global-stats/defi/staking":                 "/api/v1/global-stats/defi/staking",
	"/api/v1/global-stats/defi/borrowing":               "/api/v1/global-stats/defi/borrowing",
	"/api/v1/global-stats/metrics/history/{metricType}": "/api/v1/global-stats/metrics/history/total_market_cap",
	"/api/v1/global-stats/metrics/ohlc/{metricType}":    "/api/v1/global-stats/metrics/ohlc/btc_dominance",
	"/api/v1/global-stats/defi/history/{metricType}":    "/api/v1/global-stats/defi/history/lending_tvl",
	"/api/v1/global-stats/defi/ohlc/{metricType}":       "/api/v1/global-stats/defi/ohlc/defi_tvl",
	"/api/v1/prices":                                    "/api/v1/prices?symbols=BTC,USDT&vs=btc",
	"/api/v1/prices/summary":                            "/api/v1/prices/summary",
	"/api/v1/charts/{coinId}/current":                   "/api/v1/charts/bitcoin/current",
	"/api/v1/rates/summary":                             "/api/v1/rates/summary",
	"/api/v1/rates/{symbol}":                            "/api/v1/rates/BTC?category=price",
	"/api/v1/coins/with-rates":                          "/api/v1/coins/with-rates?category=borrowing&limit=2",
	"/api/v1/coins/featured":                            "/api/v1/coins/featured?limit=2",
	"/api/v1/coins/categories":                          "/api/v1/coins/categories",
	"/api/v1/fiat/rates/usd":                            "/api/v1/fiat/rates/usd",
	"/api/v1/charts/{coinId}/rates/{category}":          "/api/v1/charts/ethereum/rates/staking?format=simple",
	"/api/v1/rates/history":                             "/api/v1/rates/history?coin=tether&country=DE&product=lending-rates",
	"/api/v1/charts":                                    "/api/v1/charts?coins=bitcoin&timeframe=1h",
	"/api/v1/coins/history/{symbol}":                    "/api/v1/coins/history/BTC?days=1",
	"/api/v1/rates/{symbol}/history":                    "/api/v1/rates/USDT/history?limit=5",
	"/api/v1/rates/providers/{provider}":                "/api/v1/rates/providers/aave-v3",
	"/api/v1/coins/{coinId}/similar":                    "/api/v1/coins/ethereum/similar?limit=3",
	"/api/v1/symbols/resolve":                           "/api/v1/symbols/resolve?symbol=ETH%2FUSDT&source=general&price=2500&context=usdt",
	"/api/v1/symbols/mappings":                          "/api/v1/symbols/mappings?limit=20",
}

const (
	// drawnOfEach is how many numbers of a name with braces are asked for, and drawnAnswers how many answers with explanations within.
	drawnOfEach, drawnAnswers = 2, 6
)

// Every kind of number that an answer names by x-explain is computed again from the log to the last digit, and every record that an
// explanation names is answered.
func TestDemoExplainsEveryNumber(t *testing.T) {
	d := filledDemo(t)
	document := querytest.ReadDocument(t, d.base)
	r := streamtest.Rand(t)
	all := map[string]string{}
	paths := slices.Sorted(maps.Keys(explained))
	r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for i, path := range paths {
		schema := document.Paths.Find(path).Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json").Schema
		found := map[string]string{}
		// A list may have its first row later than what the demo waits for; no candle of five minutes may have closed since the start.
		d.await(t, explained[path], "numbers that are named", func(_ int, answer map[string]any) bool {
			numbersOf(schema.Value, answer, nil, found)
			return len(found) > 0 || strings.Contains(path, "charts")
		})
		maps.Copy(all, found)
		if i < drawnAnswers && len(found) > 0 {
			d.checkInlined(t, document, path)
		}
	}
	numbers := map[string]bool{}
	named, drawn := slices.Sorted(maps.Keys(all)), map[string]int{}
	r.Shuffle(len(named), func(i, j int) { named[i], named[j] = named[j], named[i] })
	for _, number := range named {
		if kind := all[number]; drawn[kind] < drawnOfEach {
			drawn[kind]++
			numbers[number] = true
		}
	}
	minute := d.closedMinute(t)
	for _, field := range []string{"open", "high", "low", "close", "volume", "volumeUsd", "trades"} {
		numbers["candle/bitcoin/1m/"+minute+"/"+field] = true
	}
	records := map[string]string{}
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		status, n := d.explain(t, number)
		if status != http.StatusOK || !isStated(number, n) && (n.Reproduced == nil || !*n.Reproduced) {
			text, _ := json.Marshal(n)
			t.Errorf("%s is answered with %d and not reproduced: %.500s", number, status, text)
			continue
		}
		n.eachRecord(func(topic, href string) {
			if strings.Count(records[topic], "\n") < 3 && !strings.Contains(records[topic], href+"\n") {
				records[topic] += href + "\n"
			}
		})
	}
	t.Logf("%d numbers of %d explained, of %d kinds", len(numbers), len(all), len(drawn))
	for _, topic := range []string{"prices.v1", "markets.v1", "candles.v1", "coinmarkets.raw.v1", "reference.raw.v1"} {
		if records[topic] == "" {
			t.Errorf("no explanation leads to a record of %s", topic)
		}
	}
	for _, list := range records {
		for href := range strings.Lines(list) {
			if d.readLog(t, strings.TrimSpace(href), &struct{}{}) != http.StatusOK {
				t.Error("an explanation names it")
			}
		}
	}
}

// checkInlined asks for the same answer with its explanations within itself: they are of its numbers, and most of them were computed again.
// Some may have changed between the answer and its explanation.
func (d *demo) checkInlined(t *testing.T, document *querytest.Document, path string) {
	t.Helper()
	if document.Paths.Find(path).Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json").Schema.Value.Properties["explanations"] == nil {
		return // prices have explanations of their own
	}
	var body struct{ Explanations explain.Inlined }
	ask := explained[path] + map[bool]string{true: "&", false: "?"}[strings.Contains(explained[path], "?")] + "explain=1"
	if path == "/api/v1/rates/{symbol}" { // of now it has an account of its own
		ask += "&asOf=" + time.Now().Add(-5*time.Second).UTC().Format(time.RFC3339)
	}
	d.readLog(t, ask, &body)
	reproduced := 0
	for _, n := range body.Explanations.Numbers {
		if n.Reproduced != nil && *n.Reproduced || strings.HasPrefix(n.Number, "developer/") {
			reproduced++
		}
	}
	if explained := len(body.Explanations.Numbers); explained == 0 || reproduced < explained-2 {
		text, _ := json.Marshal(body)
		t.Errorf("%s explains %d of its numbers and reproduces %d: %.2000s", path, explained, reproduced, text)
	}
}

// closedMinute is the start of the newest closed candle of bitcoin, as the views have it.
func (d *demo) closedMinute(t *testing.T) string {
	t.Helper()
	for deadline := time.Now().Add(demoPatience); time.Now().Before(deadline); time.Sleep(time.Second) {
		rows := d.query(t, "SELECT formatDateTime(max(start), '%Y-%m-%dT%H:%i:%SZ', 'UTC') AS start, count() AS n FROM v_candles_1m WHERE coin_id = 'bitcoin'")
		if len(rows) == 1 && rows[0]["n"].(float64) > 1 { // the first one may lack its beginning
			return rows[0]["start"].(string)
		}
	}
	t.Fatal("no minute of bitcoin has closed")
	return ""
}

// explainedNode is an explanation as a client sees it.
type explainedNode struct{ explain.Node }

func (n *explainedNode) eachRecord(visit func(topic, href string)) { eachRecord(&n.Node, visit) }

func eachRecord(n *explain.Node, visit func(topic, href string)) {
	for _, r := range n.Records {
		visit(r.Topic, r.Href)
	}
	for _, in := range n.Inputs {
		eachRecord(in, visit)
	}
}

func (d *demo) explain(t *testing.T, number string) (status int, n *explainedNode) {
	t.Helper()
	var body struct{ Data explainedNode }
	status = d.readLog(t, "/api/v1/explain/"+number+"?depth=1", &body)
	return status, &body.Data
}

// readLog asks for what is read from the log. A busy machine may take too long for it: the answer then asks to try again. Any other answer but that which
// is asked for is an error of the test.
func (d *demo) readLog(t *testing.T, path string, body any) (status int) {
	t.Helper()
	for deadline := time.Now().Add(demoPatience); ; {
		response, err := d.do(http.MethodGet, path, "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case err != nil:
			t.Fatalf("reading the answer of %s: %v", path, err)
		case response.StatusCode == http.StatusServiceUnavailable && time.Now().Before(deadline):
			continue
		case response.StatusCode != http.StatusOK:
			t.Errorf("%s is answered with %s: %.1000s", path, response.Status, text)
		}
		if err := json.Unmarshal(text, body); err != nil {
			t.Fatalf("reading the answer of %s: %v: %.1000s", path, err, text)
		}
		return response.StatusCode
	}
}

var braces = regexp.MustCompile(`\{[\w.]+(?:\|\w+)?\}`)

// numbersOf finds the numbers that an answer holds, by the names that its schema gives them: what is in braces is a field of the
// same object, or of the nearest around it, with a dot a field of such a field, with a bar what is meant where there is none; of a map's members {key} is the member's key, of a list of
// pairs {0} the first of a pair, of a list of numbers {left} how many follow.
func numbersOf(schema *openapi3.Schema, value any, around []map[string]any, found map[string]string) {
	for _, one := range schema.AnyOf {
		numbersOf(one.Value, value, around, found)
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if schema.Items != nil {
				numbersOf(schema.Items.Value, item, around, found)
			}
		}
	case map[string]any:
		if v["complete"] == false { // a candle that has not closed
			return
		}
		inside := append(slices.Clip(around), v)
		for name, property := range schema.Properties {
			namedNumber(property.Value, v[name], inside, found)
			numbersOf(property.Value, v[name], inside, found)
		}
		if members := schema.AdditionalProperties.Schema; members != nil {
			for key, member := range v {
				namedNumber(members.Value, member, append(slices.Clip(inside), map[string]any{"key": key}), found)
				numbersOf(members.Value, member, inside, found)
			}
		}
	}
}

// namedNumber finds the number that a value is, if its schema names one.
func namedNumber(schema *openapi3.Schema, value any, inside []map[string]any, found map[string]string) {
	number, named := schema.Extensions[query.ExplainExtension].(string)
	if pairs, is := value.([]any); is && named {
		for i, item := range pairs {
			if pair, ok := item.([]any); ok && len(pair) == 2 {
				namedNumber(schema, pair[1], append(slices.Clip(inside), map[string]any{"0": pair[0]}), found)
				continue
			}
			namedNumber(schema, item, append(slices.Clip(inside), map[string]any{"left": float64(len(pairs) - i - 1)}), found)
		}
		return
	}
	if _, is := value.(float64); !is || !named {
		return
	}
	if merged, is := inside[len(inside)-1]["intervals"].(float64); is && merged > 1 && !strings.Contains(number, "{intervals|") {
		return // several intervals, of which the name holds the first alone
	}
	found[braces.ReplaceAllStringFunc(number, func(field string) string {
		path, absent, _ := strings.Cut(strings.Trim(field, "{}"), "|")
		name, within, dotted := strings.Cut(path, ".")
		for _, object := range slices.Backward(inside) {
			value, ok := object[name]
			if dotted && ok {
				of, _ := value.(map[string]any)
				value, ok = of[within]
			}
			if ok {
				if time, numeric := value.(float64); numeric {
					return strconv.FormatFloat(time, 'f', -1, 64)
				}
				return fmt.Sprint(value)
			}
		}
		return cmp.Or(absent, field)
	})] = number
}

// isStated reports whether a number is one that a source counts or publishes, which is not computed again, and leads to its record.
func isStated(number string, n *explainedNode) bool {
	switch {
	case n.Reproduced != nil || n.Note == "":
		return false
	case strings.HasPrefix(number, "developer/"):
		return len(n.Records) == 1
	default:
		return (number == "fear-greed" || strings.HasPrefix(number, "fear-greed/days/")) && len(n.Inputs) == 1 && len(n.Inputs[0].Records) == 1
	}
}
