package rows

import (
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
	"github.com/marketlog/marketlog/stream/history/past"
)

// referenceRows are the rows of what sources report.
type referenceRows struct {
	coins       columnBatch[*eventsv1.Coin]
	coinMarkets columnBatch[*eventsv1.CoinMarket]
	stablecoins columnBatch[*eventsv1.Stablecoin]
	protocols   columnBatch[*eventsv1.Protocol]
	chains      columnBatch[*eventsv1.ChainTvl]
	fearGreed   columnBatch[*eventsv1.FearGreed]
	global      columnBatch[*eventsv1.GlobalFigures]
	fetches     columnBatch[*eventsv1.Fetch]
	sources     columnBatch[*eventsv1.SourceNotice]
	overrides   columnBatch[*eventsv1.SymbolOverride]
	fiatRates   columnBatch[datedFixing]
	pastRates   columnBatch[pastRate]
	coinPasts   columnBatch[pastPoint]
	defiPasts   columnBatch[*eventsv1.DefiPast]
	listings    columnBatch[*eventsv1.Listing]
	pastMarks   past.Marks
}

func newReferenceRows() topicRows {
	return &referenceRows{
		coins: coinBatch(), coinMarkets: coinMarketBatch(), stablecoins: stablecoinBatch(), protocols: protocolBatch(), chains: chainBatch(),
		fearGreed: fearGreedBatch(), global: globalBatch(), fetches: fetchBatch(), sources: sourceBatch(), overrides: overrideBatch(),
		fiatRates: fiatRateBatch(), pastRates: pastRateBatch(), coinPasts: coinPastBatch(), defiPasts: defiPastBatch(), listings: listingBatch(),
	}
}

// alsoIn are rows that another table gets too.
type alsoIn struct {
	native.Rows
	name string
}

func (a alsoIn) Table() string { return a.name }

func (r *referenceRows) all() []native.Rows {
	return []native.Rows{&r.coins, alsoIn{&r.coins, "coin_events"}, &r.coinMarkets, &r.stablecoins, &r.protocols, &r.chains, &r.fearGreed, &r.global, &r.fetches, &r.sources,
		&r.overrides, &r.fiatRates, alsoIn{&r.fiatRates, "fixings"}, alsoIn{&r.fiatRates, "fixings_told"}, &r.pastRates, &r.coinPasts, &r.defiPasts, &r.listings, &r.pastMarks}
}

// add adds the rows of a record; it is false for one that has none.
func (r *referenceRows) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.ReferenceRecord)
	switch b := rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Coin:
		r.coins.appendRaw(p, b.Coin)
	case *eventsv1.ReferenceRecord_CoinMarket:
		r.coinMarkets.appendRaw(p, b.CoinMarket)
	case *eventsv1.ReferenceRecord_Stablecoin:
		r.stablecoins.appendRaw(p, b.Stablecoin)
	case *eventsv1.ReferenceRecord_Protocol:
		r.protocols.appendRaw(p, b.Protocol)
	case *eventsv1.ReferenceRecord_ChainTvl:
		r.chains.appendRaw(p, b.ChainTvl)
	case *eventsv1.ReferenceRecord_FearGreed:
		r.fearGreed.appendRaw(p, b.FearGreed)
	case *eventsv1.ReferenceRecord_Global:
		r.global.appendRaw(p, b.Global)
	case *eventsv1.ReferenceRecord_CoinPast:
		for _, point := range b.CoinPast.Points {
			r.coinPasts.appendRaw(p, pastPoint{b.CoinPast, point})
		}
		return len(b.CoinPast.Points) > 0
	case *eventsv1.ReferenceRecord_DefiPast:
		r.defiPasts.appendRaw(p, b.DefiPast)
	case *eventsv1.ReferenceRecord_Listing:
		r.listings.appendRaw(p, b.Listing)
	case *eventsv1.ReferenceRecord_Fetch:
		r.fetches.appendRaw(p, b.Fetch)
	case *eventsv1.ReferenceRecord_Notice:
		r.sources.appendRaw(p, b.Notice)
	case *eventsv1.ReferenceRecord_Override:
		r.overrides.appendRaw(p, b.Override)
	case *eventsv1.ReferenceRecord_Fixing:
		if day, ok := fixingDay(b.Fixing); ok {
			r.fiatRates.appendRaw(p, datedFixing{b.Fixing, day})
			r.pastMarks.AddFixing(b.Fixing.Base, day/int64(time.Second), p.Partition, p.Offset)
		}
	case *eventsv1.ReferenceRecord_Rate:
		past, ok := pastRateOf(b.Rate)
		if ok {
			r.pastRates.appendRaw(p, past)
		}
		return ok
	default:
		return false
	}
	return true
}

