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

// swell reads what holders of swETH earn: an APR in percent, which is the whole answer. The address is the one that DefiLlama
// reads (src/adaptors/swell-liquid-staking of github.com/DefiLlama/yield-server), which takes the number for the percent of
// the last seven days.
func swell() poll.Source {
	return poll.Source{
		Slug: "swell", Name: "Swell", Version: 1, Aliases: []string{"swell-liquid-staking"},
		URL:         "https://v3-public.svc.swellnetwork.io",
		License:     "public interface of the protocol; no licence of the values is stated",
		Terms:       "https://www.swellnetwork.io/terms-of-use",
		Attribution: "Source: Swell",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apr",
			Evidence: producers.Guessed(yieldServer("swell-liquid-staking")).And(
				github("balancer/yield-tokens", "HEAD", "src/index.ts")).But(
				"the host: clients ask v3, v3-lst and v3-public of svc.swellnetwork.io, the second of these v3; all take the bare number for percent"),
			Interval: time.Hour, Requests: poll.Fixed("/api/tokens/sweth/apr")}},
		Moves:    24 * time.Hour,       // rewards of staking are reckoned by days
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeSwell,
	}
}

func decodeSwell(_ string, body []byte, out *poll.Readings) error {
	var apr json.Number // an object, and a text that is not a number, are refused here
	if err := json.Unmarshal(body, &apr); err != nil || apr == "" {
		return producers.Unreadable("no number; it says %.200s", answer.ErrorText(answer.Keys(body)))
	}
	out.Rate(&eventsv1.Rate{
		// The exchange rate of swETH is set once a day, and what was earned stays in it.
		Project: "swell-liquid-staking", Chain: "Ethereum", Pool: "sweth", Symbol: "ETH", Name: "swETH", Category: schemas.RateStaking,
		Raw: apr.String(), RawUnit: "apr_percent", Compounding: "daily", Term: "flexible", CoinId: "ethereum",
	})
	return nil
}
