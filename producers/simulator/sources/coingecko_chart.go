package sources

import (
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// geckoPast are the days that a chart may look back over without a paid plan.
const geckoPast = 365

// chart is the past of a coin: in steps of five minutes of one day, in hours up to 90 days, else in days; and now.
func (g *gecko) chart(w http.ResponseWriter, r *http.Request) {
	now := g.Now()
	c := g.catalogue.ByID[r.PathValue("id")]
	days, err := strconv.Atoi(r.URL.Query().Get("days"))
	switch {
	case c == nil || !c.Listed(now.UnixNano()):
		g.refuse(w, http.StatusNotFound, "coin not found")
		return
	case r.URL.Query().Get("vs_currency") != "usd":
		g.refuse(w, http.StatusUnprocessableEntity, "invalid vs_currency")
		return
	case err != nil || days < 1:
		g.refuse(w, http.StatusUnprocessableEntity, "Missing parameter days")
		return
	case days > geckoPast:
		provider.Respond(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"status": map[string]any{
			"timestamp": now.UTC().Format(geckoTime), "error_code": 10012,
			"error_message": "Your request exceeds the allowed time range. Public API users are limited to querying historical data within the past 365 days.",
		}}})
		return
	}
	step := market.Hour
	if days == 1 {
		step = 5 * market.Minute
	} else if days > 90 {
		step = market.Day
	}
	prices, caps, volumes := [][2]float64{}, [][2]float64{}, [][2]float64{}
	point := func(t int64, price float64) {
		at := float64(t / int64(time.Millisecond))
		prices = append(prices, [2]float64{at, price})
		caps = append(caps, [2]float64{at, price * c.CirculatingAt(t)})
		volumes = append(volumes, [2]float64{at, c.VolumeOf(t, price)})
	}
	b := g.reporter.Snapshot(now)
	newest, factor := b.At[c.Place], g.reporter.Factor(c.Place)
	if b.Prices[c.Place] > 0 { // else it has never been traded
		for t := market.FloorDiv(newest-int64(days)*market.Day, step)*step + step; t < newest; t += step {
			switch {
			case t < c.Born:
			case step == 5*market.Minute:
				point(t, c.Past(t)*factor)
			default:
				point(t, c.Opening(market.FloorDiv(t, market.Hour))*factor)
			}
		}
		point(newest, b.Prices[c.Place])
	}
	provider.Respond(w, http.StatusOK, map[string]any{"prices": prices, "market_caps": caps, "total_volumes": volumes})
}
