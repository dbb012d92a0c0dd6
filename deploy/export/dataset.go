package export

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// Dataset is what can be exported under a name.
type Dataset struct {
	Name string
	// Holds says in a line what a row is, for people.
	Holds string
	// ByVenue means a file a venue and day; else it is a file a day.
	ByVenue bool
	// Topics are those whose records fill the tables.
	Topics []string

	// view has the comments of the columns and, unless from names a table, the rows.
	view string
	// from is what the rows are selected from; empty: view. {db} is replaced by the database of the tables.
	from string
	// where is a further condition; empty for none. {first} and {last} are replaced by the days of the first and last row, as dates.
	where string
	// columns are those of the view that are exported, in this order; nil: all.
	columns []string
	// exprs are the columns of from that have another name or form there.
	exprs map[string]string
	// comments are those of columns that the view has not.
	comments map[string]string
	// time is the column whose UTC day a row belongs to, and grain how long the row's interval is that begins there; 0 for a row
	// of a moment. A row is in an export if its interval lies in the range.
	time  string
	grain time.Duration
	// order makes the rows of a file come in one order, whatever the parts of the tables are.
	order string
	// source is the column that names whose value a row is; empty: rows are made of several sources.
	source string
	// sources selects the names of the sources of the rows between {from} and {to}; empty: source, or the venue.
	sources string
	// minutes means that the rows follow the closed minutes of candles.
	minutes bool
	// expires is the table that drops the oldest rows by their age; empty: all are kept.
	expires string
}

const (
	flagNames = "arrayStringConcat(arrayFilter((name, i) -> bitTest(flags, i), " +
		"['crossed', 'late', 'unmapped', 'no_rate', 'not_spot', 'doubtful'], [0, 1, 2, 3, 4, 6]), ' ')"
	ofVenueCandles = "SELECT DISTINCT toString(venue) AS source FROM {db}.venue_candles_1m WHERE start >= {from} AND start < {to}"
	ofBackfill     = "SELECT DISTINCT toString(venue) AS source FROM {db}.backfill WHERE start >= {from} AND start < {to}"
)

// declared selects the sources of values of some kinds that are asked, and all venues that are: of what is made of many sources no
// row says which they were.
func declared(kinds ...string) string {
	return "SELECT toString(source) AS source FROM {db}.sources FINAL WHERE enabled AND (interval_ns = 0 OR hasAny(kinds, ['" +
		strings.Join(kinds, "', '") + "']))"
}

// ticks is the dataset of one kind of tick.
func ticks(name, kind, holds string, columns ...string) Dataset {
	all := slices.Concat([]string{"coin_id", "venue", "symbol", "base", "quote", "quote_id", "event_time", "ingest_time", "event_id"}, columns,
		[]string{"rate", "rate_time", "flags", "snapshot", "simulated", "raw_partition", "raw_offset", "log_partition", "log_offset"})
	return Dataset{
		Name: name, Holds: holds, ByVenue: true, Topics: []string{schemas.TopicTicks},
		// The table and not the view: only it has the day, without which all days are read for one of them.
		view: "v_ticks", from: "{db}.ticks FINAL", where: "kind = '" + kind + "' AND day >= {first} AND day <= {last}", columns: all,
		exprs: map[string]string{"event_id": "lower(hex(event_id))", "flags": flagNames},
		time:  "ingest_time", order: "ingest_time, symbol, event_id, coin_id, event_time, log_offset", minutes: true, expires: "ticks",
	}
}

