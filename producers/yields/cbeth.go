package yields

import (
	"encoding/json"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// cbeth reads what holders of cbETH earn, Coinbase's wrapped staked ether: an APY as a fraction. The endpoint is described on
// https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/wrapped-assets/get-wrapped-asset-details, whose sample says
// 0.0384; public clients multiply it with 100 for percent. It may be asked for once a second.
func cbeth() poll.Source {
	return poll.Source{
		Slug: "coinbase-cbeth", Name: "Coinbase cbETH", Version: 1, Aliases: []string{"cbeth", "coinbase-wrapped-staked-eth"},
		URL:         "https://api.exchange.coinbase.com",
		License:     "under Coinbase's terms of market data",
		Terms:       "https://www.coinbase.com/legal/market_data",
		Attribution: "Source: Coinbase",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apy",
			Evidence: producers.Documented("https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/wrapped-assets/get-wrapped-asset-details").And(
				balancer("mainnet"), github("moonwell-fi/moonwell-sdk", "main", "src/actions/core/markets/common.ts")),
			Interval: time.Hour, Requests: poll.Fixed("/wrapped-assets/CBETH")}},
		Moves:    24 * time.Hour, // rewards of staking are reckoned by days
		Requests: 1, Per: time.Second,
		MaxBody: 1 << 20,
		Decode:  decodeCBETH,
	}
}

func decodeCBETH(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		APY producers.Num `json:"apy"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if response.APY == "" {
		return producers.Unreadable("no apy in it; it says %.200s", answer.Keys(body)["message"])
	}
	out.Rate(&eventsv1.Rate{
		Project: "coinbase-wrapped-staked-eth", Chain: "Ethereum", Pool: "cbeth", Symbol: "ETH", Name: "cbETH", Category: schemas.RateStaking,
		Raw: string(response.APY), RawUnit: "apy_fraction", Term: "flexible", CoinId: "ethereum",
	})
	return nil
}
