package history

import (
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// earnRows are the rows of the fold of earn products. A minute stands for the offset in their versions.
type earnRows struct {
	variants    sheet[*eventsv1.EarnVariant]
	changes     sheet[*eventsv1.EarnChange]
	fixings     sheet[*eventsv1.EarnFixing]
	corrections sheet[*eventsv1.EarnFixing]
}

func newEarnRows() *earnRows {
	return &earnRows{variants: variantSheet(), changes: earnChangeSheet(), fixings: earnFixingSheet("earn_fixings"), corrections: earnFixingSheet("earn_corrections")}
}

func (r *earnRows) all() []rows {
	return []rows{&r.variants, alsoIn{&r.variants, "earn_history"}, &r.changes, &r.fixings, &r.corrections}
}

// add adds the rows of a record; it is false for one that has none.
func (r *earnRows) add(p Place, rec *eventsv1.EarnRecord) bool {
	switch b := rec.Body.(type) {
	case *eventsv1.EarnRecord_Variant:
		r.variants.derive(rec.Mark, b.Variant)
	case *eventsv1.EarnRecord_Change:
		r.changes.derive(rec.Mark, b.Change)
	case *eventsv1.EarnRecord_Fixing:
		if rec.Mark == nil { // an operator wrote it
			r.corrections.say(p, b.Fixing)
		} else {
			r.fixings.derive(rec.Mark, b.Fixing)
		}
	default:
		return false
	}
	return true
}

func variantSheet() sheet[*eventsv1.EarnVariant] {
	type variant = *eventsv1.EarnVariant
	type tier = *eventsv1.EarnTier
	return newSheet("earn_products",
		textOf("product_id", variant.GetProductId), textOf("variant_id", variant.GetVariantId), secondOf("time", variant.GetTime),
		wordOf("provider", variant.GetProvider), wordOf("provider_name", variant.GetProviderName), wordOf("segment", variant.GetSegment),
		wordOf("coin_id", variant.GetCoinId), wordOf("symbol", variant.GetSymbol), wordOf("category", variant.GetCategory), wordOf("source", variant.GetSource),
		textOf("pool", variant.GetPool), textOf("provider_symbol", variant.GetProviderSymbol), wordOf("chain", variant.GetChain), textOf("name", variant.GetName),
		wordOf("term", variant.GetTerm), wordOf("status", variant.GetStatus), floatOf("apr", variant.GetApr), floatOf("apy", variant.GetApy),
		optionalOf("reward_apy", func(v variant) *float64 { return v.RewardApy }), floatOf("base_apy", variant.GetBaseApy), floatOf("max_apy", variant.GetMaxApy),
		wordOf("compounding", variant.GetCompounding),
		nestedOf("tiers", variant.GetTiers, textOf("from", tier.GetFrom), textOf("to", tier.GetTo), floatOf("apr", tier.GetApr), floatOf("apy", tier.GetApy)),
		optionalOf("tvl_usd", func(v variant) *float64 { return v.TvlUsd }), textOf("min_amount", variant.GetMinAmount), textOf("max_amount", variant.GetMaxAmount),
		optionalOf("lockup_days", func(v variant) *float64 { return v.LockupDays }), optionalOf("notice_days", func(v variant) *float64 { return v.NoticeDays }),
		wordOf("payout", variant.GetPayout), flagOf("promo", variant.GetPromo), listOf("served", variant.GetServed), listOf("refused", variant.GetRefused),
		floatOf("confidence", variant.GetConfidence), wordOf("collection", variant.GetCollection), flagOf("simulated", variant.GetSimulated),
		integerOf("interval_ns", variant.GetInterval), instantOf("heard", variant.GetHeard))
}

func earnChangeSheet() sheet[*eventsv1.EarnChange] {
	type change = *eventsv1.EarnChange
	return newSheet("earn_changes",
		textOf("product_id", change.GetProductId), textOf("variant_id", change.GetVariantId), wordOf("field", change.GetField), secondOf("time", change.GetTime),
		wordOf("provider", change.GetProvider), wordOf("coin_id", change.GetCoinId), wordOf("symbol", change.GetSymbol), wordOf("category", change.GetCategory),
		textOf("before", change.GetBefore), textOf("after", change.GetAfter), flagOf("simulated", change.GetSimulated))
}

func earnFixingSheet(name string) sheet[*eventsv1.EarnFixing] {
	type fixing = *eventsv1.EarnFixing
	type quote = *eventsv1.EarnQuote
	return newSheet(name,
		dayOf("day", midnightOf), wordOf("segment", fixing.GetSegment), countOf("revision", fixing.GetRevision), secondOf("time", fixing.GetTime),
		floatOf("median", fixing.GetMedian), optionalOf("tvl_weighted", func(f fixing) *float64 { return f.TvlWeighted }),
		countOf("provider_count", fixing.GetProviderCount), floatOf("tvl_usd", fixing.GetTvlUsd),
		nestedOf("quotes", fixing.GetQuotes, wordOf("provider", quote.GetProvider), wordOf("segment", quote.GetSegment), floatOf("apy", quote.GetApy),
			floatOf("tvl_usd", quote.GetTvlUsd), countOf("variants", quote.GetVariants)),
		countOf("methodology_version", fixing.GetMethodologyVersion), textOf("supersedes", fixing.GetSupersedes), textOf("reason", fixing.GetReason),
		flagOf("simulated", fixing.GetSimulated))
}

// midnightOf is the midnight of a fixing's date; what is no date lies in 1970.
func midnightOf(f *eventsv1.EarnFixing) int64 {
	midnight, err := time.Parse(time.DateOnly, f.Date)
	if err != nil {
		return 0
	}
	return midnight.UnixNano()
}
