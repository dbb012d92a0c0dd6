package simulator

import (
	"net/http"
	"time"
)

// gateLend serves what lenders earn in Gate's Lend & Earn and what they may ask for, as described on
// https://www.gate.com/docs/developers/apiv4/en/#earnuni.
func gateLend() Source {
	return Source{
		Slug: "gate-lend", Requests: 200, Per: 10 * time.Second,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			each := func(tell func(c *coin, now int64) map[string]string) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					now, rows := r.Now().UnixNano(), []map[string]string{}
					for _, c := range r.catalogue.lends(gateCoins, now) {
						rows = append(rows, tell(c, now))
					}
					respond(w, http.StatusOK, rows)
				}
			}
			return map[string]http.HandlerFunc{
				"GET /api/v4/earn/uni/rate": each(func(c *coin, now int64) map[string]string {
					earned := c.borrowed(r.world, "gate").at(floorDiv(now, hour)*hour) * c.lentShare(r.world, "gate")
					if c.rank > 150 && c.seed.at(72)%5 == 0 { // nobody borrows it
						return map[string]string{"currency": c.symbol, "est_rate": "0"}
					}
					return map[string]string{"currency": c.symbol, "est_rate": plain(earned, 4)}
				}),
				"GET /api/v4/earn/uni/currencies": each(func(c *coin, _ int64) map[string]string {
					return map[string]string{
						"currency": c.symbol, "min_lend_amount": plain(10/c.level(), 1), "max_lend_amount": "200000000", "max_rate": "0.00057", "min_rate": "0.000001",
					}
				}),
			}
		},
	}
}

// gateCoins are lent.
const gateCoins = 250
