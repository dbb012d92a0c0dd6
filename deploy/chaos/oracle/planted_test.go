package oracle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// planted is a fault in a table: what is read of it instead of all, and what must then be found.
type planted struct {
	what, table, instead string
	// names are views with a word that the difference found in each must name.
	names [][2]string
}

// Which rows are spoiled: the minute in which a stablecoin lay furthest from its peg, the oldest price that is kept, the last change
// of a coin, the newest request to a source.
const (
	worst  = "(SELECT (coin_id, trough - 60) FROM default.v_peg_episodes WHERE trough > '2026-01-05 08:12:00' AND trough < '2026-02-01' ORDER BY minutes DESC, coin_id, start LIMIT 1)"
	oldest = "(coin_id, time) = (SELECT (coin_id, time) FROM default.v_peg WHERE resolution = 'second' AND coin_id = 'dai' ORDER BY time LIMIT 1)"
	change = "(source, source_id, part, ingest_time) = (SELECT (source, source_id, part, time) FROM default.v_coin_events WHERE notEmpty(changed) ORDER BY time DESC, source, source_id, part LIMIT 1)"
	asked  = "(source, started) = (SELECT (source, max(started)) FROM default.v_fetches WHERE source = 'ecb' GROUP BY source)"
)

var faults = []planted{
	{"a source's report of a coin lost", "coin_events", "* FROM coin_events FINAL WHERE NOT " + change, [][2]string{{"v_coin_events", "is missing"}}},
	{"a source's report of a coin stale", "coins", "* REPLACE (if(source = 'coingecko' AND part = 'detail', 'its description before', description) AS description) FROM coins FINAL", [][2]string{{"v_coins", "description"}}},
	{"a coin reported a day late", "coin_events", "* REPLACE (if(source_id = 'n-coin', ingest_time + 86400, ingest_time) AS ingest_time) FROM coin_events FINAL", [][2]string{{"v_coins", "first_seen"}}},
	{"a request lost", "fetches", "* FROM fetches FINAL WHERE NOT " + asked, [][2]string{{"v_fetches", "ecb"}, {"v_sources", "ecb: last_attempt"}}},
	{"a request counted twice", "fetches", "* FROM (SELECT * FROM fetches FINAL UNION ALL SELECT * REPLACE (addNanoseconds(started, 1) AS started) FROM (SELECT * FROM fetches FINAL WHERE " + asked + "))", [][2]string{{"v_fetches", "should not be"}, {"v_sources", "ecb: requests_24h"}}},
	{"an answer's digest another", "fetches", "* REPLACE (if((source, started) = (SELECT (source, max(started)) FROM default.v_fetches WHERE source = 'floor' AND ok GROUP BY source), toUInt64(8), told) AS told) FROM fetches FINAL", [][2]string{{"v_sources", "floor: standstill"}}},
	{"what a source declares stale", "sources", "* REPLACE (if(source = 'coinbase', 'Coinbase 2', name) AS name) FROM sources FINAL", [][2]string{{"v_sources", "coinbase: name"}}},
	{"a source's interval lost", "sources", "* REPLACE (if(source = 'ecb', 0, interval_ns) AS interval_ns) FROM sources FINAL", [][2]string{{"v_sources", "ecb: status"}}},
	{"the last digit of a rate lost", "fixings", "* REPLACE (if(quote = 'USD', intDiv(rate * 1000000, 1) / 1000000, rate) AS rate) FROM fixings FINAL", [][2]string{{"v_fixings", "usd"}}},
	{"the last digit of a statement of a rate lost", "fixings_told", "* REPLACE (if(quote = 'USD', intDiv(rate * 1000000, 1) / 1000000, rate) AS rate) FROM fixings_told FINAL", [][2]string{{"v_peg", "target_usd"}}},
	{"a rate of another day", "fixings", "* REPLACE (if(day = (SELECT max(day) FROM default.v_fixings WHERE currency = 'GBP'), day - 1, day) AS day) FROM fixings FINAL", [][2]string{{"v_fixings", "GBP"}}},
	{"the newest day of rates lost", "fixings", "* FROM fixings FINAL WHERE day < (SELECT max(day) FROM default.v_fixings)", [][2]string{{"v_fixings", "is missing"}}},
	{"the newest day of statements of rates lost", "fixings_told", "* FROM fixings_told FINAL WHERE day < (SELECT max(day) FROM default.v_fixings)", [][2]string{{"the series of euro-coin by 1m0s", "target_usd"}}},
	{"a source's newest rate lost", "fiat_rates", "* FROM fiat_rates FINAL WHERE NOT (source = 'ecb' AND quote = 'JPY')", [][2]string{{"v_fiat", "JPY"}}},
	{"a rate that does not count counted", "fetches", "* REPLACE (if(source = 'bourse', '', error) AS error, if(source = 'bourse', started + 7200, started) AS started) FROM fetches FINAL", [][2]string{{"v_fiat", "left_out"}}},
	{"the worst minute of a peg a minute late", "candles_1m", "* REPLACE (if((coin_id, start) = " + worst + ", start + 60, start) AS start) FROM candles_1m FINAL", [][2]string{{"v_peg_episodes", "trough"}, {"v_peg", "minute is missing"}, {"the statistics of pegs", "samples"}}},
	{"a close a millionth too low", "candles_1m", "* REPLACE (if((coin_id, start) = " + worst + ", close * 0.999999, close) AS close) FROM candles_1m FINAL", [][2]string{{"v_peg", "deviation_bps"}, {"the statistics of pegs", "mean_bps"}}},
	{"a price lost", "prices", "* FROM prices FINAL WHERE NOT " + oldest, [][2]string{{"v_peg", "dai"}}},
	{"a price of 10,000,000 parts one too many", "prices", "* REPLACE (if(" + oldest + ", price * 1.0000001, price) AS price) FROM prices FINAL", [][2]string{{"v_peg", "dai"}}},
	{"the last of a symbol's ticks lost", "ticks", "* FROM ticks FINAL WHERE NOT (coin_id = 'frax' AND ingest_time = (SELECT max(valid_to) FROM default.v_mappings WHERE coin_id = 'frax'))", [][2]string{{"v_mappings", "frax"}}},
	{"an operator's word lost", "overrides", "* FROM overrides FINAL WHERE NOT (symbol = 'LUNA' AND coin_id = '')", [][2]string{{"v_mappings", "LUNA"}}},
	{"a row lost", "markets", "* FROM markets FINAL WHERE coin_id != 'ethereum'", [][2]string{{"v_markets", "ethereum"}, {"v_coins", "ethereum: rank"}}},
	{"a row a minute late", "markets", "* REPLACE (if(coin_id = 'crowd-123', time + 60, time) AS time) FROM markets FINAL", [][2]string{{"v_markets", "crowd-123: time"}}},
	{"a supply stale", "markets", "* REPLACE (if(coin_id = 'crowd-123', circulating_supply + 1, circulating_supply) AS circulating_supply) FROM markets FINAL", [][2]string{{"v_markets", "crowd-123: circulating_supply"}}},
	{"a volume too low", "markets", "* REPLACE (if(coin_id = (SELECT any(coin_id) FROM default.v_movers WHERE range = 'all' AND position = 1 AND side = 'loser'), 49999, volume_24h) AS volume_24h) FROM markets FINAL", [][2]string{{"v_movers", "all loser 1"}}},
	{"a market cap counted twice", "summaries", "* REPLACE (if(time = (SELECT max(time) FROM default.v_global), total_market_cap * (1 + eth_dominance / 100), total_market_cap) AS total_market_cap) FROM summaries FINAL", [][2]string{{"v_global", "total_market_cap"}}},
	{"a day's last index one too high", "summaries", "* REPLACE (if(time = '2026-01-10 00:00:00', fear_greed + 1, fear_greed) AS fear_greed) FROM summaries FINAL", [][2]string{{"v_fear_greed", "2026-01-09T00:00:00Z marketlog: value"}, {"v_global", "fear_greed"}}},
	{"a coin that rose not counted", "sentiment", "* REPLACE (if(range = '101-250' AND time = (SELECT max(time) FROM default.v_global), positive - 1, positive) AS positive) FROM sentiment FINAL", [][2]string{{"v_sentiment", "101-250: positive"}}},
	{"an index of another day", "fear_greed", "* REPLACE (if(day = '2026-01-10', day + 1, day) AS day) FROM fear_greed FINAL", [][2]string{{"v_fear_greed", "2026-01-11"}}},
}

