package oracle

import (
	"fmt"
	"math"
	"sort"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// minute works out everything at the end of one minute; volumes are the totals of earlier ones.
func (m Market) minute(coins map[string]*coinHistory, end int64, volumes map[int64]float64) MarketMinute {
	known := MarketMinute{End: end, Rows: map[string]*eventsv1.Market{}, Summary: &eventsv1.Summary{Time: end}}
	s := known.Summary
	var ranked []*eventsv1.Market
	for id, c := range coins {
		if len(c.known(end)) == 0 && len(c.sources(end)) == 0 {
			continue
		}
		row := m.row(c, id, end)
		known.Rows[id] = row
		s.Simulated = s.Simulated || row.Simulated
		if row.MarketCap != nil {
			ranked = append(ranked, row)
		}
		if row.PriceSource != "" && row.PriceTime >= end-day {
			s.ActiveCoins++
		}
		if candles := c.known(end); len(candles) > 0 && candles[len(candles)-1].Start+11*minute >= end {
			s.ActiveMarkets += candles[len(candles)-1].Accepted
		}
	}
	sort.Slice(ranked, func(i, j int) bool {
		if *ranked[i].MarketCap != *ranked[j].MarketCap {
			return *ranked[i].MarketCap > *ranked[j].MarketCap
		}
		return ranked[i].CoinId < ranked[j].CoinId
	})
	var nowDay, thenDay, nowWeek, thenWeek float64
	bitcoin := math.NaN()
	for i, row := range ranked {
		row.Rank = uint32(i + 1)
		s.TotalMarketCap += *row.MarketCap
		if row.Volume24H != nil {
			s.TotalVolume24H += *row.Volume24H
		}
		if row.Change24H != nil {
			nowDay += *row.MarketCap
			thenDay += *row.MarketCap / (1 + *row.Change24H/100)
			if row.CoinId == "bitcoin" {
				bitcoin = *row.Change24H
			}
		}
		if row.Change7D != nil {
			nowWeek += *row.MarketCap
			thenWeek += *row.MarketCap / (1 + *row.Change7D/100)
		}
		if m.Coins[row.CoinId].Stablecoin {
			s.StablecoinMarketCap += *row.MarketCap
		}
	}
	for i, row := range ranked {
		share := 100 * *row.MarketCap / s.TotalMarketCap
		if row.CoinId == "bitcoin" {
			s.BtcDominance = share
		}
		if row.CoinId == "ethereum" {
			s.EthDominance = share
		}
		if i < 10 {
			s.Dominance = append(s.Dominance, &eventsv1.Share{CoinId: row.CoinId, Symbol: row.Symbol, Percent: share})
		}
	}
	if len(ranked) > 0 {
		s.StablecoinDominance = 100 * s.StablecoinMarketCap / s.TotalMarketCap
	}
	if thenDay > 0 {
		change := 100 * (nowDay/thenDay - 1)
		s.MarketCapChange24H = &change
	}
	if before := volumeBefore(volumes, end-day); before > 0 {
		change := 100 * (s.TotalVolume24H/before - 1)
		s.VolumeChange24H = &change
	}
	volumes[end] = s.TotalVolume24H
	for _, segment := range []struct {
		name     string
		from, to int
	}{{"1-50", 1, 50}, {"51-100", 51, 100}, {"101-250", 101, 250}, {"all", 1, math.MaxInt}} {
		s.Sentiment = append(s.Sentiment, sentiment(ranked, segment.name, segment.from, segment.to))
	}
	s.FearGreed = fearGreed(ranked, s, bitcoin, nowWeek, thenWeek)
	return known
}

// volumeBefore is the total at the last minute of the last interval of five that had ended by then.
func volumeBefore(volumes map[int64]float64, at int64) float64 {
	newest := int64(0)
	for end := range volumes {
		interval := (end + 5*minute - 1) / (5 * minute) * (5 * minute)
		if interval <= at && interval >= at-144*minute && end > newest {
			newest = end
		}
	}
	return volumes[newest]
}

func sentiment(ranked []*eventsv1.Market, name string, from, to int) *eventsv1.Sentiment {
	s := &eventsv1.Sentiment{Range: name, Ratio: 0.5}
	var changes []float64
	for i, row := range ranked {
		if i+1 < from || i+1 > to || row.Change24H == nil {
			continue
		}
		changes = append(changes, *row.Change24H)
		s.AverageChange24H += *row.Change24H
		if *row.Change24H > 0 {
			s.Positive++
		} else if *row.Change24H < 0 {
			s.Negative++
		} else {
			s.Neutral++
		}
	}
	s.Total = s.Positive + s.Negative + s.Neutral
	if s.Total > 0 {
		s.AverageChange24H /= float64(s.Total)
		s.MedianChange24H = middle(changes)
	}
	if s.Positive+s.Negative > 0 {
		s.Ratio = float64(s.Positive) / float64(s.Positive+s.Negative)
	}
	s.Classification = "very bearish"
	for _, class := range []struct {
		name  string
		holds bool
	}{{"bearish", s.Ratio > 0.25}, {"neutral", s.Ratio > 0.45}, {"bullish", s.Ratio >= 0.55}, {"very bullish", s.Ratio >= 0.75}} {
		if class.holds {
			s.Classification = class.name
		}
	}
	return s
}

func fearGreed(ranked []*eventsv1.Market, s *eventsv1.Summary, bitcoin, nowWeek, thenWeek float64) *eventsv1.FearGreedComputed {
	f := &eventsv1.FearGreedComputed{}
	total := 0.0
	component := func(name string, value float64) {
		value = math.Max(0, math.Min(100, value))
		total += value
		f.Components = append(f.Components, &eventsv1.Statistic{Name: name, Value: value})
	}
	day, dayKnown := 0.0, s.MarketCapChange24H != nil
	if dayKnown {
		day = *s.MarketCapChange24H
	}
	if dayKnown || thenWeek > 0 {
		week := 0.0
		if thenWeek > 0 {
			week = 100 * (nowWeek/thenWeek - 1)
		}
		component("momentum", 50+2.5*day+week)
	}
	if b := sentiment(ranked, "", 1, 250); b.Positive+b.Negative > 0 {
		component("breadth", 100*float64(b.Positive)/float64(b.Positive+b.Negative))
	}
	var ranges []float64
	for _, row := range ranked[:min(len(ranked), 100)] {
		if row.High24H != nil {
			ranges = append(ranges, 100*(*row.High24H-*row.Low24H) / *row.Low24H)
		}
	}
	if len(ranges) > 0 {
		component("volatility", 120-10*middle(ranges))
	}
	if dayKnown && !math.IsNaN(bitcoin) {
		component("dominance", 50-10*(bitcoin-day))
	}
	if dayKnown && s.VolumeChange24H != nil {
		half := *s.VolumeChange24H / 2
		if day < 0 {
			half = -half
		}
		component("volume", 50+half)
	}
	if len(f.Components) == 0 {
		return nil
	}
	f.Value = uint32(math.Floor(total/float64(len(f.Components)) + 0.5))
	return f
}

// CompareMarkets names every row, summary and rank of which the records of markets.v1 hold other values than they should, at the end of
// each minute; what is not written again stays as it was. Floats may differ by a part in a billion.
func CompareMarkets(want []MarketMinute, got []*eventsv1.MarketRecord) []string {
	var wrong []string
	rows := map[string]*eventsv1.Market{}
	next := 0
	for _, minute := range want {
		var summary *eventsv1.Summary
		for ; next < len(got); next++ {
			if got[next].GetMark().GetOffset() > minute.End {
				break
			}
			if row := got[next].GetMarket(); row != nil {
				rows[row.CoinId] = row
			}
			if got[next].GetSummary() != nil {
				summary = got[next].GetSummary()
			}
		}
		at := fmt.Sprintf(" at %d", minute.End/second)
		for id, row := range minute.Rows {
			wrong = append(wrong, differences("the row of "+id+at, describeMarket(row), describeMarket(rows[id]))...)
		}
		for id, row := range rows {
			if minute.Rows[id] == nil && row.PriceSource != "" {
				wrong = append(wrong, "the row of "+id+at+" should not be")
			}
		}
		if summary == nil {
			wrong = append(wrong, "the summary"+at+" is missing")
			continue
		}
		wrong = append(wrong, differences("the summary"+at, describeSummary(minute.Summary), describeSummary(summary))...)
	}
	for ; next < len(got); next++ {
		wrong = append(wrong, fmt.Sprintf("a record of the minute %d, which should not be", got[next].GetMark().GetOffset()/second))
	}
	sort.Strings(wrong)
	return wrong
}

// field is one number or word of what is compared.
type field struct {
	name   string
	number float64
	text   string
}

func differences(what string, want, got []field) []string {
	if len(got) == 0 {
		return []string{what + " is missing"}
	}
	var wrong []string
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i].name != got[i].name {
			return append(wrong, fmt.Sprintf("%s has other fields:\n   got %v\n  want %v", what, got, want))
		}
		w, g := want[i], got[i]
		if w.text != g.text || math.Abs(w.number-g.number) > 1e-9*math.Max(1, math.Max(math.Abs(w.number), math.Abs(g.number))) {
			wrong = append(wrong, fmt.Sprintf("%s: %s is %v %s, want %v %s", what, w.name, g.number, g.text, w.number, w.text))
		}
	}
	return wrong
}