// canonical is the coin that a source means; empty if our tables have none.
func canonical(source, sourceID, symbol, name string) string {
	id, _ := schemas.CanonicalCoin(source, sourceID, symbol, name)
	return id
}

func coinBatch() columnBatch[*eventsv1.Coin] {
	type coin = *eventsv1.Coin
	return newColumnBatch("coins",
		lowCardinalityOf("source", coin.GetSource), stringOf("source_id", coin.GetSourceId), lowCardinalityOf("part", coin.GetPart),
		stringOf("coin_id", func(c coin) string { return canonical(c.Source, c.SourceId, c.Symbol, c.Name) }),
		stringOf("symbol", coin.GetSymbol), stringOf("name", coin.GetName), countOf("rank", coin.GetRank), lowCardinalityOf("kind", coin.GetKind),
		listOf("categories", coin.GetCategories),
		nestedOf("platforms", coin.GetPlatforms, lowCardinalityOf("name", (*eventsv1.Platform).GetName), stringOf("address", (*eventsv1.Platform).GetAddress)),
		stringOf("description", coin.GetDescription), stringOf("image_url", coin.GetImageUrl),
		nestedOf("links", coin.GetLinks, lowCardinalityOf("kind", (*eventsv1.Link).GetKind), stringOf("url", (*eventsv1.Link).GetUrl)),
		nestedOf("developer", coin.GetDeveloper, lowCardinalityOf("name", (*eventsv1.Statistic).GetName), floatOf("value", (*eventsv1.Statistic).GetValue)),
		stringOf("created_at", coin.GetCreatedAt), flagOf("inactive", coin.GetInactive),
		instantOf("event_time", coin.GetEventTime), instantOf("ingest_time", coin.GetIngestTime))
}

func coinMarketBatch() columnBatch[*eventsv1.CoinMarket] {
	type market = *eventsv1.CoinMarket
	return newColumnBatch("coin_markets",
		lowCardinalityOf("source", market.GetSource), stringOf("source_id", market.GetSourceId),
		stringOf("coin_id", func(m market) string { return canonical(m.Source, m.SourceId, m.Symbol, m.Name) }),
		stringOf("symbol", market.GetSymbol), stringOf("name", market.GetName), countOf("rank", market.GetRank),
		numberOf("price", market.GetPrice), numberOf("market_cap", market.GetMarketCap), numberOf("fully_diluted_valuation", market.GetFullyDilutedValuation),
		numberOf("volume_24h", market.GetVolume24H), numberOf("high_24h", market.GetHigh24H), numberOf("low_24h", market.GetLow24H),
		numberOf("circulating_supply", market.GetCirculatingSupply), numberOf("total_supply", market.GetTotalSupply), numberOf("max_supply", market.GetMaxSupply),
		numberOf("change_1h", market.GetChange1H), numberOf("change_24h", market.GetChange24H), numberOf("change_7d", market.GetChange7D),
		numberOf("change_14d", market.GetChange14D), numberOf("change_30d", market.GetChange30D), numberOf("change_60d", market.GetChange60D),
		numberOf("change_200d", market.GetChange200D), numberOf("change_1y", market.GetChange1Y),
		numberOf("ath", market.GetAth), instantOf("ath_time", market.GetAthTime), numberOf("atl", market.GetAtl), instantOf("atl_time", market.GetAtlTime),
		stringOf("image_url", market.GetImageUrl), instantOf("event_time", market.GetEventTime), instantOf("ingest_time", market.GetIngestTime))
}

// amounts are what lies on each chain.
func amounts[T any](of func(T) []*eventsv1.ChainAmount) []field[T] {
	amount := func(c *eventsv1.ChainAmount) float64 { return schemas.Float(c.Amount) }
	return nestedOf("chains", of, lowCardinalityOf("chain", (*eventsv1.ChainAmount).GetChain), floatOf("amount", amount))
}

