package schemas

import (
	"fmt"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Topic is one row of the topic table: what the records of a stream of events are, who writes them, how they are keyed, split
// and kept, and what is made of them. Decoding, marks, sinks, tables, replays and the commands that name topics or views
// follow from it; the functions that turn a record into rows are beside the tables, in package history.
type Topic struct {
	Name       string
	Partitions int32
	// Key names what the records are keyed by; the partition is Kafka's murmur2 of the key bytes.
	Key string
	// New makes an empty value, a protobuf message of package events.v1.
	New func() eventsv1.Marked
	// Writer is who writes the topic: producers, operators, query, a sink, or the processor with its folder.
	Writer string
	// Holds says in a line what the records are, for people.
	Holds string
	// Retention is how long a cluster keeps records; 0 keeps them for ever.
	Retention time.Duration
	// EmbeddedBytes bounds a partition of the embedded broker, which reads its log at a start: all bounds together are about 2.6 GiB.
	EmbeddedBytes int64
	// NearBytes bounds a partition of the embedded broker where the log is archived: what is older is read from there. Up to
	// EmbeddedBytes it may grow while the archive or those who read it lag behind. 0 is EmbeddedBytes.
	NearBytes int64
	// Near is how long records stay in the embedded broker even beyond NearBytes, for those who read them again at a start.
	Near      time.Duration
	Compacted bool
	// Derived topics are written by processors and carry marks.
	Derived bool
	// Seconds and Minutes mean that a fold of log seconds or minutes writes it: their end takes the place of the offset in its marks.
	Seconds, Minutes bool
	// Clockless topics get no clock or pulse: when nobody writes to one, it shows nothing of how far its readers are behind.
	Clockless bool
	// Archive says what is kept of the topic when the brokers have it no longer. Of raw ticks nothing is: ticks hold them whole.
	Archive ArchiveClass
	// Logic is the logic version of the fold that derives the topic: it is raised whenever that fold could derive another
	// record from the same input, and is the upper half of the version of every row. 0 for what no fold derives.
	Logic uint32
	// Tables are the tables of ClickHouse with the rows of these records.
	Tables []Table
	// View is what a replay of the tables is called, if there is one.
	View string

	// valid says what a decoded value lacks; nil where a body is all that it needs.
	valid func(eventsv1.Marked) error
	// unmarked reports whether a record of a derived topic is one that no fold wrote, which has no mark; nil if each has one.
	unmarked func(eventsv1.Marked) bool
}

// Message is the name of the protobuf message of the values, in package events.v1.
func (t Topic) Message() string { return string(messageOf(t.New()).Descriptor().Name()) }

// record makes an empty T.
func record[T any, P interface {
	*T
	eventsv1.Marked
}]() eventsv1.Marked {
	return P(new(T))
}

// Names of the topics.
const (
	TopicTicksRaw         = "ticks.raw.v1"
	TopicTicksRawDead     = "ticks.raw.v1.dead.v1"
	TopicReferenceRaw     = "reference.raw.v1"
	TopicReferenceRawDead = "reference.raw.v1.dead.v1"
	TopicCoinMarketsRaw   = "coinmarkets.raw.v1"
	TopicRatesRaw         = "rates.raw.v1"
	TopicQuotes           = "quotes.v1"
	TopicTicks            = "ticks.v1"
	TopicPrices           = "prices.v1"
	TopicCandles          = "candles.v1"
	TopicMarkets          = "markets.v1"
	TopicRates            = "rates.v1"
	TopicEarn             = "earn.v1"
	TopicDefi             = "defi.v1"
	TopicBackfillRaw      = "backfill.raw.v1"
	TopicKeys             = "keys.v1"
	TopicUsage            = "usage.v1"
	TopicServed           = "served.v1"
	TopicRestatements     = "restatements.v1"
	TopicCorrections      = "corrections.v1"
)

const (
	mebibyte = 1 << 20
	day      = 24 * time.Hour
)

// Views of a replay that other code names.
const (
	// ViewAll is all views that a fold can make again from its input.
	ViewAll     = "all"
	ViewPrices  = "prices"
	ViewCandles = "candles"
	ViewMarkets = "markets"
	ViewRates   = "rates"
	// ViewTicks resolves recorded ticks again, by the rules of today.
	ViewTicks = "ticks"
	// ViewReference is the rows of what sources gave. They are not derived, so they are only compared.
	ViewReference = "reference"
	// ViewBackfill is what restatements of venues' candles of the past carry. There is no replay of it.
	ViewBackfill = "backfill"
)

// minutesNear is how long what the folds of log minutes read and write stays in the embedded broker: at a start they, and the readers of what they wrote, read
// up to 65 minutes of it again.
const minutesNear = 70 * time.Minute

// Topics is the topic table.
var Topics = []Topic{
	{
		Name: TopicTicksRaw, Partitions: 8, Key: "venue|base", New: record[eventsv1.RawRecord],
		Writer: "producers", valid: validRaw,
		Holds:     "trades, quotes and tickers as venues sent them; clock records",
		Retention: 7 * day, EmbeddedBytes: 48 * mebibyte, NearBytes: 4 * mebibyte,
		Near: 10 * time.Minute, // the fold of quotes reads more than eight minutes again, and no archive has them
	},
	{
		Name: TopicTicksRawDead, Partitions: 1, Key: "source", New: record[eventsv1.DeadRecord],
		Writer: "processors/resolve", valid: validDead,
		Holds:     "venue messages that could not become a tick, and undecodable records",
		Retention: 90 * day, EmbeddedBytes: 64 * mebibyte, NearBytes: 2 * mebibyte, Archive: ArchiveKept, Derived: true, unmarked: unmarkedDead, Logic: 1,
		Tables: deadTables,
	},
	{
		Name: TopicReferenceRaw, Partitions: 1, Key: "source", New: record[eventsv1.ReferenceRecord],
		Writer: "producers", valid: validReference,
		Holds:         "coins, supplies, stablecoins, TVL, currencies, sentiment; requests to sources; listings of venues; operators' overrides",
		EmbeddedBytes: 192 * mebibyte, Archive: ArchiveKept, View: ViewReference,
		Tables: []Table{
			unordered("coins"), unordered("coin_events"), unordered("stablecoins").keeping(90), unordered("protocols").keeping(90),
			unordered("chain_tvl").keeping(90),
			unordered("fear_greed").stating("value", "classification"), unordered("global_figures").keeping(90),
			unordered("coin_past").stating("market_cap", "volume_24h"), unordered("defi_past").stating("total_tvl"), unordered("fetches").keeping(90),
			// Rates of a day come of several sources: fixings has the last of all, fiat_rates those of each, and fixings_told those that others replaced too.
			unordered("sources"), unordered("listings"), unordered("overrides"), unordered("fixings"), unordered("fiat_rates").stating("rate"), unordered("fixings_told"), filled("past_marks"),
		},
	},
	{
		Name: TopicReferenceRawDead, Partitions: 1, Key: "source", New: record[eventsv1.DeadRecord],
		Writer: "producers", valid: validDead,
		Holds:     "answers of polled sources that could not be read",
		Retention: 90 * day, EmbeddedBytes: 16 * mebibyte, NearBytes: 2 * mebibyte, Archive: ArchiveKept, Clockless: true,
		Tables: deadTables,
	},
	{
		Name: TopicCoinMarketsRaw, Partitions: 1, Key: "source", New: record[eventsv1.ReferenceRecord],
		Writer: "producers", valid: validReference,
		Holds:     "market figures of coins from sources",
		Retention: 90 * day, EmbeddedBytes: 64 * mebibyte, NearBytes: 4 * mebibyte, Near: minutesNear, Archive: ArchiveKept, View: ViewReference,
		Tables: []Table{unordered("coin_markets").keeping(90).droppedBy("ingest_time", DroppedDaily)},
	},
	{
		Name: TopicRatesRaw, Partitions: 1, Key: "source", New: record[eventsv1.ReferenceRecord],
		Writer: "producers", valid: validReference,
		Holds:         "yields as sources gave them",
		EmbeddedBytes: 64 * mebibyte, NearBytes: 4 * mebibyte, Near: minutesNear, Archive: ArchiveKept, View: ViewReference,
		Tables: []Table{unordered("rates_past").stating("apr", "apy", "reward_apy", "tvl_usd")},
	},
	{
		Name: TopicQuotes, Partitions: 1, Key: "quote", New: record[eventsv1.QuoteRecord],
		Writer: "processors/quotes", valid: validQuote,
		Holds:     "exchange rates of quote assets in USD",
		Retention: 30 * day, EmbeddedBytes: 64 * mebibyte, NearBytes: 8 * mebibyte, Near: 10 * time.Minute, Archive: ArchiveKept,
		Derived: true, Seconds: true, Logic: 1,
	},
	{
		Name: TopicTicks, Partitions: 8, Key: "coin", New: record[eventsv1.ResolvedRecord],
		Writer: "processors/resolve", valid: validResolved,
		Holds:     "ticks with their coin and the exchange rate that was used",
		Retention: 30 * day, EmbeddedBytes: 80 * mebibyte, NearBytes: 4 * mebibyte, Near: 2 * time.Minute, Archive: ArchiveBudget,
		Derived: true, Logic: 1, View: ViewTicks,
		Tables: []Table{unordered("ticks").keeping(7).droppedBy("ingest_time", DroppedHourly), filled("gaps").keeping(90)},
	},
	{
		Name: TopicPrices, Partitions: 8, Key: "coin", New: record[eventsv1.PriceRecord],
		Writer: "processors/prices", valid: validPrice,
		Holds:     "published prices with all inputs",
		Retention: 7 * day, EmbeddedBytes: 64 * mebibyte, NearBytes: 6 * mebibyte, Near: 2 * time.Minute, Archive: ArchiveBudget,
		Derived: true, View: ViewPrices,
		Logic: 3, // AggregateVersion 2, an unchanged price every PriceRepeat, and a pace that is not taken from before a leap
		// Every second of every coin with all its inputs is the largest table by far; prices_1h keeps the last of each hour.
		Tables: []Table{bySecond("prices").keeping(7).droppedBy("time", DroppedHourly), byHourSoFar("prices_1h")},
	},
	{
		Name: TopicCandles, Partitions: 8, Key: "coin", New: record[eventsv1.CandleRecord],
		Writer: "processors/prices", valid: validCandle,
		Holds:         "closed one-minute candles, of the published price and of each venue",
		EmbeddedBytes: 16 * mebibyte, NearBytes: mebibyte, Near: minutesNear, Archive: ArchiveKept, Derived: true, View: ViewCandles,
		Logic:  4, // what those prices give, and the trades before a leap of the log's time that it is the time of
		Tables: []Table{byClosed("candles_1m"), byClosed("venue_candles_1m").keeping(90).droppedBy("start", DroppedDaily)},
	},
	{
		Name: TopicMarkets, Partitions: 1, Key: "coin", New: record[eventsv1.MarketRecord],
		Writer:    "processors/markets",
		Holds:     "rows of coins and of the whole market, by minute",
		Retention: 30 * day, EmbeddedBytes: 96 * mebibyte, NearBytes: 4 * mebibyte, Near: minutesNear, Archive: ArchiveKept, Derived: true, Minutes: true, Logic: 1, View: ViewMarkets,
		Tables: []Table{bySecond("markets"), bySecond("markets_1d"), bySecond("summaries"), bySecond("sentiment")},
	},
	{
		Name: TopicRates, Partitions: 1, Key: "rate", New: record[eventsv1.RateRecord],
		Writer:    "processors/apy",
		Holds:     "yields by minute, with hourly and daily roll-ups",
		Retention: 30 * day, EmbeddedBytes: 96 * mebibyte, NearBytes: 4 * mebibyte, Near: minutesNear, Archive: ArchiveKept, Derived: true, Minutes: true, View: ViewRates,
		Logic: 2, // an entry names the version of RateRule that made it
		Tables: []Table{
			bySecond("rates").keeping(30), bySecond("rates_now"), byHour("rates_1h").keeping(1826), byDay("rates_1d").keeping(1826),
		},
	},
	{
		Name: TopicDefi, Partitions: 1, Key: "kind", New: record[eventsv1.DefiRecord],
		Writer:    "processors/defi",
		Holds:     "DeFi statistics by minute",
		Retention: 30 * day, EmbeddedBytes: 48 * mebibyte, NearBytes: 2 * mebibyte, Near: minutesNear, Archive: ArchiveKept, Derived: true, Minutes: true, Logic: 1, View: "defi",
		Tables: []Table{bySecond("defi"), bySecond("defi_lists")},
	},
	{
		Name: TopicEarn, Partitions: 1, Key: "product", New: record[eventsv1.EarnRecord],
		Writer: "processors/earn", unmarked: unmarkedEarn,
		Holds:         "earn products, changes of their terms, the daily benchmark",
		EmbeddedBytes: 64 * mebibyte, NearBytes: 2 * mebibyte, Near: minutesNear, Archive: ArchiveKept, Derived: true, Minutes: true, Logic: 1, View: "earn",
		Tables: []Table{
			bySecond("earn_products"), bySecond("earn_history"), bySecond("earn_changes"), bySecond("earn_fixings"),
			filled("earn_corrections"),
		},
	},
	{
		Name: TopicBackfillRaw, Partitions: 8, Key: "venue|base", New: record[eventsv1.BackfillRecord],
		Writer: "producers", valid: validBackfill,
		Holds:         "venues' own candles of the past, read from them or imported from files",
		EmbeddedBytes: 24 * mebibyte, NearBytes: mebibyte, Archive: ArchiveKept, Clockless: true,
		Tables: []Table{
			filled("backfill").stating("open", "high", "low", "close", "volume", "withdrawn"), filled("past_marks"), filled("imports"),
		},
	},
	{
		Name: TopicUsage, Partitions: 1, Key: "budget", New: record[eventsv1.UsageRecord],
		Writer: "query", valid: validUsage,
		Holds:     "requests by key, for `/api/v1/usage` and `v_usage`",
		Retention: 90 * day, EmbeddedBytes: 8 * mebibyte, Clockless: true,
		Tables: []Table{filled("usage")},
	},
	{
		Name: TopicServed, Partitions: 1, Key: "replica", New: record[eventsv1.ServedRecord],
		Writer: "query", valid: validServed,
		Holds:     "how far each process that answers had read, for `asOf`",
		Retention: 7 * day, EmbeddedBytes: 16 * mebibyte, NearBytes: 2 * mebibyte, Archive: ArchiveBudget, Clockless: true,
		Tables: []Table{filled("served_prices").keeping(7), filled("served_minutes"), filled("served_topics"), filled("served_sources").keeping(90),
			filled("served_pegs").keeping(7), filled("served_candles").keeping(7), filled("served_figures").keeping(7), filled("served_series")},
	},
	{
		Name: TopicRestatements, Partitions: 1, Key: "none", New: record[eventsv1.RestatementRecord],
		Writer: "operators and sinks", valid: validRestatement,
		Holds:         "rows of tables that a replay, or another statement of their source, replaced by others",
		EmbeddedBytes: 48 * mebibyte, NearBytes: 2 * mebibyte, Archive: ArchiveKept, Clockless: true,
		Tables: []Table{filled("restatements"), filled("restated_tables")},
	},
	{
		Name: TopicCorrections, Partitions: 1, Key: "none", New: record[eventsv1.CorrectionRecord],
		Writer: "operators", valid: validCorrection,
		Holds:         "what operators exclude of venues' ticks, and take back, with reasons",
		EmbeddedBytes: 8 * mebibyte, Archive: ArchiveKept, Clockless: true,
		Tables: []Table{filled("corrections")},
	},
	{
		Name: TopicKeys, Partitions: 1, Key: "key id", New: record[eventsv1.KeyRecord],
		Writer: "operators", valid: validKey,
		Holds:         "API keys: peppered hashes, plans, revocations",
		EmbeddedBytes: 8 * mebibyte, Compacted: true, Clockless: true,
	},
}

// deadTables are the tables of both topics of dead letters.
var deadTables = []Table{filled("dead_letters").keeping(90), filled("dead_retries")}

// byName are the rows of the table, to be found for every record that is read.
var byName = func() map[string]*Topic {
	rows := make(map[string]*Topic, len(Topics))
	for i := range Topics {
		rows[Topics[i].Name] = &Topics[i]
	}
	return rows
}()

// TopicNamed returns the row of a topic.
func TopicNamed(name string) (Topic, error) {
	row := byName[name]
	if row == nil {
		return Topic{}, fmt.Errorf("topic %q is not in the topic table", name)
	}
	return *row, nil
}