// plantInTables reads one table after the other otherwise than it is, and wants the oracle to name what that spoils.
func (l *live) plantInTables(t *testing.T, want map[string]oracle.View) {
	spoiled := map[string]bool{}
	for _, f := range faults {
		l.instead(t, []string{f.table}, func() {
			l.exec(t, "INSERT INTO "+f.table+spoilt+" SELECT "+f.instead)
		}, func() {
			for _, n := range f.names {
				spoiled[n[0]] = true
				l.wantNamed(t, f.what, n[0], want[n[0]], n[1])
			}
		})
	}
	for name := range want {
		if !spoiled[name] && !strings.HasSuffix(name, "5m0s") {
			t.Errorf("no fault was planted that spoils %s", name)
		}
	}
}

func (l *live) wantNamed(t *testing.T, what, name string, want oracle.View, word string) {
	t.Helper()
	wrong := l.compare(name, want)
	for _, w := range wrong {
		if strings.Contains(w, word) {
			return
		}
	}
	t.Errorf("%s: got %d differences in %s, want one that names %q:\n%s", what, len(wrong), name, word, strings.Join(wrong[:min(len(wrong), 4)], "\n"))
}

const spoilt = "_spoilt"

// instead fills tables that replace others while look looks.
func (l *live) instead(t *testing.T, tables []string, fill, look func()) {
	t.Helper()
	for _, table := range tables {
		l.exec(t, "CREATE TABLE "+table+spoilt+" AS "+table)
	}
	fill()
	for _, table := range tables {
		l.exec(t, "EXCHANGE TABLES "+table+spoilt+" AND "+table)
	}
	look()
	for _, table := range tables {
		l.exec(t, "EXCHANGE TABLES "+table+spoilt+" AND "+table)
		l.exec(t, "DROP TABLE "+table+spoilt)
	}
}

