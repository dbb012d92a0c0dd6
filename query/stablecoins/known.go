package stablecoins

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// known is the current state of a stablecoin.
type known struct {
	id, symbol, name string
	// peg is the currency that it aims at one unit of.
	peg string
	// row and reported may be nil: the markets fold, or no source, reports it.
	row      *eventsv1.Market
	reported *eventsv1.Stablecoin
	// own means that the coin table has it, so that prices and history of our own are of it.
	own   bool
	entry *views.Entry
	// price is in USD, 0 where none is known; target is what the unit of its peg costs, 0 where that is not.
	price, target float64
	priceSource   string
	priceTime     int64
	stale         bool
	simulated     bool
}

// deviation is in signed basis points; nil where price or target is not known.
func (k *known) deviation() *float64 {
	if k.price <= 0 || k.target <= 0 {
		return nil
	}
	bps := schemas.PegDeviationBps(k.price, k.target)
	return &bps
}

// marketCap is the fold's, else what the source counts in units of the peg; nil where neither is known.
func (k *known) marketCap() *float64 {
	if k.row.GetMarketCap() > 0 {
		return k.row.MarketCap
	}
	circulating := schemas.Float(k.reported.GetCirculating())
	if circulating <= 0 || k.target <= 0 {
		return nil
	}
	marketCap := circulating * k.target
	return &marketCap
}

// score is of the closes of 30 days and the deviation now; nil without either.
func (k *known) score(kept *eventsv1.ServedPeg) *schemas.PegScore {
	deviation := k.deviation()
	if deviation == nil || kept.GetSamples() == 0 {
		return nil
	}
	s := schemas.PegScoreOf(kept.MeanBps, kept.P95Bps, max(*deviation, -*deviation), int(kept.Samples))
	return &s
}

// pegTypes are how sources write that a stablecoin follows a currency: peggedUSD.
const pegTypes = "pegged"

// pegOf reads the currency of a source's peg type; empty where it follows none, as peggedVAR.
func pegOf(coins *schemas.CoinTable, pegType string) string {
	code, ok := strings.CutPrefix(pegType, pegTypes)
	if !ok {
		return ""
	}
	fiat, _ := coins.Fiat(code)
	return fiat.Code
}

// state is what stablecoins are answered from: what is known now, or what was served at a past instant.
type state struct {
	*Unit
	// snapshot has what sources state of stablecoins and currencies; row is that of a coin, nil without one, of the minute that ended at minute.
	snapshot *views.Snapshot
	row      func(coinID string) *eventsv1.Market
	minute   int64
	entry    func(coin schemas.Coin) *views.Entry
	rates    *views.Rates
	at       time.Time
	// names has what symbols mean: of a past instant too it is that of now.
	names *views.Snapshot
}

// current is the state at a time of the query's clock.
func (u *Unit) current(snapshot *views.Snapshot, now time.Time) *state {
	return &state{Unit: u, snapshot: snapshot, minute: snapshot.Time, entry: u.priceCache.Entry, rates: u.rates, at: now, names: snapshot, row: func(coinID string) *eventsv1.Market {
		if coin := snapshot.ByID(coinID); coin != nil {
			return coin.Market
		}
		return nil
	}}
}

// newest is when the newest was known that stablecoins are answered from, Unix nanoseconds.
func (s *state) newest(list []*known) int64 {
	newest := max(s.minute, s.snapshot.SourcesTime)
	for _, k := range list {
		if k.entry != nil {
			newest = max(newest, k.priceTime)
		}
	}
	return newest
}

// all are the stablecoins that the coin table or a source names with a peg, by coin id.
func (s *state) all() []*known {
	coins := s.priceCache.Coins()
	byID := map[string]*known{}
	for _, coin := range coins.All() {
		if coin.Peg != "" {
			byID[coin.ID] = &known{id: coin.ID, symbol: coin.Symbol, name: coin.Name, peg: coin.Peg, own: true, entry: s.entry(coin)}
		}
	}
	for _, reported := range s.snapshot.Stablecoins {
		if reported.CoinId == "" {
			continue
		}
		k := byID[reported.CoinId]
		if k == nil {
			peg := pegOf(coins, reported.PegType)
			_, other := coins.ByID(reported.CoinId) // the table says that it has no peg
			if peg == "" || other {
				continue
			}
			k = &known{id: reported.CoinId, symbol: strings.ToUpper(reported.Symbol), name: reported.Name, peg: peg}
			byID[reported.CoinId] = k
		}
		if k.reported == nil || schemas.Float(reported.Circulating) > schemas.Float(k.reported.Circulating) {
			k.reported = reported // of two that a source takes for one coin, the larger is it
		}
	}
	list := make([]*known, 0, len(byID))
	for _, k := range byID {
		k.row, k.target = s.row(k.id), s.rates.PegTarget(s.snapshot, k.peg, s.at).USD
		s.setPrice(k)
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *known) int { return strings.Compare(a.id, b.id) })
	return list
}

// setPrice takes our own live price, else that of the markets fold, else that of the source.
func (s *state) setPrice(k *known) {
	switch {
	case k.entry != nil:
		k.price, k.priceSource, k.priceTime = k.entry.Price.Price, priceSource, k.entry.Price.Time
		k.stale, k.simulated = s.priceCache.Freshness(k.entry, s.at).Stale, k.entry.Price.Simulated
		return
	case k.row.GetPrice() > 0:
		k.price, k.priceSource, k.priceTime, k.simulated = k.row.Price, k.row.PriceSource, k.row.PriceTime, k.row.Simulated
	case k.reported != nil:
		k.price, k.priceSource, k.priceTime = schemas.Float(k.reported.Price), k.reported.Source, cmp.Or(k.reported.EventTime, k.reported.IngestTime)
		k.simulated = s.snapshot.Notices[k.reported.Source].GetSimulated()
	}
	// What a source reports each hour may be two hours old, and is stale when three rounds were missed.
	k.stale = k.price > 0 && s.at.UnixNano()-k.priceTime > int64(3*time.Hour)
}
