package simulator

import (
	"net/http"
	"strconv"
	"time"
)

// geckoPast are the days that a chart may look back over without a paid plan.
const geckoPast = 365

// chart is the past of a coin: in steps of five minutes of one day, in hours up to 90 days, else in days; and now.
func (g *gecko) chart(w http.ResponseWriter, r *http.Request) {
	now := g.Now()
	c := g.catalogue.byID[r.PathValue("id")]
	days, err := strconv.Atoi(r.URL.Query().Get("days"))
	switch {
	case c == nil || !c.listed(now.UnixNano()):
		g.refuse(w, http.StatusNotFound, "coin not found")
		return
	case r.URL.Query().Get("vs_currency") != "usd":
		g.refuse(w, http.StatusUnprocessableEntity, "invalid vs_currency")
		return
	case err != nil || days < 1:
		g.refuse(w, http.StatusUnprocessableEntity, "Missing parameter days")
		return
	case days > geckoPast:
		respond(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"status": map[string]any{
			"timestamp": now.UTC().Format(geckoTime), "error_code": 10012,
			"error_message": "Your request exceeds the allowed time range. Public API users are limited to querying historical data within the past 365 days.",
		}}})
		return
	}
	step := hour
	if days == 1 {
		step = 5 * minute
	} else if days > 90 {
		step = day
	}
	prices, caps, volumes := [][2]float64{}, [][2]float64{}, [][2]float64{}
	tell := func(t int64, price float64) {
		at := float64(t / int64(time.Millisecond))
		prices = append(prices, [2]float64{at, price})
		caps = append(caps, [2]float64{at, price * c.circulatingAt(t)})
		volumes = append(volumes, [2]float64{at, c.volumeOf(t, price)})
	}
	b := g.teller.board(now)
	newest, factor := b.at[c.place], g.teller.factor(c.place)
	if b.prices[c.place] > 0 { // else it has never been traded
		for t := floorDiv(newest-int64(days)*day, step)*step + step; t < newest; t += step {
			switch {
			case t < c.born:
			case step == 5*minute:
				tell(t, c.past(t)*factor)
			default:
				tell(t, c.opening(floorDiv(t, hour))*factor)
			}
		}
		tell(newest, b.prices[c.place])
	}
	respond(w, http.StatusOK, map[string]any{"prices": prices, "market_caps": caps, "total_volumes": volumes})
}
