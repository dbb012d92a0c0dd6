package sources

import (
	"net/http"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// gateLend serves what lenders earn in Gate's Lend & Earn and what they may ask for, as described on
// https://www.gate.com/docs/developers/apiv4/en/#earnuni.
func gateLend() Source {
	return Source{
		Slug: "gate-lend", Requests: 200, Per: 10 * time.Second,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			each := func(row func(c *market.Coin, now int64) map[string]string) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					now, rows := r.Now().UnixNano(), []map[string]string{}
					for _, c := range r.catalogue.Lent(gateCoins, now) {
						rows = append(rows, row(c, now))
					}
					provider.Respond(w, http.StatusOK, rows)
				}
			}
			return map[string]http.HandlerFunc{
				"GET /api/v4/earn/uni/rate": each(func(c *market.Coin, now int64) map[string]string {
					earned := c.Borrowed(r.world, "gate").At(market.FloorDiv(now, market.Hour)*market.Hour) * c.LentShare(r.world, "gate")
					if c.Rank > 150 && c.Seed.At(72)%5 == 0 { // nobody borrows it
						return map[string]string{"currency": c.Symbol, "est_rate": "0"}
					}
					return map[string]string{"currency": c.Symbol, "est_rate": plain(earned, 4)}
				}),
				"GET /api/v4/earn/uni/currencies": each(func(c *market.Coin, _ int64) map[string]string {
					return map[string]string{
						"currency": c.Symbol, "min_lend_amount": plain(10/c.Level(), 1), "max_lend_amount": "200000000", "max_rate": "0.00057", "min_rate": "0.000001",
					}
				}),
			}
		},
	}
}

// gateCoins are lent.
const gateCoins = 250
