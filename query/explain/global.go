package explain

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// globalField is a number of the whole market. Part is what a coin adds to it, nil where no sum is shown.
type globalField struct {
	name, unit, formula string
	value               func(*eventsv1.Summary) *float64
	part                func(*eventsv1.Market) *float64
	partField           string
}

func capPart(m *eventsv1.Market) *float64 { return m.MarketCap }

// globalFields are those that follow from the rows of the ranked coins and from what the total was a day before.
var globalFields = []globalField{
	{name: "totalMarketCap", unit: usd, formula: "sum of marketCap over the ranked coins, in the order of rank", part: capPart, partField: "marketCap",
		value: func(s *eventsv1.Summary) *float64 { return &s.TotalMarketCap }},
	{name: "totalVolume24h", unit: usd, formula: "sum of volume24h over the ranked coins, in the order of rank", partField: "volume24h",
		part:  func(m *eventsv1.Market) *float64 { return m.Volume24H },
		value: func(s *eventsv1.Summary) *float64 { return &s.TotalVolume24H }},
	{name: "btcDominance", unit: percent, formula: "marketCap of bitcoin / totalMarketCap x 100", part: capPart, partField: "marketCap",
		value: func(s *eventsv1.Summary) *float64 { return &s.BtcDominance }},
	{name: "ethDominance", unit: percent, formula: "marketCap of ethereum / totalMarketCap x 100", part: capPart, partField: "marketCap",
		value: func(s *eventsv1.Summary) *float64 { return &s.EthDominance }},
	{name: "marketCapChange24h", unit: percent, formula: "(sum of marketCap / sum of (marketCap - marketCapChange24h) - 1) x 100, over the ranked coins of which both are known",
		part: capPart, partField: "marketCap", value: func(s *eventsv1.Summary) *float64 { return s.MarketCapChange24H }},
	{name: "trend24h", formula: "marketCapChange24h / 100", part: capPart, partField: "marketCap",
		value: func(s *eventsv1.Summary) *float64 {
			if s.MarketCapChange24H == nil {
				return nil
			}
			fraction := *s.MarketCapChange24H / 100
			return &fraction
		}},
	{name: "volumeChange24h", unit: percent, formula: "(totalVolume24h / that of 24 hours before - 1) x 100", partField: "volume24h",
		part:  func(m *eventsv1.Market) *float64 { return m.Volume24H },
		value: func(s *eventsv1.Summary) *float64 { return s.VolumeChange24H }},
	{name: "activeCoins", formula: "number of coins with a price of the last 24 hours",
		value: func(s *eventsv1.Summary) *float64 { return counted(s.ActiveCoins) }},
	{name: activeMarketsField, formula: "markets that were accepted in the last price of a coin's newest candle, summed over the coins whose candle ended at most 10 minutes before",
		value: func(s *eventsv1.Summary) *float64 { return counted(s.ActiveMarkets) }},
	{name: "stablecoinMarketCap", unit: usd, formula: "sum of marketCap over the ranked stablecoins of our table", part: capPart, partField: "marketCap",
		value: func(s *eventsv1.Summary) *float64 { return &s.StablecoinMarketCap }},
	{name: "stablecoinDominance", unit: percent, formula: "stablecoinMarketCap / totalMarketCap x 100", part: capPart, partField: "marketCap",
		value: func(s *eventsv1.Summary) *float64 { return &s.StablecoinDominance }},
}

// activeMarketsField is the only one that is not made of rows.
const activeMarketsField = "activeMarkets"

func globalFieldNames() []string {
	return namesOf(globalFields, func(f globalField) string { return f.name })
}

// wholeMarket is the market at the end of a minute: what the fold wrote, and what the rows of the ranked coins give again.
type wholeMarket struct {
	at        int64
	summary   *eventsv1.Summary
	summaryAt *Place
	logic     uint32 // the version of the fold that wrote it
	ranked    []schemas.Standing
	// before is the total volume of a day before, 0 where that is not known, and its time.
	before   float64
	beforeAt int64
	again    *eventsv1.Summary
}

