package rows

import (
	"cmp"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
)

// rateRows are the rows of the fold of rates. A minute takes the place of the offset in their versions.
type rateRows struct {
	entries columnBatch[*eventsv1.RateEntry]
	hours   columnBatch[*eventsv1.RateRollup]
	days    columnBatch[*eventsv1.RateRollup]
}

func newRateRows() topicRows {
	return &rateRows{entries: entryBatch(), hours: rollupBatch("rates_1h"), days: rollupBatch("rates_1d")}
}

func (r *rateRows) all() []native.Rows {
	return []native.Rows{&r.entries, alsoIn{&r.entries, "rates_now"}, &r.hours, &r.days}
}

// add adds the rows of a record; it is false for one that has none.
func (r *rateRows) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.RateRecord)
	switch b := rec.Body.(type) {
	case *eventsv1.RateRecord_Entry:
		r.entries.appendDerived(rec.Mark, b.Entry)
	case *eventsv1.RateRecord_Rollup:
		if b.Rollup.Interval == uint32(time.Hour/time.Second) {
			r.hours.appendDerived(rec.Mark, b.Rollup)
		} else {
			r.days.appendDerived(rec.Mark, b.Rollup)
		}
	default:
		return false
	}
	return true
}

func entryBatch() columnBatch[*eventsv1.RateEntry] {
	type entry = *eventsv1.RateEntry
	nothing := &eventsv1.Rate{}
	reported := func(e entry) *eventsv1.Rate { return cmp.Or(e.Said, nothing) }
	return newColumnBatch("rates",
		stringOf("coin_id", entry.GetCoinId), lowCardinalityOf("category", entry.GetCategory), lowCardinalityOf("source", entry.GetSource), stringOf("pool", entry.GetPool),
		secondOf("time", entry.GetTime), lowCardinalityOf("provider", entry.GetProvider), lowCardinalityOf("provider_name", entry.GetProviderName), lowCardinalityOf("symbol", entry.GetSymbol),
		stringOf("provider_symbol", entry.GetProviderSymbol), lowCardinalityOf("chain", entry.GetChain), stringOf("name", entry.GetName),
		floatOf("apr", entry.GetApr), floatOf("apy", entry.GetApy), countOf("method",
			func(e entry) uint32 { return max(e.Method, 1) }), optionalOf("reward_apy",
			func(e entry) *float64 { return e.RewardApy }),
		optionalOf("tvl_usd", func(e entry) *float64 { return e.TvlUsd }),
		stringOf("raw", func(e entry) string { return reported(e).Raw }), lowCardinalityOf("raw_unit", func(e entry) string { return reported(e).RawUnit }),
		lowCardinalityOf("compounding", func(e entry) string { return reported(e).Compounding }), lowCardinalityOf("term", entry.GetTerm),
		numberOf("min_amount", func(e entry) string { return reported(e).MinAmount }), numberOf("max_amount", func(e entry) string { return reported(e).MaxAmount }),
		optionalOf("lockup_days", func(e entry) *float64 { return reported(e).LockupDays }), optionalOf("notice_days", func(e entry) *float64 { return reported(e).NoticeDays }),
		nestedOf("tiers", func(e entry) []*eventsv1.RateTier { return reported(e).Tiers }, stringOf("from", (*eventsv1.RateTier).GetFrom),
			stringOf("to", (*eventsv1.RateTier).GetTo), stringOf("raw", (*eventsv1.RateTier).GetRaw)),
		listOf("served", func(e entry) []string { return reported(e).Served }), listOf("refused", func(e entry) []string { return reported(e).Refused }),
		flagOf("promo", func(e entry) bool { return reported(e).Promo }), lowCardinalityOf("payout", func(e entry) string { return reported(e).Payout }),
		numberOf("collateral_usd", func(e entry) string { return reported(e).CollateralUsd }), numberOf("max_ltv", func(e entry) string { return reported(e).MaxLtv }),
		textsOf("tokens", func(e entry) []string { return reported(e).Tokens }),
		instantOf("heard", entry.GetHeard), instantOf("event_time", func(e entry) int64 { return reported(e).EventTime }),
		integerOf("interval_ns", func(e entry) int64 { return reported(e).Interval }), flagOf("ended", entry.GetEnded),
		lowCardinalityOf("unattached", entry.GetUnattached), lowCardinalityOf("shadowed", entry.GetShadowed), flagOf("simulated", entry.GetSimulated),
		integerOf("raw_offset", entry.GetOffset))
}

