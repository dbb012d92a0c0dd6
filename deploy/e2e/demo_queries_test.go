package e2e

import (
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/marketlog/marketlog/docs"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// rowsOf are what the SQL port answers to a statement: the names of its columns, and by row their texts.
func (d *demo) rowsOf(t *testing.T, statement string) (columns []string, rows [][]string) {
	t.Helper()
	status, body := d.statement(t.Context(), statement+"\nFORMAT TSVWithNames")
	if status != http.StatusOK || len(body) >= 1<<20 {
		t.Fatalf("%.200s: got %d and %d bytes, %.500s", statement, status, len(body), body)
	}
	for line := range strings.Lines(body) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows[0], rows[1:]
}

// numberOf reads a number of an answer.
func numberOf(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sameButForOrder reports whether two numbers are the same but for the order in which floating-point numbers were added up.
func sameButForOrder(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b))
}

// sampleQuery is a file of docs/queries, for an instant in place of now().
func sampleQuery(t *testing.T, name, now string) (comment, statement string) {
	t.Helper()
	text, err := fs.ReadFile(docs.Files, "queries/"+name+".sql")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words, ok := strings.CutPrefix(line, "--"); ok {
			comment += words
		} else {
			statement += line
		}
	}
	return comment, strings.ReplaceAll(strings.TrimSpace(statement), "now()", now)
}

// Every sample query runs on a running instance and has the columns that it describes, and rows; what some of them answer is worked out
// again in Go from plain rows.
func TestDemoAnswersTheSampleQueries(t *testing.T) {
	d := filledDemo(t)
	d.await(t, "/api/v1/prices/BTC", "a fresh price", func(_ int, body map[string]any) bool {
		p := priceOf(body)
		return p != nil && p["isStale"] == false
	})
	// Of these there may be nothing, or nothing yet.
	scarce := []string{"05-where-venues-were-left-out", "07-stablecoins-off-their-pegs", "09-what-could-not-be-processed", "14-volatility", "15-correlation",
		"17-five-minute-candles", "18-where-messages-are-missing", "21-universe-as-it-was-known", "23-which-minutes-are-incomplete", "24-proofs", "25-new-and-gone-markets", "27-universe-at-an-instant"}
	names, err := fs.Glob(docs.Files, "queries/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	// All ask as of one instant before which everything has come, so that what they are compared with is of the same rows.
	_, newest := d.rowsOf(t, "SELECT toUnixTimestamp(max(time)) - 10 FROM v_prices")
	now := fmt.Sprintf("toDateTime(%s, 'UTC')", newest[0][0])
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "queries/"), ".sql")
		comment, statement := sampleQuery(t, name, now)
		began := time.Now()
		columns, rows := d.rowsOf(t, statement)
		t.Logf("%s: %d rows in %v", name, len(rows), time.Since(began).Round(time.Millisecond))
		if len(rows) == 0 && !slices.Contains(scarce, name) {
			t.Errorf("%s: found nothing", name)
		}
		for _, column := range columns {
			if !regexp.MustCompile(`\b` + column + `\b`).MatchString(comment) {
				t.Errorf("%s: does not describe its column %s", name, column)
			}
		}
		if compare := compared[name]; compare != nil {
			compare(t, d, now, rows)
		}
	}
}

// compared are samples whose answers are worked out again.
var compared = map[string]func(t *testing.T, d *demo, now string, got [][]string){
	"11-trades-against-the-price-before": compareTrades,
	"12-spreads-by-venue":                compareSpreads,
	"13-volume-weighted-price":           compareVolumeWeighted,
	"20-worst-fall":                      compareFalls,
	"26-what-a-symbol-means":             compareSymbols,
}

// compareTrades looks for the price that was known at each trade by hand.
func compareTrades(t *testing.T, d *demo, now string, got [][]string) {
	_, prices := d.rowsOf(t, "SELECT toUnixTimestamp64Nano(published) AS at, price FROM v_prices WHERE coin_id = 'bitcoin' AND time > "+now+" - 300 AND price > 0 ORDER BY at")
	_, trades := d.rowsOf(t, "SELECT venue, toUnixTimestamp64Nano(event_time), toFloat64(price) * rate, toFloat64(size) FROM v_ticks WHERE coin_id = 'bitcoin' AND kind = 'trade' AND event_time BETWEEN "+
		now+" - 120 AND "+now+" AND rate > 0 AND NOT snapshot")
	type sums struct{ trades, dollars, slipped float64 }
	want := map[string]sums{}
	ahead := 0
	for _, trade := range trades {
		usd, size := numberOf(t, trade[2]), numberOf(t, trade[3])
		known := 0.0
		for _, price := range prices {
			if len(price[0]) != len(trade[1]) {
				t.Fatalf("times %s and %s", price[0], trade[1])
			}
			if price[0] > trade[1] { // of equal length
				ahead++
				break
			}
			known = numberOf(t, price[1])
		}
		if known == 0 {
			continue // before the first price
		}
		s := want[trade[0]]
		s.trades++
		s.dollars += usd * size
		s.slipped += usd * size * 10000 * (usd/known - 1)
		want[trade[0]] = s
	}
	if len(want) != len(got) || ahead == 0 {
		t.Errorf("got trades of %d venues, want %d; %d had a later price", len(got), len(want), ahead)
	}
	for _, row := range got {
		s := want[row[0]]
		if numberOf(t, row[1]) != s.trades || !sameButForOrder(numberOf(t, row[2]), s.dollars) || math.Abs(numberOf(t, row[3])-s.slipped/s.dollars) > 1e-6 {
			t.Errorf("got %v, want %g trades of %g USD with %g bps", row, s.trades, s.dollars, s.slipped/s.dollars)
		}
		if age := numberOf(t, row[4]); age < 0 {
			t.Errorf("%s: trades are compared with prices of %g s later", row[0], -age)
		}
	}
}