func stablecoinBatch() columnBatch[*eventsv1.Stablecoin] {
	type coin = *eventsv1.Stablecoin
	id := func(c coin) string {
		if c.CoinId != "" {
			return c.CoinId
		}
		return canonical(c.Source, c.SourceId, c.Symbol, c.Name)
	}
	return newColumnBatch("stablecoins",
		lowCardinalityOf("source", coin.GetSource), stringOf("source_id", coin.GetSourceId), instantOf("ingest_time", coin.GetIngestTime), stringOf("coin_id", id),
		stringOf("symbol", coin.GetSymbol), stringOf("name", coin.GetName), lowCardinalityOf("peg_type", coin.GetPegType), lowCardinalityOf("peg_mechanism", coin.GetPegMechanism),
		numberOf("price", coin.GetPrice), numberOf("circulating", coin.GetCirculating), amounts(coin.GetChains), flagOf("dead", coin.GetDead),
		instantOf("event_time", coin.GetEventTime))
}

func protocolBatch() columnBatch[*eventsv1.Protocol] {
	type protocol = *eventsv1.Protocol
	return newColumnBatch("protocols",
		lowCardinalityOf("source", protocol.GetSource), stringOf("slug", protocol.GetSlug), instantOf("ingest_time", protocol.GetIngestTime), stringOf("coin_id", protocol.GetCoinId),
		stringOf("name", protocol.GetName), stringOf("symbol", protocol.GetSymbol), lowCardinalityOf("category", protocol.GetCategory),
		numberOf("tvl", protocol.GetTvl), amounts(protocol.GetChains), numberOf("change_1d", protocol.GetChange1D), numberOf("change_7d", protocol.GetChange7D),
		numberOf("market_cap", protocol.GetMarketCap), instantOf("event_time", protocol.GetEventTime))
}

func chainBatch() columnBatch[*eventsv1.ChainTvl] {
	type chain = *eventsv1.ChainTvl
	return newColumnBatch("chain_tvl",
		lowCardinalityOf("source", chain.GetSource), stringOf("chain", chain.GetChain), instantOf("ingest_time", chain.GetIngestTime), stringOf("coin_id", chain.GetCoinId),
		stringOf("symbol", chain.GetSymbol), numberOf("tvl", chain.GetTvl))
}

func fearGreedBatch() columnBatch[*eventsv1.FearGreed] {
	type index = *eventsv1.FearGreed
	return newColumnBatch("fear_greed",
		lowCardinalityOf("source", index.GetSource), dayOf("day", index.GetEventTime), percentOf("value", index.GetValue), lowCardinalityOf("classification", index.GetClassification),
		instantOf("event_time", index.GetEventTime), instantOf("next_update", index.GetNextUpdate), instantOf("ingest_time", index.GetIngestTime))
}

func globalBatch() columnBatch[*eventsv1.GlobalFigures] {
	type figures = *eventsv1.GlobalFigures
	return newColumnBatch("global_figures",
		lowCardinalityOf("source", figures.GetSource), instantOf("ingest_time", figures.GetIngestTime),
		numberOf("total_market_cap", figures.GetTotalMarketCap), numberOf("total_volume_24h", figures.GetTotalVolume24H),
		numberOf("btc_dominance", figures.GetBtcDominance), numberOf("eth_dominance", figures.GetEthDominance),
		countOf("active_coins", figures.GetActiveCoins), countOf("active_markets", figures.GetActiveMarkets), instantOf("event_time", figures.GetEventTime))
}

// pastPoint is a point of a coin's past: a record that holds a day in part replaces no more than it holds.
type pastPoint struct {
	*eventsv1.CoinPast
	*eventsv1.CoinPastPoint
}

func coinPastBatch() columnBatch[pastPoint] {
	type past = pastPoint
	return newColumnBatch("coin_past",
		lowCardinalityOf("source", func(p past) string { return p.CoinPast.GetSource() }), stringOf("source_id", func(p past) string { return p.GetSourceId() }),
		instantOf("time", func(p past) int64 { return p.GetTime() }),
		stringOf("coin_id", func(p past) string { return canonical(p.CoinPast.GetSource(), p.GetSourceId(), "", "") }),
		numberOf("market_cap", func(p past) string { return p.GetMarketCap() }), numberOf("volume_24h", func(p past) string { return p.GetVolume24H() }),
		instantOf("ingest_time", func(p past) int64 { return p.CoinPast.GetIngestTime() }))
}

