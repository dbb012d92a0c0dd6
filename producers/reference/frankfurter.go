package reference

import (
	"encoding/json"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
)

// frankfurter reads the blend that Frankfurter makes of the daily rates of some dozens of central banks, with the banks
// whose rates are in it: version 2, as described on https://frankfurter.dev and in
// https://github.com/lineofflight/frankfurter/blob/main/lib/public/v2/openapi.json.
func frankfurter() poll.Source {
	const rates = "/v2/rates?base=USD&expand=providers"
	return poll.Source{
		Slug: "frankfurter", Name: "Frankfurter", Version: 1,
		URL: "https://api.frankfurter.dev",
		// Its author on the blended rates: https://github.com/lineofflight/frankfurter/discussions/774.
		License: "free, also commercially; the blend is its own, the rates in it are their central banks'",
		Terms:   "https://frankfurter.dev",
		Kinds:   []string{poll.KindFiat},
		History: func(k poll.Known) []string {
			from := k.Now.AddDate(0, 0, -90)
			if k.Newest.After(from) {
				from = k.Newest
			}
			return []string{rates + "&from=" + from.UTC().Format(time.DateOnly)}
		},
		Feeds: []poll.Feed{{Name: "latest",
			Evidence: producers.Documented("https://github.com/lineofflight/frankfurter/blob/main/lib/public/v2/openapi.json").And(
				github("florianv/exchanger", "master", "src/Service/Frankfurter.php"),
				github("danielbuitragoh/frankfurter-ts", "HEAD", "src/tipos.ts")).But(
				"providers, which are there with expand alone: the types of pontjs/frankfurter-v2 have them alike, but are made of the same description"),
			Interval: time.Hour, Requests: poll.Fixed(rates)}},
		// There are no quotas; no limit is documented.
		Moves:    48 * time.Hour, // central banks rest for up to four days
		Requests: 4, Per: time.Minute,
		MaxBody: 32 << 20, // 90 days of 160 currencies, each with a dozen banks
		Decode:  decodeFrankfurter,
	}
}

func decodeFrankfurter(_ string, body []byte, out *poll.Readings) error {
	if keys := answer.Keys(body); keys["message"] != nil {
		return producers.Unreadable("it says %.200s", keys["message"])
	}
	rows, err := answer.Rows(body)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return producers.Unreadable("no rates in it")
	}
	answer.EachRow(rows, out, frankfurterRate)
	return nil
}

// frankfurterRate leaves out the providers that were. A currency that is bound to another has none: its rate is that
// of its peg.
func frankfurterRate(row json.RawMessage, out *poll.Readings) error {
	var r struct {
		Date      string        `json:"date"`
		Base      string        `json:"base"`
		Quote     string        `json:"quote"`
		Rate      producers.Num `json:"rate"`
		Providers []struct {
			Key      string `json:"key"`
			Excluded bool   `json:"excluded"`
		} `json:"providers"`
	}
	var f answer.Fields
	if !f.Parse(row, &r) {
		return f.Err
	}
	if r.Base == r.Quote && r.Base != "" {
		return nil // one for one
	}
	var providers []string
	for _, p := range r.Providers {
		if !p.Excluded && p.Key != "" && len(p.Key) <= 32 && len(providers) < 256 {
			providers = append(providers, p.Key)
		}
	}
	out.Fixing(poll.Fixing{Base: r.Base, Quote: r.Quote, Rate: string(r.Rate), Date: r.Date, Providers: providers})
	return nil
}