// Datasets are all that can be exported, by the names and in the order of schemas.Datasets.
var Datasets = []Dataset{
	ticks(schemas.DatasetTrades, "trade", "a trade as its venue sent it", "price", "size", "side", "trade_id"),
	ticks(schemas.DatasetQuotes, "quote", "a best bid and ask as its venue sent it", "bid", "ask"),
	ticks(schemas.DatasetTickers, "ticker", "a ticker as its venue sent it", "bid", "ask", "last", "volume_base", "volume_quote"),
	{
		Name: schemas.DatasetPrices, Holds: "a coin and second in which its published price changed, with all inputs", Topics: []string{schemas.TopicPrices},
		view: "v_prices", time: "time", order: "coin_id, time", expires: "prices",
		sources: "SELECT DISTINCT toString(arrayJoin(`inputs.provider`)) AS source FROM {db}.prices WHERE time >= {from} AND time < {to}",
	},
	{
		Name: schemas.DatasetCandles, Holds: "a coin and minute: live, or back-filled where there is none",
		Topics: []string{schemas.TopicCandles, schemas.TopicBackfillRaw},
		view:   "v_candles_1m", time: "start", grain: time.Minute, order: "coin_id, start",
		columns: []string{"coin_id", "symbol", "start", "open", "high", "low", "close", "volume", "volume_exact", "volume_usd", "trades", "origin"},
		sources: ofVenueCandles + " UNION DISTINCT " + ofBackfill, minutes: true,
	},
	{
		Name: schemas.DatasetVenueCandles, Holds: "a market of a venue and minute, of the venue's own trades", ByVenue: true, Topics: []string{schemas.TopicCandles},
		view: "v_venue_candles_1m", time: "start", grain: time.Minute, order: "symbol, start", minutes: true, expires: "venue_candles_1m",
	},
	{
		Name: schemas.DatasetMarkets, Holds: "a coin and day: its last price, supplies, market capitalization, changes", Topics: []string{schemas.TopicMarkets},
		view: "v_markets", from: "{db}.markets_1d FINAL", where: "price_source != ''", time: "day", grain: 24 * time.Hour, order: "day, coin_id",
		columns: []string{
			"day", "coin_id", "symbol", "name", "rank", "time", "price", "price_source", "price_time", "market_cap", "fully_diluted_valuation", "volume_24h", "high_24h",
			"low_24h", "price_change_24h", "change_1h", "change_24h", "change_7d", "change_14d", "change_30d", "change_60d", "change_200d", "change_1y",
			"market_cap_change_24h", "market_cap_change_pct_24h", "ath", "ath_time", "atl", "atl_time", "circulating_supply", "total_supply", "max_supply",
			"supply_source", "supply_time", "simulated",
		},
		exprs: map[string]string{
			"ath_time":    "nullIf(ath_time, fromUnixTimestamp64Nano(0, 'UTC'))",
			"atl_time":    "nullIf(atl_time, fromUnixTimestamp64Nano(0, 'UTC'))",
			"supply_time": "nullIf(supply_time, fromUnixTimestamp64Nano(0, 'UTC'))",
		},
		comments: map[string]string{"day": "The UTC day whose last row this is"},
		sources:  declared("coin", "market", "stablecoin"),
	},
	{
		Name: schemas.DatasetGlobal, Holds: "the whole market at the end of a minute", Topics: []string{schemas.TopicMarkets},
		view: "v_global", time: "time", order: "time", sources: declared("coin", "market", "stablecoin", "global", "fear_greed"),
	},
	{
		Name: schemas.DatasetSentiment, Holds: "how many coins rose and fell, by ranks, at the end of a minute", Topics: []string{schemas.TopicMarkets},
		view: "v_sentiment", time: "time", order: "time, range", sources: declared("coin", "market"),
	},
	{
		Name: schemas.DatasetRates, Holds: "a yield when it was reported, ended or changed, and once an hour", Topics: []string{schemas.TopicRates},
		view: "v_rates", from: "{db}.rates FINAL", time: "time", order: "source, category, pool, coin_id, time", expires: "rates",
		columns: []string{
			"key", "time", "provider", "provider_name", "source", "category", "coin_id", "symbol", "pool", "provider_symbol", "chain", "name", "unattached", "apr", "apy",
			"method", "reward_apy", "raw", "raw_unit", "compounding", "tvl_usd", "collateral_usd", "max_ltv", "term", "min_amount", "max_amount", "lockup_days",
			"notice_days", "promo", "shadowed", "ended", "heard", "last_updated", "interval_seconds", "simulated", "raw_offset",
		},
		exprs: map[string]string{
			"key":              "concat(source, '|', category, '|', pool)",
			"last_updated":     "if(toUnixTimestamp64Nano(event_time) = 0, heard, event_time)",
			"interval_seconds": "interval_ns / 1e9",
		},
		source: "source",
	},
	{
		Name: schemas.DatasetDefi, Holds: "DeFi at the end of a minute", Topics: []string{schemas.TopicDefi},
		view: "v_defi", time: "time", order: "time", sources: declared("tvl", "rate"),
	},
	{
		Name: schemas.DatasetFiat, Holds: "a rate of two currencies as its source gave it, by the source's own time", Topics: []string{schemas.TopicReferenceRaw},
		view: "v_fiat", from: "{db}.fiat_rates FINAL", time: "event_time", order: "source, base, quote, day, event_time",
		columns: []string{"source", "base", "quote", "day", "event_time", "rate", "ingest_time", "providers"},
		comments: map[string]string{
			"source": "Who gave it", "base": "ISO 4217 code of the currency that is priced", "quote": "ISO 4217 code of the currency it is priced in",
			"day": "Day that it was given for", "event_time": "The source's own time of it", "rate": "Units of quote for one unit of base, exact",
			"ingest_time": "When it was read", "providers": "Whose rates a blend is made of, by its source",
		},
		source: "source",
	},
	{
		Name: schemas.DatasetFixings, Holds: "a currency and day: the reference rate of a central bank", Topics: []string{schemas.TopicReferenceRaw},
		view: "v_fixings", time: "day", grain: 24 * time.Hour, order: "day, currency", source: "source",
	},
	{
		Name: schemas.DatasetCoverage, Holds: "a stretch in which messages of a venue are missing, by its end", Topics: []string{schemas.TopicTicks},
		view: "v_gaps", time: "to_time", order: "to_time, venue, symbol, reason, from_time", expires: "gaps",
		sources: "SELECT DISTINCT toString(venue) AS source FROM {db}.gaps WHERE to_time >= {from} AND to_time < {to}",
	},
}

