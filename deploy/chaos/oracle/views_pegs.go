package oracle

import (
	"fmt"
	"math"
	"sort"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// pegPoint is what a stablecoin cost at a moment beside the unit that it aims at.
type pegPoint struct {
	coin, peg     string
	at            int64
	price, target float64
}

func (p pegPoint) bps() float64 { return 1e4 * (p.price - p.target) / p.target }

// Pegs are the deviations of stablecoins.
type Pegs struct {
	// minutes are by the ends of closed minutes, oldest first; seconds are of published prices.
	minutes, seconds []pegPoint
	// begin is the second of the oldest price that is kept.
	begin int64
}

// Pegs joins candles and prices with what the currencies of pegs cost on their days.
func (m Market) Pegs(ref Reference, d Derived) Pegs {
	fixings := ref.pegRates()
	target := func(peg string, at int64) float64 {
		if peg == "USD" {
			return 1
		}
		usd, newest := 0.0, int64(-1)
		for _, f := range fixings {
			if f.currency == peg && f.day <= at && f.day > newest && at/day-f.day/day <= 6 {
				usd, newest = f.usd, f.day
			}
		}
		return usd
	}
	point := func(coin string, of, at int64, price float64) (pegPoint, bool) {
		peg := m.Coins[coin].Peg
		if peg == "" {
			return pegPoint{}, false
		}
		p := pegPoint{coin, peg, at, price, target(peg, of)}
		return p, p.target > 0
	}
	var pegs Pegs
	for _, c := range newest(d.Candles, func(c *eventsv1.Candle) string { return fmt.Sprint(c.CoinId, "|", c.Start) }) {
		if p, ok := point(c.CoinId, c.Start, c.Start+minute, c.Close); ok {
			pegs.minutes = append(pegs.minutes, p)
		}
	}
	pegs.begin = math.MaxInt64
	for _, p := range newest(d.Prices, func(p *eventsv1.Price) string { return fmt.Sprint(p.CoinId, "|", p.Time) }) {
		pegs.begin = min(pegs.begin, p.Time)
		if peg, ok := point(p.CoinId, p.Time, p.Time, p.Price); ok && p.Reason == "" {
			pegs.seconds = append(pegs.seconds, peg)
		}
	}
	sort.SliceStable(pegs.minutes, func(i, j int) bool { return pegs.minutes[i].at < pegs.minutes[j].at })
	return pegs
}

// View works out v_peg.
func (p Pegs) View() View {
	v := View{Name: "v_peg", Key: []string{"coin_id", "time", "resolution"}}
	add := func(p pegPoint, resolution string) {
		v.Rows = append(v.Rows, Row{"time": instant(p.at), "coin_id": p.coin, "peg": p.peg, "price": p.price, "target_usd": p.target, "deviation_bps": p.bps(), "resolution": resolution})
	}
	for _, s := range p.seconds {
		add(s, "second")
	}
	for _, m := range p.minutes {
		if m.at-minute < p.begin {
			add(m, "minute")
		}
	}
	return v
}

// Episodes works out v_peg_episodes.
func (p Pegs) Episodes() View {
	v := View{Name: "v_peg_episodes", Key: []string{"coin_id", "start"}}
	_, coins := group(p.minutes, func(p pegPoint) string { return p.coin })
	for coin, minutes := range coins {
		var open Row
		var n uint64
		for _, m := range minutes {
			far := math.Abs(m.bps())
			switch {
			case open == nil && far < 50:
			case open == nil:
				n = 1
				open = Row{"coin_id": coin, "peg": m.peg, "start": instant(m.at), "trough": instant(m.at), "trough_bps": m.bps(), "recovery": nil, "minutes": n}
				v.Rows = append(v.Rows, open)
			case far < 25:
				open["recovery"] = instant(m.at)
				open = nil
			default:
				n++
				open["minutes"] = n
				if far > math.Abs(open["trough_bps"].(float64)) {
					open["trough"], open["trough_bps"] = instant(m.at), m.bps()
				}
			}
		}
	}
	return v
}

// Statistics works out how well each stablecoin kept its peg in the minutes that ended after since.
func (p Pegs) Statistics(since time.Time) View {
	v := View{Name: "the statistics of pegs", Key: []string{"coin_id"}}
	_, coins := group(p.minutes, func(p pegPoint) string { return p.coin })
	for coin, minutes := range coins {
		var far []float64
		var last pegPoint
		sum := 0.0
		for _, m := range minutes {
			if m.at > since.UnixNano() {
				far, sum, last = append(far, math.Abs(m.bps())), sum+math.Abs(m.bps()), m
			}
		}
		if len(far) == 0 {
			continue
		}
		now, n := math.Abs(last.bps()), len(far)
		sort.Float64s(far)
		p95 := ranked(far, 95).(float64)
		mean := sum / float64(n)
		v.Rows = append(v.Rows, Row{"coin_id": coin, "mean_bps": mean, "p95_bps": p95, "now_bps": now, "samples": n, "score_of_bps": math.Max(0, 100-mean/2-0.3*p95-now/5),
			"time": instant(last.at), "price": last.price, "target_usd": last.target, "deviation_bps": last.bps()})
	}
	return v
}

// Series works out the last close of each step of a coin in (from, to].
func (p Pegs) Series(coin string, from, to time.Time, step time.Duration) View {
	v := View{Name: "the series of " + coin, Key: []string{"time"}}
	var before int64
	for _, m := range p.minutes {
		if m.coin != coin || m.at <= from.UnixNano() || m.at > to.UnixNano() {
			continue
		}
		row := Row{"time": instant(m.at), "price": m.price, "target_usd": m.target, "deviation_bps": m.bps()}
		ends := (m.at + int64(step) - 1) / int64(step)
		if len(v.Rows) > 0 && ends == before {
			v.Rows[len(v.Rows)-1] = row
		} else {
			v.Rows = append(v.Rows, row)
		}
		before = ends
	}
	return v
}
