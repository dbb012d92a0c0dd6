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

// jito reads what holders of JitoSOL earn: an APY in percent. It is the interface behind Jito's own page; the address and
// the field are those that DefiLlama reads (src/adaptors/jito-liquid-staking of github.com/DefiLlama/yield-server), which
// takes the number for percent as well.
func jito() poll.Source {
	return poll.Source{
		Slug: "jito", Name: "Jito", Version: 1, Aliases: []string{"jito-liquid-staking"},
		URL:         "https://www.jito.network",
		License:     "interface behind the public page; no licence of the values is stated",
		Terms:       "https://www.jito.network/terms-of-service/",
		Attribution: "Source: Jito",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apy",
			Evidence: producers.Guessed("https://github.com/DefiLlama/yield-server/blob/master/src/adaptors/jito-liquid-staking/index.js").But(
				"the interface that Jito documents is another, of kobe.mainnet.jito.network"),
			Interval: time.Hour, Paths: poll.Fixed("/api/getJitoPoolStatsRecentOnly/")}},
		Moves:    48 * time.Hour,       // an epoch of Solana, about two days
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeJito,
	}
}

func decodeJito(_ string, body []byte, out *poll.Readings) error {
	var told struct {
		APY producers.Num `json:"latestApy"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if told.APY == "" {
		return producers.Unreadable("no latestApy in it; it says %.200s", answer.SaysError(answer.Keys(body)))
	}
	out.Rate(&eventsv1.Rate{
		Project: "jito-liquid-staking", Chain: "Solana", Pool: "jitosol", Symbol: "SOL", Name: "JitoSOL", Category: schemas.RateStaking,
		Raw: string(told.APY), RawUnit: "apy_percent", Term: "flexible", CoinId: "solana",
	})
	return nil
}
