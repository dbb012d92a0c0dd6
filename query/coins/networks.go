package coins

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/marketlog/marketlog/query"
)

// NetworksBody answers GET /api/v1/coins/{coinId}/networks.
type NetworksBody struct {
	Data Networks `json:"data"`
}

// Networks are where a coin is issued.
type Networks struct {
	CoinID   string    `json:"coinId" example:"tether"`
	Networks []Network `json:"networks" doc:"Contract address by platform; empty for the native coin of a chain"`
	Count    int       `json:"count"`
}

// Network is one platform.
type Network struct {
	Platform string `json:"platform" example:"ethereum" doc:"As the source spells it"`
	Address  string `json:"address" doc:"Contract address of the coin on the platform"`
}

func (u *Unit) networks() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/{coinId}/networks", ID: "listCoinNetworks", Tag: "coins",
		Summary:     "Platforms a coin is issued on, with contract addresses",
		Description: "As listed by the source that describes the coin, sorted by platform. The list is also empty if no source names a platform.",
		Params:      []query.Param{coinParam, asOfParam}, Body: NetworksBody{}, NotFound: true, Hot: true, Handle: u.getNetworks,
	}
}

func (u *Unit) getNetworks(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, coin, err := u.findIn(ctx, r, r.Text("coinId"))
	if err != nil {
		return query.Answer{}, err
	}
	return u.answer(ctx, ix, bodyKey{endpoint: "networks", a: coin.ID}, func() any {
		body := Networks{CoinID: coin.ID, Networks: []Network{}, Count: len(coin.Platforms)}
		for _, p := range coin.Platforms {
			body.Networks = append(body.Networks, Network{p.Name, p.Address})
		}
		slices.SortFunc(body.Networks, func(a, b Network) int {
			return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Address, b.Address))
		})
		return NetworksBody{body}
	})
}
