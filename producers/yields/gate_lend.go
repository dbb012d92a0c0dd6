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

// gateLend reads what lenders earn in Gate's Lend & Earn: estimated yearly rates as fractions, settled each hour, as described
// on https://www.gate.com/docs/developers/apiv4/en/#currency-estimated-annualized-interest-rate. The list of currencies
// beside it has no rate that is paid, only the bounds of what a lender may ask for, so it is not read.
func gateLend() poll.Source {
	return poll.Source{
		Slug: "gate-lend", Name: "Gate Lend & Earn", Version: 1,
		URL:         "https://api.gateio.ws",
		License:     "under Gate's user agreement",
		Terms:       "https://www.gate.com/legal/user-agreement",
		Attribution: "Source: Gate",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "lent",
			Evidence: producers.Documented("https://github.com/gateio/gateapi-python/blob/master/docs/EarnUniApi.md").And(
				github("lambda-yu/stake-watch", "HEAD", "src/stake_watch/collectors/cex/gate.py")).AfterSearching(
				"earn/uni/rate, est_rate, and the types of gateio-api, GateIo.Net and gocryptotrader").But(
				"Gate's own pages say \"unconverted percentage\" and \"not percentage\" of est_rate; the client, and a test in code of " +
					"a repository that is not known, take it for a fraction a year"),
			Interval: 15 * time.Minute, Requests: poll.Fixed("/api/v4/earn/uni/rate")}},
		Moves:    time.Hour, // settled each hour
		Requests: 200, Per: 10 * time.Second,
		MaxBody: 8 << 20,
		Decode:  decodeGateLend,
	}
}

func decodeGateLend(_ string, body []byte, out *poll.Readings) error {
	rows, err := answer.Rows(body)
	if err != nil {
		return err
	}
	if !answer.SomeRow(rows, "currency", "est_rate") {
		return producers.Unreadable("no rates in it")
	}
	answer.EachRow(rows, out, func(row json.RawMessage, out *poll.Readings) error {
		var lent struct {
			Currency string        `json:"currency"`
			Rate     producers.Num `json:"est_rate"`
		}
		var f answer.Fields
		if f.Parse(row, &lent) {
			out.Rate(&eventsv1.Rate{
				// Whether interest is lent again is for the lender to choose.
				Project: "gate", Pool: lent.Currency, Symbol: lent.Currency, Category: schemas.RateLending,
				Raw: string(lent.Rate), RawUnit: "apr_fraction", Compounding: "none", Term: "flexible", Payout: "hourly",
			})
		}
		return f.Err
	})
	return nil
}
