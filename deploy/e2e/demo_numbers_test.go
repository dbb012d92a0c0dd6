package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// row is a row of SQL.
type row map[string]any

// query asks the SQL port, as an analyst does.
func (d *demo) query(t *testing.T, statement string) []row {
	t.Helper()
	response, err := http.Post(d.sql+"/?default_format=JSONEachRow&output_format_json_quote_64bit_integers=0", "text/plain", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		t.Fatalf("%d %s of %s", response.StatusCode, body, statement)
	}
	var rows []row
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("reading a row: %v of %s", err, statement)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// documentedSQL are the statements of a section of the page of formulas.
func documentedSQL(t *testing.T, section string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/formulas.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## "+section)
	text, _, _ = strings.Cut(text, "\n## ")
	var statements []string
	for _, block := range strings.Split(text, "```sql\n")[1:] {
		statement, _, _ := strings.Cut(block, "```")
		statements = append(statements, statement)
	}
	return statements
}

// comparison works numbers of answers out of the views and names those that differ. waiting says what is not there yet to be
// compared.
type comparison func(t *testing.T, d *demo) (differs []string, waiting string)

// stillFor is for how long the views must not have moved before a comparison, and must not move after it: longer than
// sinks and the memory of the API take for what the log holds.
const stillFor = 2 * time.Second

// Numbers that endpoints answer are those that SQL makes of the views, by code that shares nothing with theirs. The demo goes
// on meanwhile, minute by minute. The first comparison during which nothing moved decides.
func TestDemoNumbersAreThoseOfSQL(t *testing.T) {
	d := filledDemo(t)
	d.await(t, "/api/v1/rates/summary", "rates of 20 coins", func(_ int, body map[string]any) bool { return number(of(body, "data"), "count") >= 20 })
	d.await(t, "/api/v1/global-stats/defi/lending", "the assets that are lent", func(_ int, body map[string]any) bool {
		assets, _ := of(body, "data")["byAsset"].([]any)
		return len(assets) > 0
	})
	now := time.Now().UTC()
	for _, source := range [][]string{{"lido"}, {"okx-earn", "--symbols", "USDC"}} { // a past for the charts
		args := slices.Concat([]string{"backfill", "--source"}, source, []string{"--from", now.AddDate(0, 0, -20).Format(time.RFC3339), "--to", now.Format(time.RFC3339)})
		if out, err := d.command(args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	comparisons := map[string]comparison{
		"ids of rates":         rateIDsDiffer,
		"the summary of rates": rateSummaryDiffers, "ends of charts of rates": rateChartsDiffer, "pasts of charts of rates": rateChartsPastDiffers, "DeFi": defiDiffers, "the benchmark": benchmarkDiffers,
	}
	waiting := ""
	for deadline, tries := time.Now().Add(demoPatience), 1; ; tries++ {
		before, whole := d.standing(t)
		time.Sleep(stillFor)
		differs := map[string][]string{}
		waiting = ""
		for name, compare := range comparisons {
			var lacks string
			if differs[name], lacks = compare(t, d); lacks != "" {
				waiting = name + ": " + lacks
			}
		}
		time.Sleep(stillFor)
		if after, _ := d.standing(t); whole && waiting == "" && after == before {
			t.Logf("nothing moved during comparison %d", tries)
			for name, found := range differs {
				if len(found) > 0 {
					t.Errorf("%s: %d numbers differ, among them %s", name, len(found), strings.Join(found[:min(len(found), 10)], "; "))
				}
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the views moved during each of %d comparisons, or lack something: %s", tries, waiting)
		}
	}
}

// standing is a fingerprint of the views that are compared with; whole means that they are of one minute.
func (d *demo) standing(t *testing.T) (fingerprint string, whole bool) {
	t.Helper()
	rows := d.query(t, `SELECT toString((SELECT sum(cityHash64(source, pool, category, apy, tvl_usd, heard, ended)) FROM v_rates)) AS rates,
		toString((SELECT sum(cityHash64(slug, tvl, borrowed, time)) FROM v_protocols)) AS protocols, toString((SELECT max(time) FROM v_defi)) AS defi,
		toString((SELECT max(time) FROM v_global)) AS global, toString((SELECT sum(cityHash64(coin_id, market_cap)) FROM v_markets)) AS markets`)
	if len(rows) != 1 {
		t.Fatalf("the views' fingerprint has %d rows", len(rows))
	}
	return fmt.Sprint(rows[0]), rows[0]["defi"] == rows[0]["global"]
}

func of(o map[string]any, name string) map[string]any {
	inner, _ := o[name].(map[string]any)
	return inner
}

// near compares a number of an answer with its recomputation.
func near(what string, got any, want float64) []string {
	g, ok := got.(float64)
	if !ok || math.Abs(g-want) > 1e-9*max(1, math.Abs(want)) {
		return []string{fmt.Sprintf("%s is %v, SQL says %v", what, got, want)}
	}
	return nil
}

// countingRates are the rates that count, by the view.
const countingRates = `SELECT key, source, provider, category, coin_id, apy, tvl_usd, term, lockup_days, toUnixTimestamp64Nano(heard) / 1e9 AS heard_at, interval_seconds
FROM v_rates WHERE NOT ended AND unattached = '' AND shadowed = '' AND category IN ('lending', 'staking', 'borrowing')`

// rateIDsDiffer holds the ids of all rows of rates against the keys of the view: each is there, once.
func rateIDsDiffer(t *testing.T, d *demo) (differs []string, waiting string) {
	keys := map[string]bool{}
	for _, r := range d.query(t, countingRates) {
		if float64(time.Now().UnixNano())/1e9-number(r, "heard_at") <= 3*number(r, "interval_seconds") {
			keys[fmt.Sprint(r["key"])] = true
		}
	}
	if len(keys) < 100 {
		return nil, fmt.Sprintf("only %d rates in v_rates", len(keys))
	}
	for _, category := range []string{"lending", "staking", "borrowing"} {
		for offset, more := 0, true; more; {
			_, body, err := d.ask(fmt.Sprintf("/api/v1/rates?category=%s&limit=1000&offset=%d", category, offset))
			if err != nil {
				return nil, err.Error()
			}
			rows, _ := of(body, "data")["rates"].([]any)
			for _, row := range rows {
				o, _ := row.(map[string]any)
				id := fmt.Sprint(o["id"])
				if !keys[id] {
					differs = append(differs, id+" is not in v_rates, or twice in the rates")
				}
				delete(keys, id)
			}
			offset += len(rows)
			more = of(body, "meta")["truncated"] == true && len(rows) > 0
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		differs = append(differs, key+" is in v_rates alone")
	}
	return differs, ""
}

func rateSummaryDiffers(t *testing.T, d *demo) (differs []string, waiting string) {
	type sum struct {
		values    []float64
		providers map[string]bool
	}
	sums := map[string]*sum{}
	for _, r := range d.query(t, countingRates) {
		if float64(time.Now().UnixNano())/1e9-number(r, "heard_at") > 3*number(r, "interval_seconds") {
			continue
		}
		k := fmt.Sprint(r["coin_id"], " ", r["category"])
		if sums[k] == nil {
			sums[k] = &sum{providers: map[string]bool{}}
		}
		sums[k].values = append(sums[k].values, number(r, "apy"))
		sums[k].providers[fmt.Sprint(r["provider"])] = true
	}
	if len(sums) < 20 {
		return nil, fmt.Sprintf("only %d coins and categories in v_rates", len(sums))
	}
	_, body, err := d.ask("/api/v1/rates/summary")
	if err != nil {
		return nil, err.Error()
	}
	list, _ := of(body, "data")["summary"].([]any)
	for _, item := range list {
		o, _ := item.(map[string]any)
		if o["category"] == "price" {
			continue
		}
		k := fmt.Sprint(o["coinId"], " ", o["category"])
		s := sums[k]
		if s == nil {
			differs = append(differs, k+" is not in v_rates")
			continue
		}
		delete(sums, k)
		slices.Sort(s.values)
		total := 0.0
		for _, v := range s.values {
			total += v
		}
		differs = slices.Concat(differs, near(k+" minRate", o["minRate"], s.values[0]), near(k+" maxRate", o["maxRate"], s.values[len(s.values)-1]),
			near(k+" averageRate", o["averageRate"], total/float64(len(s.values))), near(k+" medianRate", o["medianRate"], middle(s.values)),
			near(k+" providerCount", o["providerCount"], float64(len(s.providers))), near(k+" rateCount", o["rateCount"], float64(len(s.values))))
	}
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		differs = append(differs, k+" is in v_rates alone")
	}
	return differs, ""
}

// rateChartsDiffer works out where charts of rates end, in each timeframe and format: the median over providers of the mean
// of each one's rates by their TVL.
func rateChartsDiffer(t *testing.T, d *demo) (differs []string, waiting string) {
	type mean struct{ weighted, weight, plain, n float64 }
	lines := map[string]map[string]*mean{}
	for _, r := range d.query(t, countingRates) {
		if float64(time.Now().UnixNano())/1e9-number(r, "heard_at") > 3*number(r, "interval_seconds") {
			continue
		}
		chart, provider := fmt.Sprint(r["coin_id"], "/rates/", r["category"]), fmt.Sprint(r["provider"])
		if lines[chart] == nil {
			lines[chart] = map[string]*mean{}
		}
		if lines[chart][provider] == nil {
			lines[chart][provider] = &mean{}
		}
		m, tvl := lines[chart][provider], number(r, "tvl_usd")
		m.weighted, m.weight, m.plain, m.n = m.weighted+number(r, "apy")*tvl, m.weight+tvl, m.plain+number(r, "apy"), m.n+1
	}
	for _, chart := range []string{"usd-coin/rates/lending", "tether/rates/borrowing", "ethereum/rates/staking"} {
		var values []float64
		for _, m := range lines[chart] {
			if m.weight > 0 {
				values = append(values, m.weighted/m.weight)
			} else {
				values = append(values, m.plain/m.n)
			}
		}
		if len(values) < 2 {
			return nil, fmt.Sprintf("%d providers of %s", len(values), chart)
		}
		slices.Sort(values)
		for _, timeframe := range []string{"1h", "24h", "1y"} {
			_, body, err := d.ask("/api/v1/charts/" + chart + "?format=ohlc&timeframe=" + timeframe)
			points, _ := of(body, "data")["dataPoints"].([]any)
			_, simple, failed := d.ask("/api/v1/charts/" + chart + "?format=simple&timeframe=" + timeframe)
			pairs, _ := of(simple, "data")["rates"].([]any)
			if err != nil || failed != nil || len(points) == 0 || len(pairs) == 0 {
				return nil, fmt.Sprintf("%s of %s: %d points, %d pairs, %v, %v", chart, timeframe, len(points), len(pairs), err, failed)
			}
			last, _ := points[len(points)-1].(map[string]any)
			pair, _ := pairs[len(pairs)-1].([]any)
			where := chart + " of " + timeframe
			differs = slices.Concat(differs, near(where+" close", last["close"], middle(values)), near(where+" rate", last["rate"], middle(values)),
				near(where+" providers", last["providers"], float64(len(values))), near(where+" pair", pair[len(pair)-1], middle(values)))
		}
	}
	return differs, ""
}

// rateChartsPastDiffers works out every point of charts of rates before the interval under way, from what the views hold of
// hours and days.
func rateChartsPastDiffers(t *testing.T, d *demo) (differs []string, waiting string) {
	for _, chart := range [][2]string{{"usd-coin", "lending"}, {"ethereum", "staking"}} {
		for timeframe, view := range map[string]string{"7d": "v_rates_hourly", "1y": "v_rates_daily"} {
			path := "/api/v1/charts/" + chart[0] + "/rates/" + chart[1] + "?format=ohlc&timeframe=" + timeframe
			_, body, err := d.ask(path)
			points, _ := of(body, "data")["dataPoints"].([]any)
			if err != nil || len(points) < 2 {
				return nil, fmt.Sprintf("%s: %d points, %v", path, len(points), err)
			}
			first := number(points[0].(map[string]any), "timestamp")
			want := map[float64]map[string]*[4][]float64{} // open, high, low and close of the rates of each provider, each with its weight after it
			for _, r := range d.query(t, fmt.Sprintf(`SELECT toUnixTimestamp(start) * 1000 AS at, provider, open, high, low, close, ifNull(tvl_usd, 0) AS weight
				FROM %s WHERE coin_id = '%s' AND category = '%s' AND shadowed = ''`, view, chart[0], chart[1])) {
				at, provider := number(r, "at"), fmt.Sprint(r["provider"])
				if at < first {
					continue
				}
				if want[at] == nil {
					want[at] = map[string]*[4][]float64{}
				}
				if want[at][provider] == nil {
					want[at][provider] = &[4][]float64{}
				}
				for i, column := range []string{"open", "high", "low", "close"} {
					want[at][provider][i] = append(want[at][provider][i], number(r, column), number(r, "weight"))
				}
			}
			for _, p := range points {
				point, _ := p.(map[string]any)
				if point["complete"] != true {
					continue
				}
				at := number(point, "timestamp")
				where := fmt.Sprintf("%s at %.0f", path, at)
				differs = append(differs, near(where+": providers", point["providers"], float64(len(want[at])))...)
				for i, name := range []string{"open", "high", "low", "close"} {
					var means []float64
					for _, provider := range want[at] {
						means = append(means, weightedMean(provider[i]))
					}
					slices.Sort(means)
					if len(means) > 0 {
						differs = append(differs, near(where+": "+name, point[name], middle(means))...)
					}
				}
				delete(want, at)
			}
			for at := range want {
				if at < number(points[len(points)-1].(map[string]any), "timestamp") {
					differs = append(differs, fmt.Sprintf("%s has no point at %.0f", path, at))
				}
			}
		}
	}
	return differs, ""
}

// weightedMean is that of values, each with its weight after it; of all alike where nothing has one.
func weightedMean(pairs []float64) float64 {
	sum, weights, plain := 0.0, 0.0, 0.0
	for i := 0; i < len(pairs); i += 2 {
		sum, weights, plain = sum+pairs[i]*pairs[i+1], weights+pairs[i+1], plain+pairs[i]
	}
	if weights > 0 {
		return sum / weights
	}
	return plain / float64(len(pairs)/2)
}

// middle is the median of sorted values.
func middle(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func defiDiffers(t *testing.T, d *demo) (differs []string, waiting string) {
	statements := documentedSQL(t, "DeFi")
	if len(statements) < 3 {
		t.Fatalf("the page of formulas has %d statements about DeFi", len(statements))
	}
	_, before, err := d.ask("/api/v1/global-stats/defi")
	if err != nil {
		return nil, err.Error()
	}
	_, lending, err := d.ask("/api/v1/global-stats/defi/lending")
	if err != nil {
		return nil, err.Error()
	}
	locked, rates, caps := d.query(t, statements[0]), d.query(t, statements[1]), d.query(t, statements[2])
	if len(locked) != 1 || len(rates) != 3 || len(caps) != 1 {
		return nil, fmt.Sprintf("%d, %d and %d rows", len(locked), len(rates), len(caps))
	}
	served, lent := of(before, "data"), of(lending, "data")
	return slices.Concat(near("totalTvl", served["totalTvl"], number(locked[0], "total_tvl")), near("lendingTvl", served["lendingTvl"], number(locked[0], "lending_tvl")),
		near("stakingTvl", served["stakingTvl"], number(locked[0], "staking_tvl")), near("borrowingTvl", served["borrowingTvl"], number(locked[0], "borrowing_tvl")),
		near("defiToCefiRatio", served["defiToCefiRatio"], number(locked[0], "defi_to_cefi_ratio")),
		near("defiMarketDominance", served["defiMarketDominance"], number(caps[0], "defi_market_dominance")),
		near("averageSupplyApy", lent["averageSupplyApy"], number(rates[1], "average")), near("medianSupplyApy", lent["medianSupplyApy"], number(rates[1], "median")),
		near("tvlWeightedSupplyApy", lent["tvlWeightedSupplyApy"], number(rates[1], "weighted")), near("averageBorrowApy", lent["averageBorrowApy"], number(rates[0], "average"))), ""
}

// benchmarkDiffers works the benchmark of now out of v_rates: the demo has seen no midnight, or the answer holds what counts
// now beside the fixing.
func benchmarkDiffers(t *testing.T, d *demo) (differs []string, waiting string) {
	type mean struct{ weighted, weight, plain, n float64 }
	providers := map[string]*mean{}
	var all mean
	for _, r := range d.query(t, countingRates) {
		coin, known := schemas.Coins().ByID(fmt.Sprint(r["coin_id"]))
		if !known || coin.Peg != "USD" || r["category"] == "borrowing" || r["term"] != "flexible" && r["term"] != "" || number(r, "lockup_days") > 0 {
			continue
		}
		m := providers[fmt.Sprint(r["provider"])]
		if m == nil {
			m = &mean{}
			providers[fmt.Sprint(r["provider"])] = m
		}
		m.plain += number(r, "apy")
		m.n++
		if tvl := number(r, "tvl_usd"); tvl > 0 {
			m.weighted += number(r, "apy") * tvl
			m.weight += tvl
			all.weighted += number(r, "apy") * tvl
			all.weight += tvl
		}
	}
	if len(providers) < 5 {
		return nil, fmt.Sprintf("only %d providers pay for dollars", len(providers))
	}
	var values []float64
	for _, m := range providers {
		if m.weight > 0 {
			values = append(values, m.weighted/m.weight)
		} else {
			values = append(values, m.plain/m.n)
		}
	}
	slices.Sort(values)
	_, body, err := d.ask("/api/v1/earn/benchmark")
	if err != nil {
		return nil, err.Error()
	}
	now := of(body, "data")
	if current := of(now, "current"); current != nil {
		now = current
	}
	return slices.Concat(near("median", now["median"], middle(values)), near("tvlWeighted", now["tvlWeighted"], all.weighted/all.weight),
		near("providerCount", now["providerCount"], float64(len(values)))), ""
}
