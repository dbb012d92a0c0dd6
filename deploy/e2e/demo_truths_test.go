package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/ws"
)

func excerpt(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text[:min(len(text), 400)])
}

// What endpoints answer agrees within each answer and between them, on a running demo.
func TestDemoAnswersAgreeWithEachOther(t *testing.T) {
	checkTruths(t, filledDemo(t))
}

// checkTruths walks the endpoints of a running server's own document, both views of each, and reports what contradicts
// itself or another answer.
func checkTruths(t *testing.T, d *demo) {
	t.Helper()
	paths := documentedPaths(t, d)
	if len(paths) < 20 {
		t.Errorf("the document names %d paths to ask for, want at least 20: %v", len(paths), paths)
	}
	checked := 0
	for _, path := range paths {
		for _, view := range []string{"reference", "tool"} {
			asked := withQuery(path, "view", view)
			status, body, err := d.ask(asked)
			if err != nil || status != http.StatusOK {
				t.Errorf("%s: got %d %s, %v; want 200", asked, status, excerpt(body), err)
				continue
			}
			truths{t, asked}.check("", body)
			checked++
		}
	}
	t.Logf("%d answers of %d paths were checked", checked, len(paths))
	checkCaps(t, d)
}

// documentedPaths are the GET operations of the server's document, with their examples as required parameters.
func documentedPaths(t *testing.T, d *demo) []string {
	t.Helper()
	document := querytest.ReadDocument(t, d.base)
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		if get := document.Paths.Value(path).Get; get != nil && strings.HasPrefix(path, "/api/") && path != ws.LinesPath { // whose answer does not end
			paths = append(paths, querytest.Calls(path, get)[0].Path)
		}
	}
	return paths
}

func withQuery(path, name, value string) string {
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	return path + mark + name + "=" + url.QueryEscape(value)
}

// truths checks one answer.
type truths struct {
	t    *testing.T
	path string
}

func (c truths) check(at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		c.object(at, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			c.check(at+"."+name, v[name])
		}
	case []any:
		c.list(at, v)
		for i, item := range v {
			c.check(fmt.Sprintf("%s[%d]", at, i), item)
		}
	}
}

func (c truths) wrong(at, format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: %s: %s", c.path, cmp.Or(at, "."), fmt.Sprintf(format, args...))
}

// slack is how far apart two numbers may be that were summed in another order.
const slack = 1e-9

func (c truths) object(at string, o map[string]any) {
	c.counts(at, o)
	// Each pair of a lesser and a greater.
	for _, pair := range [][2]string{
		{"min", "median"}, {"median", "max"}, {"min", "price"}, {"price", "max"}, {"min", "average"}, {"average", "max"},
		{"low", "open"}, {"open", "high"}, {"low", "close"}, {"close", "high"}, {"low", "avg"}, {"avg", "high"},
		{"low24h", "price"}, {"price", "high24h"}, {"low24h", "currentPrice"}, {"currentPrice", "high24h"},
		{"atl", "ath"}, {"atl", "currentPrice"}, {"atl", "price"}, {"currentPrice", "ath"}, {"price", "ath"},
		{"circulatingSupply", "maxSupply"}, {"bid", "ask"}, {"minPrice", "maxPrice"}, {"minRate", "maxRate"},
	} {
		least, known := o[pair[0]].(float64)
		greatest, both := o[pair[1]].(float64)
		if known && both && least > greatest*(1+slack) {
			c.wrong(at, "%s %v is above %s %v", pair[0], least, pair[1], greatest)
		}
	}
	for name, value := range o {
		number, ok := value.(float64)
		if ok && (strings.HasSuffix(strings.ToLower(name), "dominance") || name == "similarity") && (number < 0 || number > 100) {
			c.wrong(at, "%s is %v, want 0 to 100", name, number)
		}
		if shares, ok := value.(map[string]any); ok && name == "dominance" {
			if sum := sumOf(shares); sum > 100*(1+slack) {
				c.wrong(at, "the shares of %s sum to %v", name, sum)
			}
		}
	}
	price := cmp.Or(number(o, "currentPrice"), number(o, "price"))
	if supply, marketCap := number(o, "circulatingSupply"), number(o, "marketCap"); price > 0 && supply > 0 && marketCap > 0 {
		if math.Abs(price*supply/marketCap-1) > 0.05 {
			c.wrong(at, "a price of %v and a supply of %v make a cap of %v, not %v", price, supply, price*supply, marketCap)
		}
	}
	if total, ok := o["total"].(float64); ok && o["positive"] != nil {
		if sum := number(o, "positive") + number(o, "negative") + number(o, "neutral"); sum != total {
			c.wrong(at, "positive, negative and neutral sum to %v, not to total %v", sum, total)
		}
	}
}

// counts holds count, of the object or its meta, against the list or map beside it.
func (c truths) counts(at string, o map[string]any) {
	count, ok := o["count"].(float64)
	if meta, is := o["meta"].(map[string]any); is && !ok {
		count, ok = meta["count"].(float64)
	}
	// Lists of a meta are not the rows that it counts; one thing alone may have lists of its own.
	if o["symbols"] != nil { // what is counted is not what lies beside it
		return
	}
	if _, alone := o["data"].(map[string]any); !ok || strings.HasSuffix(at, "meta") || alone && count == 1 {
		return
	}
	var sizes []int
	sizesOf := func(o map[string]any) {
		for name, value := range o {
			switch v := value.(type) {
			case []any:
				sizes = append(sizes, len(v))
			case map[string]any:
				if name == "prices" {
					sizes = append(sizes, len(v))
				}
			}
		}
	}
	sizesOf(o)
	if inner, is := o["data"].(map[string]any); is {
		sizesOf(inner)
	}
	all := 0
	for _, size := range sizes {
		all += size
	}
	if len(sizes) > 0 && all != int(count) && !slices.Contains(sizes, int(count)) {
		c.wrong(at, "count is %v beside lists of %v", count, sizes)
	}
}

