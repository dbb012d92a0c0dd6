package reference

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
)

// bankOfCanadaQuotes are the currencies that the Bank of Canada publishes a rate of each working day.
const bankOfCanadaQuotes = "AUD BRL CHF CNY EUR GBP HKD IDR INR JPY KRW MXN NOK NZD PEN RUB SAR SEK SGD TRY TWD USD ZAR"

// bankofcanada reads what a Canadian dollar costs by the Bank of Canada, by its Valet interface as described on
// https://www.bankofcanada.ca/valet/docs: series FXCADxxx, each observation by its day.
func bankofcanada() poll.Source {
	var series []string
	for _, code := range strings.Fields(bankOfCanadaQuotes) {
		series = append(series, "FXCAD"+code)
	}
	rates := "/observations/" + strings.Join(series, ",") + "/json"
	return poll.Source{
		Slug: "bankofcanada", Name: "Bank of Canada", Version: 1, Aliases: []string{"boc"},
		URL:         "https://www.bankofcanada.ca/valet",
		License:     "not for commercial purposes without its permission; with the source named",
		Terms:       "https://www.bankofcanada.ca/terms/",
		Attribution: "Source: Bank of Canada",
		Off:         "its terms allow no commercial use without written permission",
		Kinds:       []string{poll.KindFiat},
		History: func(k poll.Known) []string {
			from := k.Now.AddDate(0, 0, -90)
			if k.Newest.After(from) {
				from = k.Newest
			}
			return []string{rates + "?start_date=" + from.UTC().Format(time.DateOnly)}
		},
		// It publishes once a working day, by 16:30 in Ottawa, and asks that such values be kept.
		Feeds: []poll.Feed{{Name: "latest",
			Evidence: producers.Documented("https://www.bankofcanada.ca/valet/docs").And(
				github("risktoollib/RTL", "HEAD", "R/getBoC.R"), github("lineofflight/frankfurter", "main", "lib/provider/adapters/boc.rb")).But(
				"that a series is missing on days without a value of it: both are read. The second client reads the other direction, FXUSDCAD"),
			Interval: 6 * time.Hour, Requests: poll.Fixed(rates + "?recent=1")}},
		Moves:    48 * time.Hour,
		Requests: 4, Per: time.Minute,
		MaxBody: 4 << 20,
		Decode:  decodeBankOfCanada,
	}
}

func decodeBankOfCanada(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Message      string                       `json:"message"`
		Observations []map[string]json.RawMessage `json:"observations"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	switch {
	case response.Message != "":
		return producers.Unreadable("it says %.200q", response.Message)
	case len(response.Observations) == 0:
		return producers.Unreadable("no observations in it")
	}
	for _, day := range response.Observations {
		var date string
		if json.Unmarshal(day["d"], &date) != nil {
			answer.Refuse(out, producers.Unreadable("d is no text"), "the observations of %.40s", day["d"])
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(day)) {
			code, ok := strings.CutPrefix(name, "FXCAD")
			if !ok {
				continue
			}
			var response struct {
				Value producers.Num `json:"v"`
			}
			if err := json.Unmarshal(day[name], &response); err != nil {
				answer.Refuse(out, producers.Unreadable("parsing: %w", err), "%.40q on %.40q", name, date)
				continue
			}
			out.Fixing(poll.Fixing{Base: "CAD", Quote: code, Rate: string(response.Value), Date: date})
		}
	}
	return nil
}
