package simulator

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
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
	Price      *nullable                   `json:"price,omitzero"`
	Delisted   bool                        `json:"delisted,omitempty"`
}

type llamaCirculating struct {
	Now      map[string]float64 `json:"current"`
	DayAgo   map[string]float64 `json:"circulatingPrevDay"`
	WeekAgo  map[string]float64 `json:"circulatingPrevWeek"`
	MonthAgo map[string]float64 `json:"circulatingPrevMonth"`
}

// stablecoins tells all of them, the most of it in circulation first. Prices come if they are asked for.
func (l *llama) stablecoins(w http.ResponseWriter, r *http.Request) {
	now, priced := l.Now().UnixNano(), flag(r, "includePrices", false)
	rows := []llamaStablecoin{}
	for _, c := range l.catalogue.coins {
		if c.pegged() == "" || !c.listed(now) {
			continue
		}
		rows = append(rows, l.stablecoin(c, now, priced))
	}
	slices.SortStableFunc(rows, func(a, b llamaStablecoin) int { return cmp.Compare(b.About[b.Peg], a.About[a.Peg]) })
	respond(w, http.StatusOK, map[string]any{"peggedAssets": rows})
}

// mechanisms of the best-known ones; others draw theirs.
var mechanisms = map[string]string{
	"tether": "fiat-backed", "usd-coin": "fiat-backed", "dai": "crypto-backed", "usds": "crypto-backed", "ethena-usde": "crypto-backed",
	"frax": "algorithmic", "usdd": "crypto-backed", "first-digital-usd": "fiat-backed", "paypal-usd": "fiat-backed", "euro-coin": "fiat-backed",
}

func (l *llama) stablecoin(c *coin, now int64, priced bool) llamaStablecoin {
	peg := "pegged" + c.peg
	if c.peg == "CNH" { // which has no code of its own
		peg = "peggedCNY"
	}
	amount := func(t int64, share float64) map[string]float64 {
		return map[string]float64{peg: c.circulatingAt(t) * share}
	}
	row := llamaStablecoin{
		ID: strconv.Itoa(c.place + 1), Name: c.name, Symbol: c.symbol, CoinID: &c.id, Peg: peg, Source: "coingecko",
		Mechanism: cmp.Or(mechanisms[c.id], [...]string{"fiat-backed", "crypto-backed", "algorithmic"}[c.seed.at(70)%3]),
		About:     amount(now, 1), DayAgo: amount(now-day, 1), WeekAgo: amount(now-7*day, 1), MonthAgo: amount(now-30*day, 1),
		OnChains: map[string]llamaCirculating{}, Chains: []string{},
	}
	if c.dead {
		row.Deprecated, row.Delisted, row.Mechanism = true, true, "algorithmic"
	}
	rest := 1.0
	for i, p := range c.platforms {
		share := rest * (0.5 + 0.3*c.seed.unit(int64(71+i)))
		if i == len(c.platforms)-1 {
			share = rest
		}
		rest -= share
		on := slices.IndexFunc(chains, func(of chain) bool { return of.id == p.chain })
		row.OnChains[chains[on].name] = llamaCirculating{amount(now, share), amount(now-day, share), amount(now-7*day, share), amount(now-30*day, share)}
		row.Chains = append(row.Chains, chains[on].name)
	}
	slices.SortStableFunc(row.Chains, func(a, b string) int {
		return cmp.Compare(row.OnChains[b].Now[peg], row.OnChains[a].Now[peg])
	})
	if priced {
		price := nullable(math.NaN())
		if c.seed.at(80)%23 > 0 || c.rank < 100 { // of a few it knows none
			price = nullable(c.at(floorDiv(now, 5*minute) * 5 * minute))
		}
		row.Price = &price
	}
	return row
}