func (l *live) exec(t *testing.T, statement string) {
	t.Helper()
	if err := l.store.Conn().Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// plantBeforeTheFold keeps an observation from the fold, or makes one stale, and puts what the fold then writes into the tables.
func (l *live) plantBeforeTheFold(t *testing.T, s *scenario, want map[string]oracle.View) {
	victim, n := -1, 0
	for _, m := range s.minutes {
		for _, rec := range m.records {
			if reference, ok := rec.(*eventsv1.ReferenceRecord); ok {
				if reference.GetCoinMarket().SourceId == "crowd-123" {
					victim = n
				}
				n++
			}
		}
	}
	for _, f := range []struct {
		what  string
		spoil func(*eventsv1.CoinMarket) *eventsv1.CoinMarket
		names [][2]string // none for no fault
	}{
		{"nothing", func(reference *eventsv1.CoinMarket) *eventsv1.CoinMarket { return reference }, nil},
		{"an observation dropped", func(*eventsv1.CoinMarket) *eventsv1.CoinMarket { return nil }, [][2]string{{"v_markets", "crowd-123 is missing"}, {"v_global", "total_market_cap"}, {"v_sentiment", "101-250"}}},
		{"a supply stale", func(reference *eventsv1.CoinMarket) *eventsv1.CoinMarket {
			old := s.repeated(reference)
			old.CirculatingSupply = "999876"
			return old
		}, [][2]string{{"v_markets", "crowd-123: circulating_supply"}, {"v_global", "total_market_cap"}}},
	} {
		var batch rows.Batch
		for i, rec := range s.fold(func(n int, reference *eventsv1.CoinMarket) *eventsv1.CoinMarket {
			if n == victim {
				return f.spoil(reference)
			}
			return reference
		}, 0) {
			batch.Add(rows.Place{Topic: schemas.TopicMarkets, Offset: int64(i)}, rec)
		}
		l.instead(t, []string{"markets", "markets_1d", "summaries", "sentiment"}, func() {
			if err := l.insist(func() error { return batch.Insert(t.Context(), l.store, spoilt) }); err != nil {
				t.Fatal(err)
			}
		}, func() {
			for _, name := range []string{"v_markets", "v_global", "v_sentiment", "v_movers"} {
				if wrong := l.compare(name, want[name]); f.names == nil && len(wrong) > 0 {
					t.Errorf("without a fault: got %d differences in %s: %s", len(wrong), name, wrong[0])
				}
			}
			for _, n := range f.names {
				l.wantNamed(t, f.what, n[0], want[n[0]], n[1])
			}
		})
	}
}

// insist repeats an insert that the wire lost.
func (l *live) insist(insert func() error) error {
	for range 3 {
		if err := insert(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("inserting for the third time: %w", insert())
}
