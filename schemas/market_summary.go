package schemas

import (
	"math"
	"slices"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// dominantCoins is how many shares of the market a summary publishes.
const dominantCoins = 10

// Ids of the coins whose dominance is published by name.
const (
	bitcoinID  = "bitcoin"
	ethereumID = "ethereum"
)

// Standing is what a summary needs of a coin's row. It holds the numbers themselves: a summary looks at those of all coins each
// minute, and the numbers of 20,000 rows lie scattered in memory. Those that are not known are NaN.
type Standing struct {
	Row *eventsv1.Market
	// MarketCap is in USD.
	MarketCap float64

	volume, capBefore, change24h, change7d float64
	isBitcoin, isEthereum, isStablecoin    bool
}

// NewStanding is that of the row of a coin; known is what the table holds of the coin, nil for nothing.
func NewStanding(row *eventsv1.Market, known *Coin) Standing {
	s := Standing{
		Row: row, MarketCap: orNaN(row.MarketCap), volume: orNaN(row.Volume24H), change24h: orNaN(row.Change24H), change7d: orNaN(row.Change7D),
		isBitcoin: row.CoinId == bitcoinID, isEthereum: row.CoinId == ethereumID, isStablecoin: known != nil && known.Kind == KindStablecoin,
	}
	s.capBefore = s.MarketCap - orNaN(row.MarketCapChange24H)
	return s
}

// Ranked reports whether the coin has a market cap, by which it is ranked.
func (s *Standing) Ranked() bool { return !math.IsNaN(s.MarketCap) }

func orNaN(f *float64) float64 {
	if f == nil {
		return math.NaN()
	}
	return *f
}

// NewSummary is the whole market as of the end of a minute. Ranked are the coins that have a rank, in its order: floats are
// summed in that order. VolumeBefore is what the total volume was 24 hours before, 0 where that is not known. What is published
// of coins without a rank too, active coins and markets and whether any is simulated, is left to the caller.
func NewSummary(minute int64, ranked []Standing, volumeBefore float64) *eventsv1.Summary {
	s := &eventsv1.Summary{Time: minute}
	// Both caps are of the same coins: one that a source begins to report does not make the market grow.
	var now, before float64
	for i := range ranked {
		c := &ranked[i]
		s.TotalMarketCap += c.MarketCap
		if !math.IsNaN(c.volume) {
			s.TotalVolume24H += c.volume
		}
		if !math.IsNaN(c.capBefore) {
			now += c.MarketCap
			before += c.capBefore
		}
		if c.isStablecoin {
			s.StablecoinMarketCap += c.MarketCap
		}
	}
	if before > 0 {
		s.MarketCapChange24H = known(float64(now/before-1) * 100)
	}
	if volumeBefore > 0 {
		s.VolumeChange24H = known(float64(s.TotalVolume24H/volumeBefore-1) * 100)
	}
	for i := range ranked {
		c := &ranked[i]
		percent := c.MarketCap / s.TotalMarketCap * 100
		switch {
		case c.isBitcoin:
			s.BtcDominance = percent
		case c.isEthereum:
			s.EthDominance = percent
		}
		if i < dominantCoins {
			s.Dominance = append(s.Dominance, &eventsv1.Share{CoinId: c.Row.CoinId, Symbol: c.Row.Symbol, Percent: percent})
		}
	}
	if s.TotalMarketCap > 0 {
		s.StablecoinDominance = s.StablecoinMarketCap / s.TotalMarketCap * 100
	}
	for _, segment := range RankRanges {
		s.Sentiment = append(s.Sentiment, NewSentiment(ranked, segment))
	}
	s.Sentiment = append(s.Sentiment, NewSentiment(ranked, AllRanks))
	s.FearGreed = NewFearGreed(ranked, s)
	return s
}

// Segments of the coins that the index of fear and greed looks at.
var (
	fearGreedBreadth    = RankRange{1, 250}
	fearGreedVolatility = RankRange{1, 100}
)

// NewFearGreed is our own index of fear, 0, and greed, 100: the mean of those of its components that are known, each from
// 0 to 100; nil where none is. Ranked are the coins from rank 1 on; s is their summary.
//
//	momentum    50 + 2.5 x the market cap's change over 24 hours + 1 x the same coins' over 7 days, percent
//	breadth     100 x the coins that rose among those that moved, of ranks 1-250
//	volatility  100 - 10 x (the median of (high - low) / low over 24 hours, percent, of ranks 1-100, less 2)
//	dominance   50 - 10 x (bitcoin's change over 24 hours less the market cap's): fear flees into bitcoin
//	volume      50 + half the volume's change over 24 hours, percent, in the direction in which the market cap went
func NewFearGreed(ranked []Standing, s *eventsv1.Summary) *eventsv1.FearGreedComputed {
	index := &eventsv1.FearGreedComputed{}
	sum := 0.0
	add := func(name string, value float64) {
		value = min(max(value, 0), 100)
		index.Components = append(index.Components, &eventsv1.Statistic{Name: name, Value: value})
		sum += value
	}
	week, weekKnown := capChange7d(ranked)
	if s.MarketCapChange24H != nil || weekKnown {
		add("momentum", 50+float64(2.5*s.GetMarketCapChange24H())+week)
	}
	if breadth := NewSentiment(ranked, fearGreedBreadth); breadth.Positive+breadth.Negative > 0 {
		add("breadth", 100*breadth.Ratio)
	}
	var ranges []float64
	bitcoin := math.NaN()
	for _, c := range fearGreedVolatility.of(ranked) {
		if row := c.Row; row.High24H != nil && row.GetLow24H() > 0 {
			ranges = append(ranges, float64(*row.High24H-*row.Low24H) / *row.Low24H * 100)
		}
	}
	if i := slices.IndexFunc(ranked, func(c Standing) bool { return c.isBitcoin }); i >= 0 {
		bitcoin = ranked[i].change24h
	}
	if len(ranges) > 0 {
		add("volatility", 100-float64(10*float64(median(ranges)-2)))
	}
	if c := s.MarketCapChange24H; c != nil && !math.IsNaN(bitcoin) {
		add("dominance", 50-float64(10*float64(bitcoin-*c)))
	}
	if v := s.VolumeChange24H; v != nil && s.MarketCapChange24H != nil {
		direction := 1.0
		if *s.MarketCapChange24H < 0 {
			direction = -1
		}
		add("volume", 50+float64(direction*(*v)/2))
	}
	if len(index.Components) == 0 {
		return nil
	}
	index.Value = uint32(math.Round(sum / float64(len(index.Components))))
	return index
}

// capChange7d is by how many percent the coins whose change over 7 days is known are worth more than then, by the supply
// of today.
func capChange7d(ranked []Standing) (percent float64, ok bool) {
	var now, before float64
	for i := range ranked {
		if c := &ranked[i]; !math.IsNaN(c.change7d) {
			now += c.MarketCap
			before += c.MarketCap / (1 + c.change7d/100)
		}
	}
	if !(before > 0) {
		return 0, false
	}
	return float64(now/before-1) * 100, true
}
