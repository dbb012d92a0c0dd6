package decode

import eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

// coinLine is what a list of coins, a page of a coin and its market print.
type coinLine struct {
	Kind              string   `json:"kind"`
	Source            string   `json:"source"`
	ID                string   `json:"id"`
	Symbol            *string  `json:"symbol"`
	Name              *string  `json:"name"`
	Rank              *uint32  `json:"rank"`
	Price             *string  `json:"price"`
	MarketCap         *string  `json:"marketCap"`
	Volume24h         *string  `json:"volume24h"`
	CirculatingSupply *string  `json:"circulatingSupply"`
	TotalSupply       *string  `json:"totalSupply"`
	MaxSupply         *string  `json:"maxSupply"`
	Categories        []string `json:"categories"`
	// Platforms hold the coin's address on each.
	Platforms map[string]string `json:"platforms"`
	EventTime *string           `json:"eventTime"`
}

func (a *answers) coin(c *eventsv1.Coin) *coinLine {
	l := &coinLine{
		Kind: "coin", Source: a.source.Slug, ID: c.SourceId, Symbol: known(c.Symbol), Name: known(c.Name), Rank: counted(c.Rank),
		Categories: c.Categories, EventTime: stamp(c.EventTime),
	}
	for _, p := range c.Platforms {
		if l.Platforms == nil {
			l.Platforms = map[string]string{}
		}
		l.Platforms[p.Name] = p.Address
	}
	return l
}

func (l *coinLine) market(m *eventsv1.CoinMarket) {
	l.Rank, l.EventTime = counted(m.Rank), stamp(m.EventTime)
	l.Price, l.MarketCap, l.Volume24h = known(m.Price), known(m.MarketCap), known(m.Volume24H)
	l.CirculatingSupply, l.TotalSupply, l.MaxSupply = known(m.CirculatingSupply), known(m.TotalSupply), known(m.MaxSupply)
}

type globalLine struct {
	Kind           string  `json:"kind"`
	Source         string  `json:"source"`
	TotalMarketCap *string `json:"totalMarketCap"`
	TotalVolume24h *string `json:"totalVolume24h"`
	BtcDominance   *string `json:"btcDominance"`
	EthDominance   *string `json:"ethDominance"`
	ActiveCoins    *uint32 `json:"activeCoins"`
	ActiveMarkets  *uint32 `json:"activeMarkets"`
	EventTime      *string `json:"eventTime"`
}

func (a *answers) global(g *eventsv1.GlobalFigures) globalLine {
	return globalLine{
		"global", a.source.Slug, known(g.TotalMarketCap), known(g.TotalVolume24H), known(g.BtcDominance), known(g.EthDominance),
		counted(g.ActiveCoins), counted(g.ActiveMarkets), stamp(g.EventTime),
	}
}

type pastLine struct {
	Kind      string  `json:"kind"`
	Source    string  `json:"source"`
	ID        string  `json:"id"`
	MarketCap *string `json:"marketCap"`
	Volume24h *string `json:"volume24h"`
	EventTime *string `json:"eventTime"`
}

// coinPast is a line for each point.
func (a *answers) coinPast(p *eventsv1.CoinPast) (lines []any) {
	for _, point := range p.Points {
		lines = append(lines, pastLine{"coin_past", a.source.Slug, p.SourceId, known(point.MarketCap), known(point.Volume24H), stamp(point.Time)})
	}
	return lines
}

// counted is nil for 0, which in the log means that it was not reported.
func counted(n uint32) *uint32 {
	if n == 0 {
		return nil
	}
	return &n
}
