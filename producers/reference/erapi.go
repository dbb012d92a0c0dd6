package reference

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
)

// erapi reads the daily rates of ExchangeRate-API's open endpoint, as described on
// https://www.exchangerate-api.com/docs/free: once an hour is never too often.
func erapi() poll.Source {
	return poll.Source{
		Slug: "erapi", Name: "ExchangeRate-API", Version: 1, Aliases: []string{"er-api", "open.er-api.com"},
		URL:         "https://open.er-api.com",
		License:     "free for currency conversion, with attribution; not to be passed on",
		Terms:       "https://www.exchangerate-api.com/terms",
		Attribution: `<a href="https://www.exchangerate-api.com">Rates By Exchange Rate API</a>`,
		Off:         "its terms allow to convert with the rates, not to pass them on",
		OwnUse:      "its terms allow to convert with the rates, not to pass them on",
		Kinds:       []string{poll.KindFiat},
		Feeds: []poll.Feed{{Name: "latest",
			Evidence: producers.Recorded("er-api/latest-usd-2024-08-19.json"),
			Interval: 6 * time.Hour, Requests: poll.Fixed("/v6/latest/USD")}},
		Moves:    24 * time.Hour, // once a day
		Requests: 3, Per: time.Hour,
		MaxBody: 1 << 20,
		Decode:  decodeERAPI,
	}
}

// decodeERAPI gives the rates the day on which they were set.
func decodeERAPI(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Result  string                   `json:"result"`
		Error   string                   `json:"error-type"`
		Updated producers.Num            `json:"time_last_update_unix"`
		Base    string                   `json:"base_code"`
		Rates   map[string]producers.Num `json:"rates"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	at := producers.Unix(response.Updated, time.Second)
	switch {
	case response.Result != "success":
		return producers.Unreadable("its result is %.40q: %.80q", response.Result, response.Error)
	case at == producers.BadTime || at == 0:
		return producers.Unreadable("time_last_update_unix %.40q is no time", string(response.Updated))
	case len(response.Rates) == 0:
		return producers.Unreadable("no rates in it")
	}
	date := time.Unix(0, at).UTC().Format(time.DateOnly)
	for _, code := range slices.Sorted(maps.Keys(response.Rates)) {
		if code != response.Base { // one for one
			out.Fixing(poll.Fixing{Base: response.Base, Quote: code, Rate: string(response.Rates[code]), Date: date})
		}
	}
	return nil
}
