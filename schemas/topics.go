package schemas

import (
	"fmt"
	"time"
)

// Topic is one row of the topic table: how a stream of events is keyed, split and kept.
type Topic struct {
	Name       string
	Partitions int32
	// Key names what the records are keyed by; the partition is Kafka's murmur2 of the key bytes.
	Key string
	// Message is the protobuf message of the values, in package events.v1.
	Message string
	// Retention is how long a cluster keeps records; 0 keeps them for ever.
	Retention time.Duration
	// EmbeddedBytes bounds a partition of the embedded broker, which reads its log into memory at
	// start: all bounds together are about 2 GB.
	EmbeddedBytes int64
	Compacted     bool
	// Derived topics are written by processors and carry marks.
	Derived bool
	// Minutes says that a fold of log minutes writes it: the minute stands for the offset in its marks.
	Minutes bool
	// Clockless topics get no clock or pulse: when nobody writes to one, it says nothing of how far its readers are behind.
	Clockless bool
	// Archive says what is kept of the topic when the brokers have it no longer. Of raw ticks nothing is: ticks hold them whole.
	Archive ArchiveClass
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
)

const (
	mebibyte = 1 << 20
	day      = 24 * time.Hour
)

// Topics is the topic table.
var Topics = []Topic{
	{Name: TopicTicksRaw, Partitions: 8, Key: "venue|base", Message: "RawRecord", Retention: 7 * day, EmbeddedBytes: 48 * mebibyte},
	{Name: TopicTicksRawDead, Partitions: 1, Key: "source", Message: "DeadRecord", Retention: 90 * day, EmbeddedBytes: 64 * mebibyte, Derived: true, Archive: ArchiveKept},
	{Name: TopicReferenceRaw, Partitions: 1, Key: "source", Message: "ReferenceRecord", EmbeddedBytes: 192 * mebibyte, Archive: ArchiveKept},
	{Name: TopicReferenceRawDead, Partitions: 1, Key: "source", Message: "DeadRecord", Retention: 90 * day, EmbeddedBytes: 16 * mebibyte, Clockless: true, Archive: ArchiveKept},
	{Name: TopicCoinMarketsRaw, Partitions: 1, Key: "source", Message: "ReferenceRecord", Retention: 90 * day, EmbeddedBytes: 64 * mebibyte, Archive: ArchiveKept},
	{Name: TopicRatesRaw, Partitions: 1, Key: "source", Message: "ReferenceRecord", EmbeddedBytes: 64 * mebibyte, Archive: ArchiveKept},
	{Name: TopicQuotes, Partitions: 1, Key: "quote", Message: "QuoteRecord", Retention: 30 * day, EmbeddedBytes: 64 * mebibyte, Derived: true, Archive: ArchiveKept},
	{Name: TopicTicks, Partitions: 8, Key: "coin", Message: "ResolvedRecord", Retention: 30 * day, EmbeddedBytes: 80 * mebibyte, Derived: true, Archive: ArchiveBudget},
	{Name: TopicPrices, Partitions: 8, Key: "coin", Message: "PriceRecord", Retention: 7 * day, EmbeddedBytes: 64 * mebibyte, Derived: true, Archive: ArchiveBudget},
	{Name: TopicCandles, Partitions: 8, Key: "coin", Message: "CandleRecord", EmbeddedBytes: 16 * mebibyte, Derived: true, Archive: ArchiveKept},
	{Name: TopicMarkets, Partitions: 1, Key: "coin", Message: "MarketRecord", Retention: 30 * day, EmbeddedBytes: 96 * mebibyte, Derived: true, Minutes: true, Archive: ArchiveKept},
	{Name: TopicRates, Partitions: 1, Key: "rate", Message: "RateRecord", Retention: 30 * day, EmbeddedBytes: 96 * mebibyte, Derived: true, Minutes: true, Archive: ArchiveKept},
	{Name: TopicEarn, Partitions: 1, Key: "product", Message: "EarnRecord", EmbeddedBytes: 64 * mebibyte, Derived: true, Minutes: true, Archive: ArchiveKept},
	{Name: TopicDefi, Partitions: 1, Key: "kind", Message: "DefiRecord", Retention: 30 * day, EmbeddedBytes: 48 * mebibyte, Derived: true, Minutes: true, Archive: ArchiveKept},
	{Name: TopicBackfillRaw, Partitions: 8, Key: "venue|base", Message: "BackfillRecord", EmbeddedBytes: 24 * mebibyte, Clockless: true, Archive: ArchiveKept},
	{Name: TopicUsage, Partitions: 1, Key: "budget", Message: "UsageRecord", Retention: 90 * day, EmbeddedBytes: 8 * mebibyte, Clockless: true},
	{Name: TopicKeys, Partitions: 1, Key: "key id", Message: "KeyRecord", EmbeddedBytes: 8 * mebibyte, Compacted: true, Clockless: true},
}

// TopicNamed returns the row of a topic.
func TopicNamed(name string) (Topic, error) {
	for _, t := range Topics {
		if t.Name == name {
			return t, nil
		}
	}
	return Topic{}, fmt.Errorf("topic %q is not in the topic table", name)
}
