package yields

import (
	"encoding/json"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// wbeth reads what holders of WBETH earn, Binance's wrapped beacon ether: an APR as a fraction. Binance documents no such
// interface; the address and the field are those that DefiLlama reads (src/adaptors/binance-staked-eth of
// github.com/DefiLlama/yield-server), which multiplies the number with 100 for percent.
func wbeth() poll.Source {
	return poll.Source{
		Slug: "binance-wbeth", Name: "Binance WBETH", Version: 1, Aliases: []string{"wbeth", "binance-staked-eth"},
		URL:         "https://www.binance.com",
		License:     "interface behind the public page; no licence of the values is stated",
		Terms:       "https://www.binance.com/en/terms",
		Attribution: "Source: Binance",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{
			Name: "apr",
			Evidence: producers.Guessed(yieldServer("binance-staked-eth")).And(
				"https://github.com/pancakeswap/pancake-frontend/blob/develop/apps/web/src/views/LiquidStaking/hooks/useLiquidStakingApr.tsx"),
			Interval: time.Hour, Requests: poll.Fixed("/bapi/earn/v1/public/pos/cftoken/project/getPurchasableProject"),
		}},
		Moves:    24 * time.Hour,       // the rate of a day
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeWBETH,
	}
}

func decodeWBETH(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Code    producers.Num `json:"code"`
		Message string        `json:"message"`
		Data    *struct {
			APR producers.Num `json:"annualInterestRate"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if response.Data == nil || response.Data.APR == "" {
		return producers.Unreadable("no data.annualInterestRate in it; it says %.20s %.200s", string(response.Code), response.Message)
	}
	out.Rate(&eventsv1.Rate{
		// The exchange rate of WBETH is set once a day, and what was earned stays in it.
		Project: "binance-staked-eth", Chain: "Ethereum", Pool: "wbeth", Symbol: "ETH", Name: "WBETH", Category: schemas.RateStaking,
		Raw: string(response.Data.APR), RawUnit: "apr_fraction", Compounding: "daily", Term: "flexible", CoinId: "ethereum",
	})
	return nil
}
