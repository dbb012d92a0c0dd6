package charts

import (
	"context"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/schemas"
)

const (
	// maxCoins bounds the charts of one answer.
	maxCoins = 50
	// atOnce bounds how many of them are read at one time, so that one request does not hold the
	// store's connections.
	atOnce = 4
)

// ListBody answers GET /api/v1/charts.
type ListBody struct {
	Data ListData `json:"data"`
	Meta ListMeta `json:"meta"`
}

// ListData holds several charts.
type ListData struct {
	Timeframe string           `json:"timeframe"`
	Charts    map[string]Chart `json:"charts" doc:"Charts by coin id"`
}

// ListMeta describes the answer.
type ListMeta struct {
	query.Meta
	Missing []Missing `json:"missing,omitempty" doc:"Requested names without a result"`
}

// Missing is one coin without a chart.
type Missing struct {
	Coin   string `json:"coin" doc:"As in the request"`
	Reason string `json:"reason" enum:"unknown" doc:"unknown: no coin has this name"`
}

func (u *Unit) several() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/charts", ID: "listCharts", Tag: "charts",
		Summary:     "Price history of several coins",
		Description: "Candles as in /charts/{coinId}, by coin id, for at most 50 coins. A coin that none of our venues traded in the period has an empty chart; a name that no coin has is in meta.missing.",
		Params: []query.Param{
			{Name: "coins", Kind: query.List, Required: true, MaxItems: maxCoins, Example: "bitcoin,ethereum", Doc: "Ids or symbols of coins, case-insensitive, resolved as in /charts/{coinId}."},
			timeframeParam, asOfParam, query.KnowledgeParam},
		Body: ListBody{}, Class: limits.Charts, Handle: u.getSeveral,
	}
}

func (u *Unit) getSeveral(ctx context.Context, r *query.Request) (query.Answer, error) {
	frame := named(r.Text("timeframe"))
	body := ListBody{Data: ListData{Timeframe: frame.name, Charts: map[string]Chart{}}}
	var coins []schemas.Coin
	seen := map[string]bool{}
	simulated := false
	for _, name := range r.List("coins") {
		coin, ok := u.find(name)
		switch {
		case !ok:
			body.Meta.Missing = append(body.Meta.Missing, Missing{strings.ToValidUTF8(name, "�"), "unknown"})
		case !seen[coin.ID]:
			seen[coin.ID] = true
			coins = append(coins, coin)
			simulated = simulated || u.simulated(coin)
		}
	}
	charts := make([]*made, len(coins))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, coin := range coins {
		g.Go(func() (err error) {
			charts[i], err = u.asked(ctx, r, coin, frame, formatOHLC)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return query.Answer{}, err
	}
	newest := int64(0)
	for _, m := range charts {
		body.Data.Charts[m.chart.CoinID] = m.chart
		newest = max(newest, m.updated)
	}
	body.Meta.Count, body.Meta.LastUpdated = len(charts), query.FormatTime(newest)
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}