func describeMarket(m *eventsv1.Market) []field {
	if m == nil {
		return nil
	}
	fields := []field{{"names", 0, m.Symbol + " " + m.Name}, {"price", m.Price, m.PriceSource}, {"priceTime", 0, fmt.Sprint(m.PriceTime)}, {"rank", float64(m.Rank), ""}, {"own", 0, fmt.Sprint(m.OwnChanges)}}
	for _, f := range []struct {
		name string
		f    *float64
	}{
		{"cap", m.MarketCap}, {"diluted", m.FullyDilutedValuation}, {"volume", m.Volume24H}, {"high", m.High24H}, {"low", m.Low24H}, {"rise", m.PriceChange24H},
		{"1h", m.Change1H}, {"24h", m.Change24H}, {"7d", m.Change7D}, {"14d", m.Change14D}, {"30d", m.Change30D}, {"60d", m.Change60D}, {"200d", m.Change200D}, {"1y", m.Change1Y},
		{"caprise", m.MarketCapChange24H}, {"capchange", m.MarketCapChangePct24H}, {"ath", m.Ath}, {"atl", m.Atl},
		{"circulating", m.CirculatingSupply}, {"total", m.TotalSupply}, {"max", m.MaxSupply},
	} {
		if f.f != nil {
			fields = append(fields, field{f.name, *f.f, ""})
		}
	}
	return append(fields, field{"times", 0, fmt.Sprint(m.AthTime, m.AtlTime)}, field{"supply", 0, fmt.Sprint(m.SupplySource, " ", m.SupplyTime)}, field{"simulated", 0, fmt.Sprint(m.Simulated)})
}

