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

// marinade reads what holders of mSOL earn: an APY as a fraction, by which the price of mSOL in SOL grew within the last
// seven days. The address and the field are those that DefiLlama reads (src/adaptors/marinade-liquid-staking of
// github.com/DefiLlama/yield-server), which takes the number for a fraction as well.
func marinade() poll.Source {
	return poll.Source{
		Slug: "marinade", Name: "Marinade", Version: 1, Aliases: []string{"marinade-liquid-staking"},
		URL:         "https://api.marinade.finance",
		License:     "public interface of the protocol; no licence of the values is stated",
		Terms:       "https://marinade.finance/terms-of-use",
		Attribution: "Source: Marinade",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apy",
			Evidence: producers.Guessed(yieldServer("marinade-liquid-staking")).AfterSearching(
				"msol/apy/7d, MarinadeApyResponse, marinade apy in code and documentation").But(
				"code of a repository that is not known agrees: clients of /msol/apy/7d and /msol/apy/1y take value for a fraction, " +
					"and the server makes it of two prices of mSOL, (end/start)^(year/period)-1"),
			Interval: time.Hour, Requests: poll.Fixed("/msol/apy/7d")}},
		Moves:    48 * time.Hour,       // an epoch of Solana, about two days
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeMarinade,
	}
}

func decodeMarinade(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		APY producers.Num `json:"value"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if response.APY == "" {
		return producers.Unreadable("no value in it; it says %.200s", answer.ErrorText(answer.Keys(body)))
	}
	out.Rate(&eventsv1.Rate{
		Project: "marinade-liquid-staking", Chain: "Solana", Pool: "msol", Symbol: "SOL", Name: "mSOL", Category: schemas.RateStaking,
		Raw: string(response.APY), RawUnit: "apy_fraction", Term: "flexible", CoinId: "solana",
	})
	return nil
}
