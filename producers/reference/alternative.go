package reference

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// alternative reads the Crypto Fear & Greed Index of alternative.me: one whole number a day, from 0 to 100. Format and
// rules are below the index on https://alternative.me/crypto/fear-and-greed-index/.
func alternative() poll.Source {
	return poll.Source{
		Slug: "alternative", Name: "alternative.me", Version: 1, Aliases: []string{"alternative.me", "fng"},
		URL:         "https://api.alternative.me",
		License:     "free, also commercially, with the source named beside the value",
		Terms:       "https://alternative.me/crypto/fear-and-greed-index/",
		Attribution: "Source: alternative.me, Crypto Fear & Greed Index",
		Kinds:       []string{poll.KindFearGreed},
		History: func(k poll.Known) []string {
			if k.Newest.Before(k.Now.AddDate(0, 0, -25)) {
				return []string{alternativeWhole}
			}
			return []string{"/fng/?limit=30&format=json"}
		},
		// The day's value comes soon after midnight UTC. The day before is read with it: it may have been corrected.
		Feeds: []poll.Feed{{Name: "index",
			Evidence: producers.Recorded("fng/fng-2022-09-12.json"),
			Interval: time.Hour, Requests: poll.Fixed("/fng/?limit=2&format=json")}},
		Past: dailyFile("index", "", alternativeWhole, time.Date(2018, 2, 1, 0, 0, 0, 0, time.UTC),
			producers.Recorded("fng/fng-2022-09-12.json")),
		Moves:    24 * time.Hour,       // one index a day
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 4 << 20,
		Decode:  decodeAlternative,
	}
}

// alternativeWhole is all since 2018.
const alternativeWhole = "/fng/?limit=0&format=json"

func decodeAlternative(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Data     []json.RawMessage `json:"data"`
		Metadata struct {
			Error *string `json:"error"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(body, &response)
	switch {
	case err != nil:
		return producers.Unreadable("parsing: %w", err)
	case response.Metadata.Error != nil:
		return producers.Unreadable("it says %.200q", *response.Metadata.Error)
	case len(response.Data) == 0:
		return producers.Unreadable("no index in it")
	}
	answer.EachRow(response.Data, out, alternativeDay)
	return nil
}

// alternativeDay reads a day, whose timestamp is its beginning. The newest one counts the seconds to the next, which
// is due when the day ends.
func alternativeDay(row json.RawMessage, out *poll.Readings) error {
	var day struct {
		Value          producers.Num `json:"value"`
		Classification string        `json:"value_classification"`
		Timestamp      producers.Num `json:"timestamp"`
		UntilUpdate    producers.Num `json:"time_until_update"`
	}
	var f answer.Fields
	if !f.Parse(row, &day) {
		return f.Err
	}
	if day.Value == "" || day.Timestamp == "" {
		return producers.Unreadable("value %.20q of %.20q", string(day.Value), string(day.Timestamp))
	}
	index := &eventsv1.FearGreed{
		Value: f.Count("value", day.Value), Classification: day.Classification,
		EventTime: f.Known("timestamp", string(day.Timestamp), producers.Unix(day.Timestamp, time.Second)),
	}
	if seconds, err := strconv.Atoi(string(day.UntilUpdate)); err == nil && seconds > 0 {
		index.NextUpdate = time.Unix(0, index.EventTime).Add(24 * time.Hour).UnixNano()
	}
	if f.Err == nil {
		out.FearGreed(index)
	}
	return f.Err
}
