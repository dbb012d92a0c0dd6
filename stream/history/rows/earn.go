package rows

import (
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// earnRows are the rows of the fold of earn products. A minute takes the place of the offset in their versions.
type earnRows struct {
	variants    columnBatch[*eventsv1.EarnVariant]
	changes     columnBatch[*eventsv1.EarnChange]
	fixings     columnBatch[*eventsv1.EarnFixing]
	corrections columnBatch[*eventsv1.EarnFixing]
}

func newEarnRows() topicRows {
	return &earnRows{variants: variantBatch(), changes: earnChangeBatch(), fixings: earnFixingBatch("earn_fixings"), corrections: earnFixingBatch("earn_corrections")}
}

func (r *earnRows) all() []native.Rows {
	return []native.Rows{&r.variants, alsoIn{&r.variants, "earn_history"}, &r.changes, &r.fixings, &r.corrections}
}

// add adds the rows of a record; it is false for one that has none.
func (r *earnRows) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.EarnRecord)
	switch b := rec.Body.(type) {
	case *eventsv1.EarnRecord_Variant:
		r.variants.appendDerived(rec.Mark, b.Variant)
	case *eventsv1.EarnRecord_Change:
		r.changes.appendDerived(rec.Mark, b.Change)
	case *eventsv1.EarnRecord_Fixing:
		if rec.Mark == nil { // an operator wrote it
			r.corrections.appendRaw(p, b.Fixing)
		} else {
			r.fixings.appendDerived(rec.Mark, b.Fixing)
		}
	default:
		return false
	}
	return true
}

func variantBatch() columnBatch[*eventsv1.EarnVariant] {
	type variant = *eventsv1.EarnVariant
	type tier = *eventsv1.EarnTier
	return newColumnBatch("earn_products",
		stringOf("product_id", variant.GetProductId), stringOf("variant_id", variant.GetVariantId), secondOf("time", variant.GetTime),
		lowCardinalityOf("provider", variant.GetProvider), lowCardinalityOf("provider_name", variant.GetProviderName), lowCardinalityOf("segment", variant.GetSegment),
		lowCardinalityOf("coin_id", variant.GetCoinId), lowCardinalityOf("symbol", variant.GetSymbol), lowCardinalityOf("category", variant.GetCategory), lowCardinalityOf("source", variant.GetSource),
		stringOf("pool", variant.GetPool), stringOf("provider_symbol", variant.GetProviderSymbol), lowCardinalityOf("chain", variant.GetChain), stringOf("name", variant.GetName),
		lowCardinalityOf("term", variant.GetTerm), lowCardinalityOf("status", variant.GetStatus), floatOf("apr", variant.GetApr), floatOf("apy", variant.GetApy),
		optionalOf("reward_apy", func(v variant) *float64 { return v.RewardApy }), floatOf("base_apy", variant.GetBaseApy), floatOf("max_apy", variant.GetMaxApy),
		lowCardinalityOf("compounding", variant.GetCompounding),
		nestedOf("tiers", variant.GetTiers, stringOf("from", tier.GetFrom), stringOf("to", tier.GetTo), floatOf("apr", tier.GetApr), floatOf("apy", tier.GetApy)),
		optionalOf("tvl_usd", func(v variant) *float64 { return v.TvlUsd }), stringOf("min_amount", variant.GetMinAmount), stringOf("max_amount", variant.GetMaxAmount),
		optionalOf("lockup_days", func(v variant) *float64 { return v.LockupDays }), optionalOf("notice_days", func(v variant) *float64 { return v.NoticeDays }),
		lowCardinalityOf("payout", variant.GetPayout), flagOf("promo", variant.GetPromo), listOf("served", variant.GetServed), listOf("refused", variant.GetRefused),
		floatOf("confidence", variant.GetConfidence), lowCardinalityOf("collection", variant.GetCollection), flagOf("simulated", variant.GetSimulated),
		integerOf("interval_ns", variant.GetInterval), instantOf("heard", variant.GetHeard))
}

func earnChangeBatch() columnBatch[*eventsv1.EarnChange] {
	type change = *eventsv1.EarnChange
	return newColumnBatch("earn_changes",
		stringOf("product_id", change.GetProductId), stringOf("variant_id", change.GetVariantId), lowCardinalityOf("field", change.GetField), secondOf("time", change.GetTime),
		lowCardinalityOf("provider", change.GetProvider), lowCardinalityOf("coin_id", change.GetCoinId), lowCardinalityOf("symbol", change.GetSymbol), lowCardinalityOf("category", change.GetCategory),
		stringOf("before", change.GetBefore), stringOf("after", change.GetAfter), flagOf("simulated", change.GetSimulated))
}

func earnFixingBatch(name string) columnBatch[*eventsv1.EarnFixing] {
	type fixing = *eventsv1.EarnFixing
	type quote = *eventsv1.EarnQuote
	return newColumnBatch(name,
		dayOf("day", midnightOf), lowCardinalityOf("segment", fixing.GetSegment), countOf("revision", fixing.GetRevision), secondOf("time", fixing.GetTime),
		floatOf("median", fixing.GetMedian), optionalOf("tvl_weighted", func(f fixing) *float64 { return f.TvlWeighted }),
		countOf("provider_count", fixing.GetProviderCount), floatOf("tvl_usd", fixing.GetTvlUsd),
		nestedOf("quotes", fixing.GetQuotes, lowCardinalityOf("provider", quote.GetProvider), lowCardinalityOf("segment", quote.GetSegment), floatOf("apy", quote.GetApy),
			floatOf("tvl_usd", quote.GetTvlUsd), countOf("variants", quote.GetVariants)),
		countOf("methodology_version", fixing.GetMethodologyVersion), stringOf("supersedes", fixing.GetSupersedes), stringOf("reason", fixing.GetReason),
		flagOf("simulated", fixing.GetSimulated))
}

// midnightOf is the midnight of a fixing's date; what is not a date lies in 1970.
func midnightOf(f *eventsv1.EarnFixing) int64 {
	midnight, err := time.Parse(time.DateOnly, f.Date)
	if err != nil {
		return 0
	}
	return midnight.UnixNano()
}