// textsOf is a list of texts of which there are many.
func textsOf[T any](name string, of func(T) []string) []field[T] {
	values := new(proto.ColStr).Array()
	return plain(name, "Array(String)", of, values)
}

func rollupBatch(table string) columnBatch[*eventsv1.RateRollup] {
	type rollup = *eventsv1.RateRollup
	return newColumnBatch(table,
		stringOf("coin_id", rollup.GetCoinId), lowCardinalityOf("category", rollup.GetCategory), lowCardinalityOf("source", rollup.GetSource), stringOf("pool", rollup.GetPool),
		secondOf("start", rollup.GetStart), lowCardinalityOf("provider", rollup.GetProvider), lowCardinalityOf("symbol", rollup.GetSymbol),
		stringOf("provider_symbol", rollup.GetProviderSymbol), lowCardinalityOf("chain", rollup.GetChain),
		floatOf("open", rollup.GetOpen), floatOf("high", rollup.GetHigh), floatOf("low", rollup.GetLow), floatOf("close", rollup.GetClose),
		floatOf("mean", rollup.GetMean), countOf("n", rollup.GetN), optionalOf("tvl_usd", func(r rollup) *float64 { return r.TvlUsd }),
		flagOf("simulated", rollup.GetSimulated), lowCardinalityOf("shadowed", rollup.GetShadowed))
}

// pastRate is a rate of the past with what it is of and by the year.
type pastRate struct {
	*eventsv1.Rate
	category string
	coin     schemas.Coin
	apr, apy float64
}

// pastRateOf is not ok for a rate that is not of the past, or no number. What a project is, is not known here: a category
// that the source does not report stays empty, and the views take that of the rate as it is now.
func pastRateOf(reported *eventsv1.Rate) (p pastRate, ok bool) {
	if !reported.Past {
		return p, false
	}
	apr, apy, err := schemas.Yearly(reported.Raw, reported.RawUnit, reported.Compounding)
	if err != nil {
		return p, false
	}
	p = pastRate{Rate: reported, category: schemas.RateCategory(reported, ""), apr: apr, apy: apy}
	p.coin, _ = schemas.RateCoin(reported, p.category)
	return p, true
}

func pastRateBatch() columnBatch[pastRate] {
	type past = pastRate
	return newColumnBatch("rates_past",
		lowCardinalityOf("source", func(p past) string { return p.Source }), stringOf("pool", func(p past) string { return p.Pool }),
		lowCardinalityOf("category", func(p past) string { return p.category }), instantOf("event_time", func(p past) int64 { return p.EventTime }),
		stringOf("coin_id", func(p past) string { return p.coin.ID }), lowCardinalityOf("symbol", func(p past) string { return p.coin.Symbol }),
		lowCardinalityOf("provider", func(p past) string { return p.Project }), stringOf("provider_symbol", func(p past) string { return p.Symbol }),
		lowCardinalityOf("chain", func(p past) string { return p.Chain }), floatOf("apr", func(p past) float64 { return p.apr }), floatOf("apy", func(p past) float64 { return p.apy }),
		countOf("method", func(past) uint32 { return schemas.RateVersion }),
		optionalOf("reward_apy", func(p past) *float64 { return schemas.RewardAPY(p.Raw, p.Reward, p.RawUnit, p.Compounding) }),
		numberOf("tvl_usd", func(p past) string { return p.TvlUsd }), stringOf("raw", func(p past) string { return p.Raw }),
		lowCardinalityOf("raw_unit", func(p past) string { return p.RawUnit }), lowCardinalityOf("compounding", func(p past) string { return p.Compounding }),
		instantOf("ingest_time", func(p past) int64 { return p.IngestTime }))
}
