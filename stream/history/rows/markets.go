package rows

import (
	"time"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// marketRows are the rows of the markets fold. A minute takes the place of the offset in their versions.
type marketRows struct {
	markets   columnBatch[*eventsv1.Market]
	days      columnBatch[*eventsv1.Market]
	summaries columnBatch[*eventsv1.Summary]
	sentiment columnBatch[segmentAt]
}

func newMarketRows() topicRows {
	return &marketRows{
		markets:   newColumnBatch("markets", marketFields()),
		days:      newColumnBatch("markets_1d", dayOf("day", dayOfMinute), marketFields()),
		summaries: summaryBatch(), sentiment: sentimentBatch(),
	}
}

func (r *marketRows) all() []native.Rows {
	return []native.Rows{&r.markets, &r.days, &r.summaries, &r.sentiment}
}

// add adds the rows of a record; it is false for one that has none.
func (r *marketRows) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.MarketRecord)
	switch b := rec.Body.(type) {
	case *eventsv1.MarketRecord_Market:
		r.markets.appendDerived(rec.Mark, b.Market)
		r.days.appendDerived(rec.Mark, b.Market)
	case *eventsv1.MarketRecord_Summary:
		r.summaries.appendDerived(rec.Mark, b.Summary)
		for _, s := range b.Summary.Sentiment {
			r.sentiment.appendDerived(rec.Mark, segmentAt{s, b.Summary.Time})
		}
	default:
		return false
	}
	return true
}

// dayOfMinute is the day that the minute of a row lies in: its end, at midnight, is of the next.
func dayOfMinute(m *eventsv1.Market) int64 { return m.Time - int64(time.Minute) }

func marketFields() []field[*eventsv1.Market] {
	type market = *eventsv1.Market
	var all []field[market]
	for _, part := range [][]field[market]{
		stringOf("coin_id", market.GetCoinId), stringOf("symbol", market.GetSymbol), stringOf("name", market.GetName), secondOf("time", market.GetTime),
		floatOf("price", market.GetPrice), lowCardinalityOf("price_source", market.GetPriceSource), instantOf("price_time", market.GetPriceTime),
		optionalOf("market_cap", func(m market) *float64 { return m.MarketCap }), countOf("rank", market.GetRank),
		optionalOf("fully_diluted_valuation", func(m market) *float64 { return m.FullyDilutedValuation }),
		optionalOf("volume_24h", func(m market) *float64 { return m.Volume24H }),
		optionalOf("high_24h", func(m market) *float64 { return m.High24H }), optionalOf("low_24h", func(m market) *float64 { return m.Low24H }),
		optionalOf("price_change_24h", func(m market) *float64 { return m.PriceChange24H }),
		optionalOf("change_1h", func(m market) *float64 { return m.Change1H }), optionalOf("change_24h", func(m market) *float64 { return m.Change24H }),
		optionalOf("change_7d", func(m market) *float64 { return m.Change7D }), optionalOf("change_14d", func(m market) *float64 { return m.Change14D }),
		optionalOf("change_30d", func(m market) *float64 { return m.Change30D }), optionalOf("change_60d", func(m market) *float64 { return m.Change60D }),
		optionalOf("change_200d", func(m market) *float64 { return m.Change200D }), optionalOf("change_1y", func(m market) *float64 { return m.Change1Y }),
		listOf("own_changes", market.GetOwnChanges),
		optionalOf("market_cap_change_24h", func(m market) *float64 { return m.MarketCapChange24H }),
		optionalOf("market_cap_change_pct_24h", func(m market) *float64 { return m.MarketCapChangePct24H }),
		optionalOf("ath", func(m market) *float64 { return m.Ath }), instantOf("ath_time", market.GetAthTime),
		optionalOf("atl", func(m market) *float64 { return m.Atl }), instantOf("atl_time", market.GetAtlTime),
		optionalOf("circulating_supply", func(m market) *float64 { return m.CirculatingSupply }),
		optionalOf("total_supply", func(m market) *float64 { return m.TotalSupply }), optionalOf("max_supply", func(m market) *float64 { return m.MaxSupply }),
		lowCardinalityOf("supply_source", market.GetSupplySource), instantOf("supply_time", market.GetSupplyTime), flagOf("simulated", market.GetSimulated),
	} {
		all = append(all, part...)
	}
	return all
}

func summaryBatch() columnBatch[*eventsv1.Summary] {
	type summary = *eventsv1.Summary
	index := func(s summary) proto.Nullable[uint8] {
		if s.FearGreed == nil {
			return proto.Null[uint8]()
		}
		return proto.NewNullable(uint8(min(s.FearGreed.Value, 100)))
	}
	return newColumnBatch("summaries",
		secondOf("time", summary.GetTime), floatOf("total_market_cap", summary.GetTotalMarketCap), floatOf("total_volume_24h", summary.GetTotalVolume24H),
		floatOf("btc_dominance", summary.GetBtcDominance), floatOf("eth_dominance", summary.GetEthDominance),
		nestedOf("dominance", summary.GetDominance, lowCardinalityOf("coin_id", (*eventsv1.Share).GetCoinId), lowCardinalityOf("symbol", (*eventsv1.Share).GetSymbol),
			floatOf("percent", (*eventsv1.Share).GetPercent)),
		optionalOf("market_cap_change_24h", func(s summary) *float64 { return s.MarketCapChange24H }),
		optionalOf("volume_change_24h", func(s summary) *float64 { return s.VolumeChange24H }),
		countOf("active_coins", summary.GetActiveCoins), countOf("active_markets", summary.GetActiveMarkets),
		floatOf("stablecoin_market_cap", summary.GetStablecoinMarketCap), floatOf("stablecoin_dominance", summary.GetStablecoinDominance),
		plain("fear_greed", "Nullable(UInt8)", index, new(proto.ColUInt8).Nullable()),
		nestedOf("components", func(s summary) []*eventsv1.Statistic { return s.GetFearGreed().GetComponents() },
			lowCardinalityOf("name", (*eventsv1.Statistic).GetName), floatOf("value", (*eventsv1.Statistic).GetValue)),
		flagOf("simulated", summary.GetSimulated))
}

// segmentAt is the sentiment of a segment at the end of a minute.
type segmentAt struct {
	*eventsv1.Sentiment
	time int64
}

func sentimentBatch() columnBatch[segmentAt] {
	return newColumnBatch("sentiment",
		lowCardinalityOf("range", func(s segmentAt) string { return s.Range }), secondOf("time", func(s segmentAt) int64 { return s.time }),
		countOf("positive", func(s segmentAt) uint32 { return s.Positive }), countOf("negative", func(s segmentAt) uint32 { return s.Negative }),
		countOf("neutral", func(s segmentAt) uint32 { return s.Neutral }), countOf("total", func(s segmentAt) uint32 { return s.Total }),
		floatOf("ratio", func(s segmentAt) float64 { return s.Ratio }), lowCardinalityOf("classification", func(s segmentAt) string { return s.Classification }),
		floatOf("average_change_24h", func(s segmentAt) float64 { return s.AverageChange24H }),
		floatOf("median_change_24h", func(s segmentAt) float64 { return s.MedianChange24H }))
}
