package ws

import (
	"context"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// noPast is a store that has come nowhere yet.
type noPast struct{}

func (noPast) PegPrices(context.Context, int64, int64, []string, int, func(int32, string, int64, float64)) error {
	return nil
}

// pegChannels are those of stablecoins, with no past but what memory holds.
func pegChannels(coins *schemas.CoinTable) []query.Channel {
	channels := stablecoins.New(views.NewPriceCache(coins), views.NewCatalog(coins), nil, stablecoins.Served{}).Channels(noPast{}, nil, "prices")
	for i := range channels {
		channels[i].Past = nil
	}
	return channels
}
