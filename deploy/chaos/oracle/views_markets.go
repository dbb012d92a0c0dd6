package oracle

import (
	"fmt"
	"hash/fnv"
	"math"
	"sort"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// ClosedMinutes are the ends of the minutes that are folded: those in which anything was written, up to the last that is whole in
// all partitions.
func ClosedMinutes(candles map[int32][]Record, observations []Record) ([]int64, error) {
	ends := map[int64]bool{}
	whole := int64(math.MaxInt64)
	for p, records := range candles {
		var reached int64
		err := eachMarked(records, func() marked { return &eventsv1.CandleRecord{} }, func(m marked) {
			rec := m.(*eventsv1.CandleRecord)
			if pulse := rec.GetPulse(); pulse != nil {
				reached = max(reached, (pulse.Watermark-5*second)/minute*minute)
				ends[reached] = true
			}
			if c := rec.GetCandle(); c != nil {
				ends[c.Start+minute] = true
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading candles.v1/%d: %w", p, err)
		}
		whole = min(whole, reached)
	}
	var reached int64
	err := eachObserved(observations, func(_ *eventsv1.ReferenceRecord, end int64) {
		reached = end - minute
		ends[end] = true
	})
	if err != nil {
		return nil, err
	}
	whole = min(whole, reached)
	var list []int64
	for end := range ends {
		if end > minute && end <= whole {
			list = append(list, end)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list, nil
}

// eachObserved visits the records of an observed topic with the end of the minute that each belongs to, by the clocks before it. What
// comes before the first clock that counts belongs to that one's minute.
func eachObserved(observations []Record, visit func(rec *eventsv1.ReferenceRecord, end int64)) error {
	clocks := clockLog{lives: map[writer]life{}}
	var early []*eventsv1.ReferenceRecord
	for _, r := range observations {
		rec := &eventsv1.ReferenceRecord{}
		if err := rec.UnmarshalVT(r.Value); err != nil {
			return fmt.Errorf("decoding the observation %d: %w", r.Offset, err)
		}
		if clock := rec.GetClock(); clock != nil {
			clocks.record(writer{rec.Producer, rec.Epoch}, clock.Time)
		}
		if clocks.now() == 0 {
			early = append(early, rec)
			continue
		}
		end := clocks.now()/minute*minute + minute
		for _, before := range early {
			visit(before, end)
		}
		early = nil
		visit(rec, end)
	}
	return nil
}

// MarketViews are what the views of the market show after the last of some minutes.
type MarketViews struct{ Markets, Global, Movers, Sentiment, FearGreed View }

// Views works out the views of the market from what must be known at the end of each minute.
func (m Market) Views(minutes []MarketMinute, ref Reference) MarketViews {
	v := MarketViews{
		Markets:   View{Name: "v_markets", Key: []string{"coin_id"}},
		Global:    View{Name: "v_global", Key: []string{"time"}},
		Movers:    View{Name: "v_movers", Key: []string{"range", "side", "position"}},
		Sentiment: View{Name: "v_sentiment", Key: []string{"time", "range"}},
		FearGreed: View{Name: "v_fear_greed", Key: []string{"day", "source"}},
	}
	rows := map[string]*eventsv1.Market{}
	days := map[int64]Row{}
	for i, now := range minutes {
		before := now.End - minute
		if i > 0 {
			before = minutes[i-1].End
		}
		for id, row := range now.Rows {
			row.Time = now.End
			if was := rows[id]; was != nil && !turnCame(id, before, now.End) && len(differences("", describeMarket(was), describeMarket(row))) == 0 {
				row.Time = was.Time
			}
			rows[id] = row
		}
		s := now.Summary
		v.Global.Rows = append(v.Global.Rows, globalRow(s))
		for _, n := range s.Sentiment {
			v.Sentiment.Rows = append(v.Sentiment.Rows, Row{"time": instant(s.Time), "range": n.Range, "positive": n.Positive, "negative": n.Negative, "neutral": n.Neutral, "total": n.Total,
				"ratio": n.Ratio, "classification": n.Classification, "average_change_24h": n.AverageChange24H, "median_change_24h": n.MedianChange24H})
		}
		if s.FearGreed != nil {
			of := (s.Time - 1) / day * day
			days[of] = Row{"day": instant(of), "source": "marketlog", "value": s.FearGreed.Value, "classification": mood(s.FearGreed.Value), "time": instant(s.Time)}
		}
	}
	for _, row := range days {
		v.FearGreed.Rows = append(v.FearGreed.Rows, row)
	}
	for _, f := range newest(ref.Indexes, func(f *eventsv1.FearGreed) string { return fmt.Sprint(f.Source, "|", f.EventTime/day) }) {
		v.FearGreed.Rows = append(v.FearGreed.Rows, Row{"day": instant(f.EventTime / day * day), "source": f.Source, "value": f.Value, "classification": f.Classification, "time": instant(f.IngestTime)})
	}
	for _, row := range rows {
		if row.PriceSource != "" {
			v.Markets.Rows = append(v.Markets.Rows, marketRow(row))
		}
	}
	v.Movers.Rows = movers(rows)
	return v
}

// turnCame reports whether an hourly turn of a coin lies between two minutes: its row is written though nothing changed. The turns are
// spread over the hour by the FNV-1a hash of the id.
func turnCame(id string, before, now int64) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	turn := int64(h.Sum32()%60) * minute
	for at := before + minute; at <= now && at <= before+hour; at += minute {
		if at%hour == turn {
			return true
		}
	}
	return false
}

func mood(value uint32) string {
	for _, m := range []struct {
		to   uint32
		name string
	}{{25, "Extreme Fear"}, {46, "Fear"}, {54, "Neutral"}, {75, "Greed"}} {
		if value <= m.to {
			return m.name
		}
	}
	return "Extreme Greed"
}

func globalRow(s *eventsv1.Summary) Row {
	shares, components := []Row{}, []Row{}
	for _, d := range s.Dominance {
		shares = append(shares, Row{"coin_id": d.CoinId, "symbol": d.Symbol, "percent": d.Percent})
	}
	row := Row{
		"time": instant(s.Time), "total_market_cap": s.TotalMarketCap, "total_volume_24h": s.TotalVolume24H, "btc_dominance": s.BtcDominance, "eth_dominance": s.EthDominance, "dominance": shares,
		"market_cap_change_24h": s.MarketCapChange24H, "volume_change_24h": s.VolumeChange24H, "active_coins": s.ActiveCoins, "active_markets": s.ActiveMarkets,
		"stablecoin_market_cap": s.StablecoinMarketCap, "stablecoin_dominance": s.StablecoinDominance, "fear_greed": nil, "simulated": s.Simulated,
	}
	if s.FearGreed != nil {
		row["fear_greed"] = s.FearGreed.Value
		for _, c := range s.FearGreed.Components {
			components = append(components, Row{"name": c.Name, "value": c.Value})
		}
	}
	row["fear_greed_components"] = components
	return row
}

func marketRow(m *eventsv1.Market) Row {
	return Row{
		"coin_id": m.CoinId, "symbol": m.Symbol, "name": m.Name, "rank": m.Rank, "time": instant(m.Time), "price": m.Price, "price_source": m.PriceSource, "price_time": instant(m.PriceTime),
		"market_cap": m.MarketCap, "fully_diluted_valuation": m.FullyDilutedValuation, "volume_24h": m.Volume24H, "high_24h": m.High24H, "low_24h": m.Low24H, "price_change_24h": m.PriceChange24H,
		"change_1h": m.Change1H, "change_24h": m.Change24H, "change_7d": m.Change7D, "change_14d": m.Change14D, "change_30d": m.Change30D, "change_60d": m.Change60D, "change_200d": m.Change200D,
		"change_1y": m.Change1Y, "own_changes": texts(m.OwnChanges), "market_cap_change_24h": m.MarketCapChange24H, "market_cap_change_pct_24h": m.MarketCapChangePct24H,
		"ath": m.Ath, "ath_time": known(m.AthTime), "atl": m.Atl, "atl_time": known(m.AtlTime), "circulating_supply": m.CirculatingSupply, "total_supply": m.TotalSupply, "max_supply": m.MaxSupply,
		"supply_source": m.SupplySource, "supply_time": known(m.SupplyTime), "simulated": m.Simulated,
	}
}

// movers are the fifty that rose and the fifty that fell most in each segment.
func movers(rows map[string]*eventsv1.Market) []Row {
	var list []Row
	for _, segment := range []struct {
		name     string
		from, to uint32
	}{{"1-50", 1, 50}, {"51-100", 51, 100}, {"101-250", 101, 250}, {"all", 1, math.MaxUint32}} {
		for side, sign := range map[string]float64{"gainer": 1, "loser": -1} {
			var moved []*eventsv1.Market
			for _, m := range rows {
				if m.Rank >= segment.from && m.Rank <= segment.to && m.Change24H != nil && sign**m.Change24H > 0 && m.Volume24H != nil && *m.Volume24H >= 50_000 {
					moved = append(moved, m)
				}
			}
			sort.Slice(moved, func(i, j int) bool {
				if a, b := sign**moved[i].Change24H, sign**moved[j].Change24H; a != b {
					return a > b
				}
				return moved[i].Rank < moved[j].Rank
			})
			for i, m := range moved[:min(len(moved), 50)] {
				list = append(list, Row{"range": segment.name, "side": side, "position": i + 1, "coin_id": m.CoinId, "symbol": m.Symbol, "name": m.Name, "rank": m.Rank, "price": m.Price,
					"change_24h": *m.Change24H, "volume_24h": *m.Volume24H, "time": instant(m.Time)})
			}
		}
	}
	return list
}
