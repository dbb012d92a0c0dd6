package sources

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

type llamaStablecoin struct {
	ID         string                      `json:"id"`
	Name       string                      `json:"name"`
	Symbol     string                      `json:"symbol"`
	CoinID     *string                     `json:"gecko_id"`
	Peg        string                      `json:"pegType"`
	Source     string                      `json:"priceSource"`
	Mechanism  string                      `json:"pegMechanism"`
	About      map[string]float64          `json:"circulating"`
	DayAgo     map[string]float64          `json:"circulatingPrevDay"`
	WeekAgo    map[string]float64          `json:"circulatingPrevWeek"`
	MonthAgo   map[string]float64          `json:"circulatingPrevMonth"`
	OnChains   map[string]llamaCirculating `json:"chainCirculating"`
	Chains     []string                    `json:"chains"`
	Deprecated bool                        `json:"deprecated,omitempty"`
	Price      *provider.Nullable          `json:"price,omitzero"`
	Delisted   bool                        `json:"delisted,omitempty"`
}

type llamaCirculating struct {
	Now      map[string]float64 `json:"current"`
	DayAgo   map[string]float64 `json:"circulatingPrevDay"`
	WeekAgo  map[string]float64 `json:"circulatingPrevWeek"`
	MonthAgo map[string]float64 `json:"circulatingPrevMonth"`
}

// stablecoins serves all of them, the most of it in circulation first. Prices come if they are asked for.
func (l *llama) stablecoins(w http.ResponseWriter, r *http.Request) {
	now, priced := l.Now().UnixNano(), flag(r, "includePrices", false)
	rows := []llamaStablecoin{}
	for _, c := range l.catalogue.Coins {
		if c.Pegged() == "" || !c.Listed(now) {
			continue
		}
		rows = append(rows, l.stablecoin(c, now, priced))
	}
	slices.SortStableFunc(rows, func(a, b llamaStablecoin) int { return cmp.Compare(b.About[b.Peg], a.About[a.Peg]) })
	provider.Respond(w, http.StatusOK, map[string]any{"peggedAssets": rows})
}

// mechanisms of the best-known ones; others draw theirs.
var mechanisms = map[string]string{
	"tether": "fiat-backed", "usd-coin": "fiat-backed", "dai": "crypto-backed", "usds": "crypto-backed", "ethena-usde": "crypto-backed",
	"frax": "algorithmic", "usdd": "crypto-backed", "first-digital-usd": "fiat-backed", "paypal-usd": "fiat-backed", "euro-coin": "fiat-backed",
}

func (l *llama) stablecoin(c *market.Coin, now int64, priced bool) llamaStablecoin {
	peg := "pegged" + c.Peg
	if c.Peg == "CNH" { // which has no code of its own
		peg = "peggedCNY"
	}
	amount := func(t int64, share float64) map[string]float64 {
		return map[string]float64{peg: c.CirculatingAt(t) * share}
	}
	row := llamaStablecoin{
		ID: strconv.Itoa(c.Place + 1), Name: c.Name, Symbol: c.Symbol, CoinID: &c.ID, Peg: peg, Source: "coingecko",
		Mechanism: cmp.Or(mechanisms[c.ID], [...]string{"fiat-backed", "crypto-backed", "algorithmic"}[c.Seed.At(70)%3]),
		About:     amount(now, 1), DayAgo: amount(now-market.Day, 1), WeekAgo: amount(now-7*market.Day, 1), MonthAgo: amount(now-30*market.Day, 1),
		OnChains: map[string]llamaCirculating{}, Chains: []string{},
	}
	if c.Dead {
		row.Deprecated, row.Delisted, row.Mechanism = true, true, "algorithmic"
	}
	rest := 1.0
	for i, p := range c.Platforms {
		share := rest * (0.5 + 0.3*c.Seed.Unit(int64(71+i)))
		if i == len(c.Platforms)-1 {
			share = rest
		}
		rest -= share
		on := slices.IndexFunc(market.Chains, func(of market.Chain) bool { return of.ID == p.Chain })
		row.OnChains[market.Chains[on].Name] = llamaCirculating{amount(now, share), amount(now-market.Day, share), amount(now-7*market.Day, share), amount(now-30*market.Day, share)}
		row.Chains = append(row.Chains, market.Chains[on].Name)
	}
	slices.SortStableFunc(row.Chains, func(a, b string) int {
		return cmp.Compare(row.OnChains[b].Now[peg], row.OnChains[a].Now[peg])
	})
	if priced {
		price := provider.Nullable(math.NaN())
		if c.Seed.At(80)%23 > 0 || c.Rank < 100 { // of a few it knows none
			price = provider.Nullable(c.At(market.FloorDiv(now, 5*market.Minute) * 5 * market.Minute))
		}
		row.Price = &price
	}
	return row
}