// DatasetNamed finds one.
func DatasetNamed(name string) (Dataset, error) {
	for _, d := range Datasets {
		if d.Name == name {
			return d, nil
		}
	}
	return Dataset{}, fmt.Errorf("there is no dataset %q; there are %s", name, strings.Join(schemas.Datasets(), ", "))
}

// rows is the FROM clause.
func (d Dataset) rows() string {
	if d.from != "" {
		return d.from
	}
	return "default." + d.view
}

// within is the condition of the rows in a range, of one venue if it is not empty, without those of some sources.
func (d Dataset) within(from, to time.Time, venue string, leftOut []string) string {
	// The last moment at which a row's interval may begin, and the day that it lies in.
	last := to.Add(-max(d.grain, 1))
	conditions := []string{d.time + " >= " + timeText(from), d.time + " <= " + timeText(last)}
	if d.grain == 24*time.Hour { // a column of dates
		conditions = []string{d.time + " >= " + dayText(from), d.time + " <= " + dayText(last)}
		if from.Truncate(24*time.Hour) != from {
			conditions[0] = d.time + " > " + dayText(from)
		}
	}
	if d.where != "" {
		conditions = append(conditions, strings.NewReplacer("{first}", dayText(from), "{last}", dayText(last)).Replace(d.where))
	}
	if venue != "" {
		conditions = append(conditions, "venue = "+quoted(venue))
	}
	if d.source != "" && len(leftOut) > 0 {
		conditions = append(conditions, d.source+" NOT IN ("+quotedList(leftOut)+")")
	}
	return strings.Join(conditions, " AND ")
}

// sourcesWithin selects the names of the sources of the rows in a range, none of them for a dataset by venues.
func (d Dataset) sourcesWithin(from, to time.Time, leftOut []string) string {
	if d.sources != "" {
		return strings.NewReplacer("{from}", timeText(from), "{to}", timeText(to)).Replace(d.sources)
	}
	return "SELECT DISTINCT toString(" + d.source + ") AS source FROM " + d.rows() + " WHERE " + d.within(from, to, "", leftOut)
}

func timeText(t time.Time) string {
	return "toDateTime64('" + t.UTC().Format("2006-01-02 15:04:05.999999999") + "', 9, 'UTC')"
}

func dayText(t time.Time) string { return "toDate('" + t.UTC().Format(time.DateOnly) + "')" }

// quoted is a text as a literal of ClickHouse.
func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func quotedList(all []string) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, quoted(s))
	}
	return strings.Join(texts, ", ")
}
