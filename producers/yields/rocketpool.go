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

// rocketpool reads what holders of rETH earn: an APR in percent, by which the exchange rate of rETH grew lately. The address
// and the field are those that DefiLlama reads (src/adaptors/rocket-pool of github.com/DefiLlama/yield-server), which takes
// the number for percent as well.
func rocketpool() poll.Source {
	return poll.Source{
		Slug: "rocketpool", Name: "Rocket Pool", Version: 1, Aliases: []string{"rocket-pool"},
		URL:         "https://api.rocketpool.net",
		License:     "public interface of the protocol; no licence of the values is stated",
		Terms:       "https://rocketpool.net/files/terms-of-service.pdf",
		Attribution: "Source: Rocket Pool",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apr",
			Evidence: producers.Guessed(yieldServer("rocket-pool")).And(
				"https://github.com/balancer/balancer-sdk/blob/develop/balancer-js/src/modules/data/token-yields/tokens/rocketpool.ts").But(
				"Balancer's server asks for /mainnet/reth/apr now, whose field has the same name and unit"),
			Interval: time.Hour, Requests: poll.Fixed("/api/apr")}},
		Moves:    24 * time.Hour,       // balances are reported about once a day
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeRocketPool,
	}
}

func decodeRocketPool(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		APR producers.Num `json:"yearlyAPR"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if response.APR == "" {
		return producers.Unreadable("no yearlyAPR in it; it says %.200s", answer.ErrorText(answer.Keys(body)))
	}
	out.Rate(&eventsv1.Rate{
		// The exchange rate of rETH is set about once a day, and what was earned stays in it.
		Project: "rocket-pool", Chain: "Ethereum", Pool: "reth", Symbol: "ETH", Name: "rETH", Category: schemas.RateStaking,
		Raw: string(response.APR), RawUnit: "apr_percent", Compounding: "daily", Term: "flexible", CoinId: "ethereum",
	})
	return nil
}
