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

// jito reads what holders of JitoSOL earn: APYs as fractions, one a day of the last week, of which the newest is emitted. Jito
// publishes the server that answers, https://github.com/jito-foundation/kobe, whose README says how an APY is worked out: what the
// last epoch brought, compounded over a year. Within a week there are too few epochs for the mean that it makes of ten. Fields
// and order are in api/src/schemas/stake_pool_stats.rs.
func jito() poll.Source {
	return poll.Source{
		Slug: "jito", Name: "Jito", Version: 2, Aliases: []string{"jito-liquid-staking"},
		URL:         "https://kobe.mainnet.jito.network",
		License:     "interface behind the public page; no licence of the values is stated",
		Terms:       "https://www.jito.network/terms-of-service/",
		Attribution: "Source: Jito",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "apy",
			Evidence: producers.Documented(github("jito-foundation/kobe", "master", "README.md")).And(
				balancer("arbitrum"), github("drift-labs/drift-common", "master", "common-ts/src/utils/superstake.ts")).But(
				"one of the clients reads the oldest of the week, which its order has first, not the newest"),
			Interval: time.Hour, Requests: poll.Fixed("/api/v1/stake_pool_stats")}},
		Moves:    48 * time.Hour,       // an epoch of Solana, about two days
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 1 << 20,
		Decode:  decodeJito,
	}
}

func decodeJito(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Days []struct {
			APY  producers.Num `json:"data"`
			Date string        `json:"date"`
		} `json:"apy"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	var f answer.Fields
	var newest *eventsv1.Rate
	for _, day := range response.Days {
		at := f.Time("date", day.Date)
		if day.APY == "" || newest != nil && at < newest.EventTime {
			continue
		}
		newest = &eventsv1.Rate{
			Project: "jito-liquid-staking", Chain: "Solana", Pool: "jitosol", Symbol: "SOL", Name: "JitoSOL", Category: schemas.RateStaking,
			Raw: string(day.APY), RawUnit: "apy_fraction", Term: "flexible", CoinId: "solana", EventTime: at,
		}
	}
	switch {
	case f.Err != nil:
		return f.Err
	case newest == nil: // also what it answers, with another status, when it fails
		return producers.Unreadable("no apy in it; it says %.200s", answer.ErrorText(answer.Keys(body)))
	}
	out.Rate(newest)
	return nil
}