func defiPastBatch() columnBatch[*eventsv1.DefiPast] {
	type past = *eventsv1.DefiPast
	return newColumnBatch("defi_past", lowCardinalityOf("source", past.GetSource), instantOf("time", past.GetEventTime), numberOf("total_tvl", past.GetTotalTvl),
		instantOf("ingest_time", past.GetIngestTime))
}

func fetchBatch() columnBatch[*eventsv1.Fetch] {
	type fetch = *eventsv1.Fetch
	return newColumnBatch("fetches",
		lowCardinalityOf("source", fetch.GetSource), instantOf("started", fetch.GetStarted), lowCardinalityOf("feed", fetch.GetFeed), stringOf("url", fetch.GetUrl),
		statusOf("status", fetch.GetStatus), stringOf("error", fetch.GetError), integerOf("duration_ns", fetch.GetDuration), integerOf("readings", fetch.GetRows),
		digestOf("told", fetch.GetTold))
}

func sourceBatch() columnBatch[*eventsv1.SourceNotice] {
	type notice = *eventsv1.SourceNotice
	return newColumnBatch("sources",
		lowCardinalityOf("source", notice.GetSource), stringOf("name", notice.GetName), listOf("kinds", notice.GetKinds), stringOf("url", notice.GetUrl),
		stringOf("license", notice.GetLicense), stringOf("terms", notice.GetTerms), stringOf("attribution", notice.GetAttribution),
		integerOf("interval_ns", notice.GetInterval), flagOf("enabled", notice.GetEnabled), flagOf("simulated", notice.GetSimulated),
		instantOf("ingest_time", notice.GetIngestTime), integerOf("moves_ns", notice.GetMoves))
}

func listingBatch() columnBatch[*eventsv1.Listing] {
	type listing = *eventsv1.Listing
	return newColumnBatch("listings",
		lowCardinalityOf("venue", listing.GetVenue), stringOf("symbol", listing.GetSymbol), instantOf("ingest_time", listing.GetIngestTime),
		lowCardinalityOf("base", listing.GetBase), lowCardinalityOf("quote", listing.GetQuote),
		lowCardinalityOf("coin_id", func(l listing) string {
			coin, _, _ := schemas.Coins().Resolve(l.GetVenue(), l.GetBase())
			return coin.ID
		}),
		lowCardinalityOf("quote_id", func(l listing) string {
			quote, _ := schemas.Coins().ResolveQuote(l.GetVenue(), l.GetQuote())
			return quote.ID
		}),
		flagOf("gone", listing.GetGone), lowCardinalityOf("status", listing.GetStatus), instantOf("first_seen", listing.GetFirstSeen), flagOf("simulated", listing.GetSimulated))
}

func overrideBatch() columnBatch[*eventsv1.SymbolOverride] {
	type override = *eventsv1.SymbolOverride
	return newColumnBatch("overrides",
		lowCardinalityOf("source", override.GetSource), stringOf("symbol", override.GetSymbol), instantOf("time", override.GetTime), stringOf("coin_id", override.GetCoinId),
		stringOf("reason", override.GetReason))
}

// datedFixing is a fixing with the beginning of its day, Unix nanoseconds.
type datedFixing struct {
	*eventsv1.Fixing
	day int64
}

// fixingDay is not ok for a fixing of no day, or of a rate that cannot be kept: it converts nothing and has no row.
func fixingDay(f *eventsv1.Fixing) (day int64, ok bool) {
	at, err := time.Parse(time.DateOnly, f.Date)
	value, exact := native.ParseDecimal128(f.Rate)
	if err != nil || !exact || value == (proto.Decimal128{}) || at.Year() < 1970 || at.Year() > 2148 {
		return 0, false
	}
	return at.UnixNano(), true
}

func fiatRateBatch() columnBatch[datedFixing] {
	return newColumnBatch("fiat_rates",
		lowCardinalityOf("source", func(f datedFixing) string { return f.Source }), lowCardinalityOf("base", func(f datedFixing) string { return f.Base }),
		lowCardinalityOf("quote", func(f datedFixing) string { return f.Quote }), dayOf("day", func(f datedFixing) int64 { return f.day }),
		instantOf("event_time", func(f datedFixing) int64 { return f.EventTime }), rateOf("rate", func(f datedFixing) string { return f.Rate }),
		instantOf("ingest_time", func(f datedFixing) int64 { return f.IngestTime }), listOf("providers", func(f datedFixing) []string { return f.Providers }))
}