func describeSummary(s *eventsv1.Summary) []field {
	fields := []field{
		{"cap", s.TotalMarketCap, ""}, {"volume", s.TotalVolume24H, ""}, {"btc", s.BtcDominance, ""}, {"eth", s.EthDominance, ""}, {"coins", float64(s.ActiveCoins), ""},
		{"markets", float64(s.ActiveMarkets), ""}, {"stable", s.StablecoinMarketCap, ""}, {"stableshare", s.StablecoinDominance, ""}, {"simulated", 0, fmt.Sprint(s.Simulated)},
	}
	if s.MarketCapChange24H != nil {
		fields = append(fields, field{"capchange", *s.MarketCapChange24H, ""})
	}
	if s.VolumeChange24H != nil {
		fields = append(fields, field{"volumechange", *s.VolumeChange24H, ""})
	}
	for _, d := range s.Dominance {
		fields = append(fields, field{"share", d.Percent, d.CoinId + " " + d.Symbol})
	}
	for _, n := range s.Sentiment {
		fields = append(fields, field{"sentiment", n.Ratio, fmt.Sprint(n.Range, n.Positive, n.Negative, n.Neutral, n.Total, n.Classification)},
			field{"mean", n.AverageChange24H, ""}, field{"median", n.MedianChange24H, ""})
	}
	if s.FearGreed != nil {
		fields = append(fields, field{"fear and greed", float64(s.FearGreed.Value), ""})
		for _, c := range s.FearGreed.Components {
			fields = append(fields, field{"component", c.Value, c.Name})
		}
	}
	return fields
}
