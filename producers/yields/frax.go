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

// frax reads what holders of sfrxETH earn: an APR in percent. The address and the field are those that DefiLlama reads
// (src/adaptors/frax-ether of github.com/DefiLlama/yield-server), which takes the number for percent as well.
func frax() poll.Source {
	return poll.Source{
		Slug: "frax", Name: "Frax", Version: 1, Aliases: []string{"frax-ether"},
		URL:         "https://api.frax.finance",
		License:     "public interface of the protocol; no licence of the values is stated",
		Terms:       "https://docs.frax.finance/terms",
		Attribution: "Source: Frax",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apr",
			Evidence: producers.Guessed(yieldServer("frax-ether")).And(balancer("mainnet")),
			Interval: time.Hour, Requests: poll.Fixed("/v2/frxeth/summary/latest")}},
		Moves:    0,                    // rewards come in cycles of a week, may be unchanged for any time
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeFrax,
	}
}

func decodeFrax(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		APR producers.Num `json:"sfrxethApr"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if response.APR == "" {
		return producers.Unreadable("no sfrxethApr in it; it says %.200s", answer.ErrorText(answer.Keys(body)))
	}
	out.Rate(&eventsv1.Rate{
		// Rewards are added to the vault in cycles of a week: https://docs.frax.finance/frax-ether/frxeth-and-sfrxeth.
		Project: "frax-ether", Chain: "Ethereum", Pool: "sfrxeth", Symbol: "ETH", Name: "sfrxETH", Category: schemas.RateStaking,
		Raw: string(response.APR), RawUnit: "apr_percent", Compounding: "weekly", Term: "flexible", CoinId: "ethereum",
	})
	return nil
}