// list checks what is in order: times, ranks and ids.
func (c truths) list(at string, list []any) {
	for _, name := range []string{"rank", "marketCapRank", "trendRank", "id", "coinId", "slug", "key"} {
		seen := map[any]bool{}
		for i, item := range list {
			o, _ := item.(map[string]any)
			// A coin may be in several markets, in several categories or have several of what else is listed.
			value, ok := o[name]
			if !ok || name == "coinId" && (o["exchange"] != nil || o["provider"] != nil || o["category"] != nil) {
				continue
			}
			if seen[value] {
				c.wrong(at, "[%d] has the %s %v of another", i, name, value)
			}
			seen[value] = true
		}
	}
	var before any
	for i, item := range list {
		var moment any
		switch v := item.(type) {
		case map[string]any:
			if v["value"] != nil || v["open"] != nil || v["close"] != nil {
				moment = v["timestamp"]
			}
		case []any:
			if len(v) == 2 {
				moment = v[0]
			}
		}
		if moment == nil {
			return
		}
		if before != nil && !earlier(before, moment) {
			c.wrong(at, "[%d] of %v follows %v", i, moment, before)
		}
		before = moment
	}
}

// earlier compares two times in the form that an answer has.
func earlier(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		first, err := time.Parse(time.RFC3339Nano, a)
		second, failed := time.Parse(time.RFC3339Nano, b)
		return ok && err == nil && failed == nil && first.Before(second)
	case float64:
		b, ok := b.(float64)
		return ok && a < b
	}
	return false
}

func number(o map[string]any, name string) float64 {
	n, _ := o[name].(float64)
	return n
}

func sumOf(o map[string]any) float64 {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(o)) {
		sum += number(o, name)
	}
	return sum
}

// checkCaps holds the market table against what other endpoints serve of all coins together.
func checkCaps(t *testing.T, d *demo) {
	t.Helper()
	// A minute may end between two answers: then all is asked for again.
	for attempt := 0; ; attempt++ {
		wrong, again := capsDisagree(d)
		if again != "" && attempt < 10 {
			continue
		}
		if again != "" {
			t.Errorf("asking for the caps: %s", again)
		}
		for _, w := range wrong {
			t.Error(w)
		}
		return
	}
}

// capsDisagree returns what is wrong, or why it has to be asked again.
func capsDisagree(d *demo) (wrong []string, again string) {
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var caps []float64
	previous, rows, updated := 0.0, 0, ""
	for page := 1; ; page++ {
		path := fmt.Sprintf("/api/v1/coins/markets?per_page=250&page=%d", page)
		status, body, err := d.ask(path)
		meta, _ := body["meta"].(map[string]any)
		data, _ := body["data"].([]any)
		if err != nil || status != http.StatusOK || updated != "" && meta["lastUpdated"] != updated {
			return nil, fmt.Sprintf("%s: %d, of %v, %v", path, status, meta["lastUpdated"], err)
		}
		updated, _ = meta["lastUpdated"].(string)
		for _, item := range data {
			row, _ := item.(map[string]any)
			rows++
			if rank := number(row, "marketCapRank"); rank > 0 {
				if rank != previous+1 {
					fault("%s: rank %v of %v follows %v", path, rank, row["id"], previous)
				}
				previous = rank
				caps = append(caps, number(row, "marketCap"))
			}
		}
		if len(data) == 0 {
			if total := int(number(meta, "total")); total != rows {
				fault("%s: the pages hold %d rows, total is %d", path, rows, total)
			}
			break
		}
	}
	sum := 0.0
	for i, marketCap := range caps {
		sum += marketCap
		if i > 0 && marketCap > caps[i-1] {
			fault("coins/markets: rank %d has a cap of %v, the one before %v", i+1, marketCap, caps[i-1])
		}
	}
	status, body, err := d.ask("/api/v1/coins/stats")
	stats, _ := body["data"].(map[string]any)
	if err != nil || status != http.StatusOK || stats["timestamp"] != updated {
		return nil, fmt.Sprintf("coins/stats: %d, of %v and not %v, %v", status, stats["timestamp"], updated, err)
	}
	if number(stats, "rankedCoins") != float64(len(caps)) || number(stats, "pricedCoins") != float64(rows) {
		fault("coins/stats: got %v ranked and %v priced coins, coins/markets has %d and %d", stats["rankedCoins"], stats["pricedCoins"], len(caps), rows)
	}
	status, body, err = d.ask("/api/v1/global-stats/metrics")
	if status == http.StatusNotFound {
		return wrong, "" // this server does not answer for the whole market
	}
	metrics, _ := body["data"].(map[string]any)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Sprintf("global-stats/metrics: %d, %v", status, err)
	}
	// The table's rows and the sum are of one minute; rows of coins that did not change are not reported again.
	if total := number(metrics, "totalMarketCap"); total <= 0 || math.Abs(total/sum-1) > 0.01 {
		fault("global-stats/metrics: the total cap is %v, those of coins/markets sum to %v", total, sum)
	}
	if len(caps) == 0 {
		return []string{"coins/markets: no coin has a rank"}, ""
	}
	if share := 100 * caps[0] / sum; math.Abs(number(metrics, "btcDominance")-share) > 1 {
		fault("global-stats/metrics: BTC dominance is %v, coins/markets says %v", metrics["btcDominance"], share)
	}
	return wrong, ""
}