// compareSpreads sorts the spreads of each market; the lower of the middle two counts.
func compareSpreads(t *testing.T, d *demo, now string, got [][]string) {
	_, quotes := d.rowsOf(t, "SELECT venue, symbol, bid, ask FROM v_ticks WHERE coin_id = 'bitcoin' AND ingest_time BETWEEN "+now+" - 300 AND "+now)
	spreads := map[string][]float64{}
	for _, quote := range quotes {
		if quote[2] == `\N` || quote[3] == `\N` {
			continue
		}
		if bid, ask := numberOf(t, quote[2]), numberOf(t, quote[3]); bid > 0 && ask > bid {
			spreads[quote[0]+" "+quote[1]] = append(spreads[quote[0]+" "+quote[1]], 10000*(ask-bid)/bid)
		}
	}
	if len(spreads) != len(got) {
		t.Errorf("got the spreads of %d markets, want %d", len(got), len(spreads))
	}
	for _, row := range got {
		of := spreads[row[0]+" "+row[1]]
		slices.Sort(of)
		// The difference of two binary numbers has fewer exact digits than that of two decimals.
		if int(numberOf(t, row[2])) != len(of) || math.Abs(numberOf(t, row[3])-of[(len(of)-1)/2]) > 1e-6 || math.Abs(numberOf(t, row[4])-of[0]) > 1e-6 {
			t.Errorf("got %v, want %d quotes with %g bps, at least %g", row, len(of), of[(len(of)-1)/2], of[0])
		}
	}
}

// compareVolumeWeighted adds up the trades of each minute.
func compareVolumeWeighted(t *testing.T, d *demo, now string, got [][]string) {
	_, trades := d.rowsOf(t, "SELECT toUnixTimestamp(event_time), toString(price), rate, toString(size) FROM v_ticks WHERE coin_id = 'bitcoin' AND kind = 'trade' AND event_time BETWEEN "+now+" - 600 AND "+now+
		" AND rate > 0 AND NOT snapshot")
	type sums struct{ trades, coins, dollars float64 }
	want := map[string]sums{}
	for _, trade := range trades {
		start := time.Unix(int64(numberOf(t, trade[0])), 0).UTC().Format("2006-01-02 15:04:00")
		s, size := want[start], numberOf(t, trade[3])
		s.trades, s.coins, s.dollars = s.trades+1, s.coins+size, s.dollars+numberOf(t, trade[1])*numberOf(t, trade[2])*size
		want[start] = s
	}
	if len(want) != len(got) {
		t.Errorf("got %d minutes, want %d", len(got), len(want))
	}
	for _, row := range got {
		s := want[row[0]]
		if numberOf(t, row[1]) != s.trades || !sameButForOrder(numberOf(t, row[2]), s.coins) || !sameButForOrder(numberOf(t, row[3]), s.dollars/s.coins) {
			t.Errorf("got %v, want %g trades of %g coins at %g", row, s.trades, s.coins, s.dollars/s.coins)
		}
	}
}

// compareSymbols looks for the markets of bitcoin that have sent ticks: each has to be listed, with the coin and quote that its ticks have.
func compareSymbols(t *testing.T, d *demo, _ string, got [][]string) {
	listed := map[string]bool{}
	for _, row := range got {
		listed[strings.Join(row[:4], " ")] = row[5] == `\N`
	}
	_, markets := d.rowsOf(t, "SELECT DISTINCT venue, symbol, coin_id, quote_id FROM v_ticks WHERE coin_id = 'bitcoin' AND quote_id IN ('USD', 'tether', 'usd-coin')")
	if len(markets) < 16 {
		t.Errorf("got %d markets of bitcoin with ticks", len(markets))
	}
	for _, market := range markets {
		if !listed[strings.Join(market, " ")] {
			t.Errorf("%v has sent ticks and is not listed", market)
		}
	}
}

