package simulator

import (
	"net/http"
	"strconv"
	"time"
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
	// The first hour that is told, and the first with what lenders earn.
	okxSince     = 1_639_440_000 * second // 2021-12-14
	okxLentSince = 1_772_150_400 * second // 2026-02-27
)

func (o okxSavings) coins(now int64, currency string) []*coin {
	var list []*coin
	for _, c := range o.catalogue.lends(okxCoins, now) {
		if currency == "" || currency == c.symbol {
			list = append(list, c)
		}
	}
	return list
}

func (o okxSavings) summary(w http.ResponseWriter, req *http.Request) {
	now := o.Now().UnixNano()
	rows := []map[string]string{}
	for _, c := range o.coins(now, req.URL.Query().Get("ccy")) {
		cost, last := c.borrowed(o.world, "okx"), floorDiv(now, hour)*hour
		mean := 0.0
		for n := range int64(24) {
			mean += cost.at(last-n*hour) / 24
		}
		rows = append(rows, map[string]string{
			"ccy": c.symbol, "avgAmt": "", "avgAmtUsd": "", "avgRate": plain(mean, 4),
			"preRate": plain(cost.at(last), 4), "estRate": plain(cost.at(last+hour), 4),
		})
	}
	okxSays(w, rows)
}

// history tells hours backwards; without a currency those of all, the hours that are begun whole.
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
	for at := floorDiv(bound("after", now+1)-1, hour) * hour; len(coins) > 0 && at >= since && len(rows) < limit; at -= hour {
		for _, c := range coins {
			cost := c.borrowed(o.world, "okx").at(at)
			row := map[string]string{"ccy": c.symbol, "amt": "", "rate": plain(cost, 4), "lendingRate": "", "ts": strconv.FormatInt(at/1e6, 10)}
			if at >= okxLentSince {
				row["lendingRate"] = plain(cost*c.lentShare(o.world, "okx"), 4)
			}
			rows = append(rows, row)
		}
	}
	okxSays(w, rows)
}

func okxSays(w http.ResponseWriter, rows []map[string]string) {
	respond(w, http.StatusOK, map[string]any{"code": "0", "msg": "", "data": rows})
}
