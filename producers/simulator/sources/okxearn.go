package sources

import (
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// okxEarn serves what is lent and borrowed in OKX's Simple Earn Flexible, as described on https://www.okx.com/docs-v5/en/ under
// "Financial product, Simple earn flexible".
func okxEarn() Source {
	return Source{
		Slug: "okx-earn", Requests: 6, Per: time.Second,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			o := okxSavings{r}
			return map[string]http.HandlerFunc{
				"GET /api/v5/finance/savings/lending-rate-summary": o.summary,
				"GET /api/v5/finance/savings/lending-rate-history": o.history,
			}
		},
	}
}

type okxSavings struct{ *Reference }

const (
	// okxCoins are lent.
	okxCoins = 80
	// The first hour that is served, and the first with what lenders earn.
	okxSince     = 1_639_440_000 * market.Second // 2021-12-14
	okxLentSince = 1_772_150_400 * market.Second // 2026-02-27
)

func (o okxSavings) coins(now int64, currency string) []*market.Coin {
	var list []*market.Coin
	for _, c := range o.catalogue.Lent(okxCoins, now) {
		if currency == "" || currency == c.Symbol {
			list = append(list, c)
		}
	}
	return list
}

func (o okxSavings) summary(w http.ResponseWriter, req *http.Request) {
	now := o.Now().UnixNano()
	rows := []map[string]string{}
	for _, c := range o.coins(now, req.URL.Query().Get("ccy")) {
		cost, last := c.Borrowed(o.world, "okx"), market.FloorDiv(now, market.Hour)*market.Hour
		mean := 0.0
		for n := range int64(24) {
			mean += cost.At(last-n*market.Hour) / 24
		}
		rows = append(rows, map[string]string{
			"ccy": c.Symbol, "avgAmt": "", "avgAmtUsd": "", "avgRate": plain(mean, 4),
			"preRate": plain(cost.At(last), 4), "estRate": plain(cost.At(last+market.Hour), 4),
		})
	}
	okxRows(w, rows)
}

// history serves hours backwards; without a currency those of all, the hours that are begun whole.
func (o okxSavings) history(w http.ResponseWriter, req *http.Request) {
	q, now := req.URL.Query(), o.Now().UnixNano()
	bound := func(name string, none int64) int64 {
		if n, err := strconv.ParseInt(q.Get(name), 10, 64); err == nil && n >= 0 && n < now/1e6 {
			return n * 1e6
		}
		return none
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		limit = 100
	}
	rows := []map[string]string{}
	coins := o.coins(now, q.Get("ccy"))
	since := max(okxSince, bound("before", 0)+1)
	for at := market.FloorDiv(bound("after", now+1)-1, market.Hour) * market.Hour; len(coins) > 0 && at >= since && len(rows) < limit; at -= market.Hour {
		for _, c := range coins {
			cost := c.Borrowed(o.world, "okx").At(at)
			row := map[string]string{"ccy": c.Symbol, "amt": "", "rate": plain(cost, 4), "lendingRate": "", "ts": strconv.FormatInt(at/1e6, 10)}
			if at >= okxLentSince {
				row["lendingRate"] = plain(cost*c.LentShare(o.world, "okx"), 4)
			}
			rows = append(rows, row)
		}
	}
	okxRows(w, rows)
}

func okxRows(w http.ResponseWriter, rows []map[string]string) {
	provider.Respond(w, http.StatusOK, map[string]any{"code": "0", "msg": "", "data": rows})
}