// compareFalls walks through the minutes of each coin in their order.
func compareFalls(t *testing.T, d *demo, now string, got [][]string) {
	_, minutes := d.rowsOf(t, "SELECT symbol, close FROM v_candles_1m WHERE start > "+now+" - 86400 AND coin_id IN (SELECT coin_id FROM v_markets WHERE rank BETWEEN 1 AND 20) ORDER BY coin_id, start")
	type state struct{ high, fall, minutes float64 }
	want := map[string]state{}
	for _, minute := range minutes {
		s, price := want[minute[0]], numberOf(t, minute[1])
		s.high, s.minutes = max(s.high, price), s.minutes+1
		s.fall = min(s.fall, 100*(price/s.high-1))
		want[minute[0]] = s
	}
	if len(want) != len(got) || len(got) == 0 {
		t.Errorf("got the falls of %d coins, want %d", len(got), len(want))
	}
	for _, row := range got {
		// A minute may have closed between the two statements.
		if s := want[row[0]]; numberOf(t, row[3]) <= s.minutes && numberOf(t, row[1]) < s.fall-1e-9 || numberOf(t, row[3]) == s.minutes && !sameButForOrder(numberOf(t, row[1]), s.fall) {
			t.Errorf("got %v, want a fall of %g %% in %g minutes", row, s.fall, s.minutes)
		}
	}
}

// No view shows a row as published before the moment or interval that it is of, nor without an instant.
func TestDemoPublishesNothingBeforeItHappened(t *testing.T) {
	d := filledDemo(t)
	_, columns := d.rowsOf(t, `SELECT c.table, has(groupArray(c.name), 'start'), has(groupArray(c.name), 'time') FROM system.columns AS c
		WHERE c.database = 'default' AND c.table LIKE 'v\_%' AND c.table != 'v_usage' GROUP BY c.table`)
	if len(columns) < 30 {
		t.Fatalf("got %d views", len(columns))
	}
	filled := 0
	for _, of := range columns {
		before := "false"
		switch {
		case of[1] == "1":
			before = "published <= start"
		case of[2] == "1":
			before = "published < time"
		}
		if of[0] == "v_universe_at" {
			of[0] += "(at = now())"
		}
		// As many rows as take no time.
		_, rows := d.rowsOf(t, fmt.Sprintf("SELECT count(), sum(early), sum(published < '2010-01-01' OR published > '2190-01-01') FROM (SELECT published, %s AS early FROM %s LIMIT 10000)", before, of[0]))
		if rows[0][1] != "0" || rows[0][2] != "0" {
			t.Errorf("%s: of %s rows %s are published before they happened, %s at no time", of[0], rows[0][0], rows[0][1], rows[0][2])
		}
		if rows[0][0] != "0" {
			filled++
		}
	}
	if filled < 15 {
		t.Errorf("only %d views have rows", filled)
	}
}

// What docs/dbt/sources.yml says of a view is true of a running instance: columns, those without NULL, keys, and how new it is.
func TestDemoSuitsDBT(t *testing.T) {
	d := filledDemo(t)
	text, err := fs.ReadFile(docs.Files, "dbt/sources.yml")
	if err != nil {
		t.Fatal(err)
	}
	var declared struct {
		Sources []struct {
			Schema string
			Tables []struct {
				Name   string
				Config struct {
					Loaded    string `yaml:"loaded_at_field"`
					Freshness map[string]struct {
						Count  int
						Period string
					}
				}
				Columns []struct {
					Name  string
					Tests []string `yaml:"data_tests"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &declared); err != nil {
		t.Fatal(err)
	}
	_, described := d.rowsOf(t, "SELECT table, name, type FROM system.columns WHERE database = '"+declared.Sources[0].Schema+"' ORDER BY table, position")
	types := map[string][][]string{}
	for _, column := range described {
		types[column[0]] = append(types[column[0]], column[1:])
	}
	keys, fresh := 0, 0
	for _, table := range declared.Sources[0].Tables {
		columns := types[table.Name]
		for i, column := range table.Columns {
			if i >= len(columns) || columns[i][0] != column.Name {
				t.Errorf("%s: has the columns %v, want %s at %d", table.Name, columns, column.Name, i)
				break
			}
			if slices.Contains(column.Tests, "not_null") == strings.HasPrefix(columns[i][1], "Nullable(") {
				t.Errorf("%s.%s: %v is declared of the type %s", table.Name, column.Name, column.Tests, columns[i][1])
			}
			if slices.Contains(column.Tests, "unique") {
				keys++
				if _, rows := d.rowsOf(t, fmt.Sprintf("SELECT count(), uniqExact(%s) FROM %s", column.Name, table.Name)); rows[0][0] != rows[0][1] || rows[0][0] == "0" {
					t.Errorf("%s: %s rows have %s values of %s", table.Name, rows[0][0], rows[0][1], column.Name)
				}
			}
		}
		if of := table.Config; of.Loaded != "" {
			fresh++
			limit := of.Freshness["warn_after"]
			if _, rows := d.rowsOf(t, fmt.Sprintf("SELECT max(%s) > now() - INTERVAL %d %s FROM %s", of.Loaded, limit.Count, limit.Period, table.Name)); rows[0][0] != "1" {
				t.Errorf("%s: its newest %s is older than %v", table.Name, of.Loaded, limit)
			}
		}
	}
	if keys < 5 || fresh < 5 {
		t.Errorf("got %d keys and %d views with an age, want more", keys, fresh)
	}
	t.Run("by dbt itself", func(t *testing.T) {
		streamtest.InTier(t, streamtest.TierContract)
		d.runDBT(t)
	})
}