// whole is the market of the last minute, or of the one that was asked for.
func (w *work) whole(ctx context.Context) (*wholeMarket, error) {
	if w.held != nil {
		return w.held, nil
	}
	m := &wholeMarket{}
	var rows []*eventsv1.Market
	var err error
	if !w.past {
		m.summary = w.snapshot.Summary
		if m.summary.GetTotalMarketCap() <= 0 {
			return nil, query.Starting("no minute in which a coin had a market cap was folded yet")
		}
		m.at = m.summary.Time
		for _, coin := range w.snapshot.Coins {
			rows = append(rows, coin.FoldedRow)
		}
		written, err := w.minute(ctx, m.at)
		if err != nil {
			return nil, err
		}
		m.summaryAt, m.logic = written.summaryAt, written.logic
	} else {
		end, err := w.lastMinute(ctx)
		if err != nil {
			return nil, err
		}
		if rows, err = w.pastMarket(ctx, m, end); err != nil {
			return nil, err
		}
	}
	w.held, err = w.ofRows(ctx, m, rows)
	return w.held, err
}

// lastMinute is the end of the last minute of the market that was served at the instant asked for: that of the coins, where these are at hand, or where it is asked what
// one replica served.
func (w *work) lastMinute(ctx context.Context) (int64, error) {
	if w.then == nil && views.AnyReplica(ctx) {
		last, _ := w.Catalog.SummaryServedAt(w.asOf)
		return last, nil
	}
	coins, err := w.coinsServed(ctx)
	if err != nil {
		return 0, err
	}
	return coins.Time, nil
}

// wholeAt is the market of a minute that ended at a time.
func (w *work) wholeAt(ctx context.Context, end int64) (*wholeMarket, error) {
	if w.held != nil && w.held.at == end {
		return w.held, nil
	}
	m := &wholeMarket{}
	rows, err := w.pastMarket(ctx, m, end)
	if err != nil {
		return nil, err
	}
	return w.ofRows(ctx, m, rows)
}

// ofRows makes a market again of the rows of all coins.
func (w *work) ofRows(ctx context.Context, m *wholeMarket, rows []*eventsv1.Market) (*wholeMarket, error) {
	coins := w.Prices.Coins()
	for _, row := range rows {
		if row.GetMarketCap() > 0 && row.Rank > 0 {
			var known *schemas.Coin
			if coin, ok := coins.ByID(row.CoinId); ok {
				known = &coin
			}
			m.ranked = append(m.ranked, schemas.NewStanding(row, known))
		}
	}
	slices.SortFunc(m.ranked, func(a, b schemas.Standing) int { return cmp.Compare(a.Row.Rank, b.Row.Rank) })
	w.simulated = w.simulated || m.summary.Simulated
	if err := w.dayBefore(ctx, m); err != nil {
		return nil, err
	}
	m.again = schemas.NewSummary(m.at, m.ranked, m.before)
	for _, row := range rows {
		if row.GetPriceSource() != "" && m.at-row.PriceTime <= int64(oneDay) {
			m.again.ActiveCoins++
		}
	}
	return m, nil
}

// pastMarket reads the rows of all coins as of a minute: each was written within the hour before it.
func (w *work) pastMarket(ctx context.Context, m *wholeMarket, last int64) ([]*eventsv1.Market, error) {
	if err := w.agedOut(ctx, schemas.TopicMarkets, last); err != nil {
		return nil, err
	}
	logged, err := w.loggedMarket(ctx, last)
	if err != nil {
		return nil, err
	}
	m.summary, m.summaryAt, m.at, m.logic = logged.summary, logged.summaryAt, logged.summary.GetTime(), logged.logic
	if m.summary.GetTotalMarketCap() <= 0 {
		return nil, query.NotFound("no minute of the whole market was folded in the hour before %s", query.FormatTime(last))
	}
	return slices.Collect(maps.Values(logged.rows)), nil
}

const (
	// The fold remembers one total volume of every five minutes, and takes that of a day before from no further off than this.
	totalsStep = 5 * time.Minute
	totalsOff  = 144 * time.Minute
)

