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

// lido reads what staking ether with Lido earns: an APR in percent that Lido works out of each rebase of stETH, once a day.
// Addresses and the formula are on https://docs.lido.fi/integrations/api/, the fields in the Swagger description that it
// links to.
func lido() poll.Source {
	return poll.Source{
		Slug: "lido", Name: "Lido", Version: 1,
		URL:         "https://eth-api.lido.fi",
		License:     "public interface for integrations; no licence of the values is stated",
		Terms:       "https://lido.fi/terms-of-use",
		Attribution: "Source: Lido",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apr",
			Evidence: producers.Documented("https://docs.lido.fi/integrations/api/").And(
				balancer("mainnet"), github("moonwell-fi/moonwell-sdk", "main", "src/actions/core/markets/common.ts")),
			Interval: time.Hour, Requests: poll.Fixed("/v1/protocol/steth/apr/last")}},
		Past: &poll.Past{
			Evidence: producers.Documented("https://docs.lido.fi/integrations/api/").AfterSearching(
				"steth/apr/sma, data.aprs; clients of a known repository read smaApr alone"),
			Series: func([]*eventsv1.ReferenceRecord) []poll.Series {
				return []poll.Series{{ID: "steth", Symbol: "stETH", Coin: "ethereum", Category: schemas.RateStaking}}
			},
			Path:     func(poll.Series, time.Time, time.Time) string { return "/v1/protocol/steth/apr/sma" },
			Interval: 24 * time.Hour, Back: 7 * 24 * time.Hour, Settle: time.Hour,
		},
		Moves:    24 * time.Hour,       // one rebase a day
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeLido,
	}
}

// lidoAPR is a value of a rebase: stETH grows by itself each day, so its holders compound daily.
type lidoAPR struct {
	TimeUnix producers.Num `json:"timeUnix"`
	APR      producers.Num `json:"apr"`
}

func decodeLido(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Data *struct {
			lidoAPR
			// Past are those of the last days, in the answer to /v1/protocol/steth/apr/sma.
			Past []lidoAPR `json:"aprs"`
		} `json:"data"`
		Meta struct {
			Address string `json:"address"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if response.Data == nil || response.Data.APR == "" && len(response.Data.Past) == 0 {
		return producers.Unreadable("no data.apr in it; it says %.200s", answer.ErrorText(answer.Keys(body)))
	}
	rate, err := response.Data.rate(response.Meta.Address)
	if err != nil {
		return err
	}
	out.Rate(rate)
	for i, past := range response.Data.Past {
		rate, err := past.rate(response.Meta.Address)
		if err == nil {
			rate.Past = true
			out.Rate(rate)
		}
		answer.Refuse(out, err, "day %d", i)
	}
	return nil
}

func (l lidoAPR) rate(address string) (*eventsv1.Rate, error) {
	var f answer.Fields
	rate := &eventsv1.Rate{
		Project: "lido", Chain: "Ethereum", Pool: "steth", Symbol: "ETH", Name: "stETH", Category: schemas.RateStaking,
		Raw: string(l.APR), RawUnit: "apr_percent", Compounding: "daily", Term: "flexible", CoinId: "ethereum", Payout: "daily",
		EventTime: f.Known("timeUnix", string(l.TimeUnix), producers.Unix(l.TimeUnix, time.Second)),
	}
	if address != "" {
		rate.Tokens = []string{address}
	}
	return rate, f.Err
}
