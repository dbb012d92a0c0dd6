//go:build linux || darwin

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// Rows of which there are several versions are read as the newest, whatever of them a statement asks for: conditions on columns that are not
// in the key must not find an older version. Those on the key are decided before versions are merged, which is what makes short statements short.
func TestConditionsSeeTheNewestVersions(t *testing.T) {
	random := streamtest.Rand(t)
	e := openEngine(t)
	server := analysts(t, e)
	exec(t, connect(t, e), "CREATE DATABASE m",
		"CREATE TABLE m.prices (coin LowCardinality(String), at UInt32, price Nullable(Float64), reason LowCardinality(String), version UInt64) "+
			"ENGINE = ReplacingMergeTree(version) PARTITION BY intDiv(at, 100) ORDER BY (coin, at) SETTINGS index_granularity = 64",
		"CREATE VIEW default.v AS SELECT coin, at, if(reason = '', price, NULL) AS price, reason FROM m.prices FINAL",
		"SYSTEM STOP MERGES m.prices") // parts stay as they come, each with versions of the others' rows

	type key struct {
		coin string
		at   uint32
	}
	type row struct {
		price   int
		reason  string
		version uint64
	}
	newest := map[key]row{}
	for part := range 6 {
		var values []string
		for range 300 {
			k := key{fmt.Sprintf("c%d", random.IntN(5)), uint32(random.IntN(250))}
			r := row{random.IntN(4), []string{"", "none"}[random.IntN(2)], uint64(part*1000 + len(values))}
			newest[k] = r
			values = append(values, fmt.Sprintf("('%s', %d, %d, '%s', %d)", k.coin, k.at, r.price, r.reason, r.version))
		}
		exec(t, connect(t, e), "INSERT INTO m.prices VALUES "+strings.Join(values, ", "))
	}

	for range 60 {
		coin, from, price, reason := fmt.Sprintf("c%d", random.IntN(5)), uint32(random.IntN(250)), random.IntN(4), []string{"", "none"}[random.IntN(2)]
		conditions := []struct {
			sql   string
			holds func(key, row) bool
		}{
			{fmt.Sprintf("coin = '%s'", coin), func(k key, _ row) bool { return k.coin == coin }},
			{fmt.Sprintf("at >= %d", from), func(k key, _ row) bool { return k.at >= from }},
			{fmt.Sprintf("price = %d", price), func(_ key, r row) bool { return r.reason == "" && r.price == price }},
			{fmt.Sprintf("reason = '%s'", reason), func(_ key, r row) bool { return r.reason == reason }},
			{fmt.Sprintf("(coin = '%s' OR price = %d)", coin, price), func(k key, r row) bool { return k.coin == coin || r.reason == "" && r.price == price }},
		}
		random.Shuffle(len(conditions), func(i, j int) { conditions[i], conditions[j] = conditions[j], conditions[i] })
		conditions = conditions[:1+random.IntN(len(conditions))]
		var where, want []string
		for _, c := range conditions {
			where = append(where, c.sql)
		}
		for k, r := range newest {
			if !slices.ContainsFunc(conditions, func(c struct {
				sql   string
				holds func(key, row) bool
			}) bool {
				return !c.holds(k, r)
			}) {
				shown := fmt.Sprint(r.price)
				if r.reason != "" {
					shown = `\N`
				}
				want = append(want, fmt.Sprintf("%s\t%05d\t%s", k.coin, k.at, shown))
			}
		}
		slices.Sort(want)
		sql := "SELECT coin, leftPad(toString(at), 5, '0'), price FROM v WHERE " + strings.Join(where, " AND ") + " ORDER BY coin, at"
		status, _, body := ask(t, server, sql)
		if got := strings.TrimRight(body, "\n"); status != 200 || got != strings.Join(want, "\n") {
			t.Fatalf("%s: got %d and %d rows, want %d\n%.300s", sql, status, strings.Count(body, "\n"), len(want), got)
		}
	}

	const plan = "EXPLAIN actions = 1 SELECT price FROM v WHERE coin = 'c1' AND price > 1"
	if _, _, body := ask(t, server, plan); !strings.Contains(body, `Prewhere filter column:  coin = \'c1\'`) {
		t.Errorf("%s: the condition on the key is not decided first:\n%s", plan, body)
	}
}
