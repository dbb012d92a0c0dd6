package sources

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// kamino serves the markets of Kamino Lend and the reserves of each, as described on
// https://kamino.com/build/api-reference/borrow.
func kamino() Source {
	return Source{
		Slug: "kamino", Requests: 600, Per: time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			k := &kaminoReserves{Reference: r}
			for _, p := range r.defi().pools() {
				if p.project.name == "Kamino Lend" {
					k.pools = append(k.pools, p)
				}
			}
			return map[string]http.HandlerFunc{"GET /v2/kamino-market": k.markets, "GET /kamino-market/{market}/reserves/metrics": k.reserves}
		},
	}
}

// kaminoMarkets are its markets: their keys and names.
var kaminoMarkets = []struct{ key, name string }{
	{"7u3HeHxYDLhnCoErrtycNokbQYbWGzLs6JSDqGAv5PfF", "Main Market"},
	{"DxXdAyU3kCjnyggvHmY5nAwg5cRbbmdyX3npfDMjjMek", "JLP Market"},
	{"ByYiZxp8QrdN9qbdtaAiePN8AAr3qvTPppNJDpf5DVJ5", "Altcoins Market"},
}

type kaminoReserves struct {
	*Reference
	pools []*pool
}

func (k *kaminoReserves) markets(w http.ResponseWriter, _ *http.Request) {
	rows := []map[string]any{}
	for i, m := range kaminoMarkets {
		rows = append(rows, map[string]any{
			"name": m.name, "isPrimary": i == 0, "description": m.name + ". Its numbers are simulated.",
			"lendingMarket": m.key,
			"lookupTable":   market.Contract(k.world.Seed.Of("lookup "+m.key), "solana"), "isCurated": false,
		})
	}
	provider.Respond(w, http.StatusOK, rows)
}

func (k *kaminoReserves) reserves(w http.ResponseWriter, req *http.Request) {
	now, key := k.Now().UnixNano(), req.PathValue("market")
	i := slices.IndexFunc(kaminoMarkets, func(m struct{ key, name string }) bool { return m.key == key })
	if i < 0 {
		provider.Respond(w, http.StatusNotFound, map[string]any{"error": "Market not found"})
		return
	}
	rows := []map[string]string{}
	for _, p := range k.pools {
		if p.meta != kaminoMarkets[i].name {
			continue
		}
		s, held := p.at(now), p.coins[0]
		price := held.coin.At(now)
		long := func(x float64) string { return strconv.FormatFloat(x, 'f', 30, 64) }
		rows = append(rows, map[string]string{
			"reserve": market.Contract(p.seed.Of("reserve"), "solana"), "liquidityToken": held.symbol,
			"liquidityTokenMint": p.contract(held),
			"maxLtv":             plain(p.ltv, 2), "borrowApy": plain(s.costs, 16), "supplyApy": plain(s.earns, 16),
			"totalSupply": long(s.supplied / price),
			"totalBorrow": long(s.owed / price), "totalBorrowUsd": long(s.owed), "totalSupplyUsd": long(s.supplied),
		})
	}
	provider.Respond(w, http.StatusOK, rows)
}
