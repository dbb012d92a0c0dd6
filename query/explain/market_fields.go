package explain

import (
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// marketField is a numeric field of a coin's row.
type marketField struct {
	name, unit string
	value      func(*eventsv1.Market) *float64
	// formula says in words how it is made; change is the span of a field that is a change.
	formula, change string
}

const (
	percent        = "percent"
	supplyFormula  = "the first source that states what circulates, of those whose price is believable; see docs/formulas"
	extremeFormula = "what a source states, unless our own days or the price go beyond"
	rangeFormula   = "extreme of our candles of 24 hours, joined with what a source states where these do not reach back"
)

// marketFields are all, in the order of a row.
var marketFields = []marketField{
	{name: "price", unit: usd, value: func(m *eventsv1.Market) *float64 { return &m.Price },
		formula: "the close of the newest candle while it is fresh, else the newest price of a source"},
	{name: "marketCap", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.MarketCap }, formula: "price x circulatingSupply"},
	{name: "rank", value: func(m *eventsv1.Market) *float64 {
		if m.Rank == 0 {
			return nil
		}
		rank := float64(m.Rank)
		return &rank
	}, formula: "1 + the number of coins with a greater market cap, or the same and a smaller id"},
	{name: "fullyDilutedValuation", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.FullyDilutedValuation }, formula: "price x maxSupply, or totalSupply where there is no maximum"},
	{name: "volume24h", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.Volume24H },
		formula: "volume of the accepted venues beside the newest price of ours, else that of a source"},
	{name: "high24h", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.High24H }, formula: rangeFormula},
	{name: "low24h", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.Low24H }, formula: rangeFormula},
	{name: "priceChange24h", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.PriceChange24H }, formula: "price - price / (1 + change24h / 100)"},
	{name: "change1h", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change1H }, change: "1h"},
	{name: "change24h", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change24H }, change: "24h"},
	{name: "change7d", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change7D }, change: "7d"},
	{name: "change14d", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change14D }, change: "14d"},
	{name: "change30d", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change30D }, change: "30d"},
	{name: "change60d", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change60D }, change: "60d"},
	{name: "change200d", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change200D }, change: "200d"},
	{name: "change1y", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.Change1Y }, change: "1y"},
	{name: "marketCapChange24h", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.MarketCapChange24H }, formula: "marketCap - marketCap / (1 + change24h / 100)"},
	{name: "marketCapChangePercent24h", unit: percent, value: func(m *eventsv1.Market) *float64 { return m.MarketCapChangePct24H }, formula: "change24h: supplies of a day ago are not known"},
	{name: "ath", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.Ath }, formula: extremeFormula},
	{name: "atl", unit: usd, value: func(m *eventsv1.Market) *float64 { return m.Atl }, formula: extremeFormula},
	{name: "athChange", unit: percent, value: func(m *eventsv1.Market) *float64 { return schemas.PercentFrom(m.Ath, m.Price) }, formula: "(price - ath) / ath x 100"},
	{name: "atlChange", unit: percent, value: func(m *eventsv1.Market) *float64 { return schemas.PercentFrom(m.Atl, m.Price) }, formula: "(price - atl) / atl x 100"},
	{name: "volumeToMarketCap", value: schemas.VolumeToMarketCap, formula: "volume24h / marketCap"},
	{name: "circulatingSupply", value: func(m *eventsv1.Market) *float64 { return m.CirculatingSupply }, formula: supplyFormula},
	{name: "totalSupply", value: func(m *eventsv1.Market) *float64 { return m.TotalSupply }, formula: supplyFormula},
	{name: "maxSupply", value: func(m *eventsv1.Market) *float64 { return m.MaxSupply }, formula: supplyFormula},
}

func marketFieldNames() []string {
	return namesOf(marketFields, func(f marketField) string { return f.name })
}

func marketFieldNamed(name string) (marketField, bool) {
	for _, f := range marketFields {
		if f.name == name {
			return f, true
		}
	}
	return marketField{}, false
}

// own reports whether a change of a row is of our own candles.
func (f marketField) method(own bool) *Method {
	formula := f.formula
	switch {
	case f.change != "" && own:
		formula = "(price / the close " + f.change + " before - 1) x 100"
	case f.change != "":
		formula = "what a source states: our own candles do not reach back so far"
	}
	return &Method{Name: "market-row", Version: logic(schemas.TopicMarkets), Formula: formula}
}

// logic is the version of the fold that derives a topic.
func logic(topic string) uint32 {
	t, _ := schemas.TopicNamed(topic) // a topic of the table
	return t.Logic
}