// dayBefore finds the total volume that the fold compared with: that of the last five minutes that were over 24 hours before.
func (w *work) dayBefore(ctx context.Context, m *wholeMarket) error {
	at := time.Unix(0, m.at).Add(-oneDay)
	until := at.Truncate(totalsStep)
	summaries, err := w.History.Summaries(ctx, at.Add(-totalsOff).Truncate(totalsStep).Add(-totalsStep), until, totalsStep)
	if err != nil {
		return err
	}
	for _, s := range summaries {
		// The end of its five minutes, as of those that a minute ends with.
		end := time.Unix(0, s.Time-1).Truncate(totalsStep).Add(totalsStep)
		if at.Sub(end) <= totalsOff {
			m.before, m.beforeAt = s.TotalVolume24H, s.Time
		}
	}
	return nil
}

// global explains a number of the whole market.
func (w *work) global(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	if len(parts) == 3 {
		return w.dominance(ctx, name, parts, depth)
	}
	i := slices.IndexFunc(globalFields, func(f globalField) bool { return f.name == parts[1] })
	if i < 0 {
		return nil, w.nearField(name, parts, 1, globalFieldNames())
	}
	m, err := w.whole(ctx)
	if err != nil {
		return nil, err
	}
	return w.globalOf(ctx, m, globalFields[i], depth)
}

// globalOf explains a number of a market.
func (w *work) globalOf(ctx context.Context, m *wholeMarket, field globalField, depth int) (*Node, error) {
	n := m.node("global/"+field.name, field.value(m.summary), field.unit, field.formula)
	if field.name == activeMarketsField {
		return n, w.activeMarkets(ctx, m, n)
	}
	n.compare(field.value(m.again))
	for i := range m.ranked {
		if field.part == nil {
			break // a count has no parts
		}
		row := m.ranked[i].Row
		switch field.name {
		case "btcDominance", "ethDominance":
			if id := map[string]string{"btcDominance": "bitcoin", "ethDominance": "ethereum"}[field.name]; row.CoinId != id {
				continue
			}
		case "stablecoinMarketCap", "stablecoinDominance":
			if coin, ok := w.Prices.Coins().ByID(row.CoinId); !ok || coin.Kind != schemas.KindStablecoin {
				continue
			}
		}
		if value := field.part(row); value != nil {
			n.Inputs = append(n.Inputs, headline("market/"+row.CoinId+"/"+field.partField, value, usd, row.Time))
		}
	}
	n.fewer(true)
	if err := w.deepen(ctx, m, n.Inputs, depth-1); err != nil {
		return nil, err
	}
	switch field.name {
	case "btcDominance", "ethDominance", "stablecoinDominance":
		n.Inputs = append(n.Inputs, m.node("global/totalMarketCap", &m.summary.TotalMarketCap, usd, globalFields[0].formula))
	case "volumeChange24h":
		if m.before > 0 {
			before := headline("global/totalVolume24h", &m.before, usd, m.beforeAt)
			if written, err := w.minute(ctx, m.beforeAt); err == nil && written.summaryAt != nil {
				before.Records = []Place{*written.summaryAt}
			}
			n.Inputs = append(n.Inputs, before)
		}
	}
	return n, nil
}

// node is a number of the summary.
func (m *wholeMarket) node(number string, value *float64, unit, formula string) *Node {
	n := headline(number, value, unit, m.at)
	n.Method = &Method{Name: "market-summary", Version: cmp.Or(m.logic, logic(schemas.TopicMarkets)), Formula: formula}
	if m.summaryAt != nil {
		n.Records = []Place{*m.summaryAt}
	}
	return n
}

// deepen gives inputs that are fields of the rows of a market their places in the log or, with levels left, their own inputs.
func (w *work) deepen(ctx context.Context, m *wholeMarket, inputs []*Node, depth int) error {
	for i, in := range inputs {
		parts, err := parse(in.Number)
		if err != nil || parts[0] != "market" {
			continue
		}
		var row *eventsv1.Market
		for j := range m.ranked {
			if m.ranked[j].Row.CoinId == parts[1] {
				row = m.ranked[j].Row
			}
		}
		coin := w.snapshot.ByID(parts[1])
		if field, _ := marketFieldNamed(parts[2]); w.expands(depth) && coin != nil {
			if inputs[i], err = w.fieldOf(ctx, coin, row, field, depth); err != nil {
				return err
			}
			continue
		}
		written, err := w.minute(ctx, row.Time)
		if err != nil {
			return err
		}
		if at, ok := written.places[parts[1]]; ok {
			in.Records = []Place{at}
		}
	}
	return nil
}
