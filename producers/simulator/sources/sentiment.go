package sources

import (
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// alternative serves the fear and greed index as described on https://alternative.me/crypto/fear-and-greed-index/#api.
func alternative() Source {
	return Source{
		Slug: "alternative", Requests: 60, Per: time.Minute, // 60 a minute over ten minutes
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /fng/": func(w http.ResponseWriter, req *http.Request) { r.fearAndGreed(w, req) }}
		},
	}
}

// firstSentiment is the first day of the index.
const firstSentiment = 1_517_443_200 * market.Second // 2018-02-01

type sentiment struct {
	Value  string `json:"value"`
	Class  string `json:"value_classification"`
	Time   string `json:"timestamp"`
	Update string `json:"time_until_update,omitempty"`
}

// fearAndGreed serves the newest days, the newest first; a limit of 0 is all.
func (r *Reference) fearAndGreed(w http.ResponseWriter, req *http.Request) {
	now := r.Now().UnixNano()
	limit, err := strconv.Atoi(req.URL.Query().Get("limit"))
	if err != nil || limit < 0 {
		limit = 1
	}
	days := []sentiment{}
	for at := market.FloorDiv(now, market.Day) * market.Day; at >= firstSentiment && (limit == 0 || len(days) < limit); at -= market.Day {
		value := sentimentAt(r.world, at)
		s := sentiment{Value: strconv.Itoa(value), Class: sentimentClass(value), Time: strconv.FormatInt(at/market.Second, 10)}
		if len(days) == 0 {
			s.Update = strconv.FormatInt((at+market.Day-now)/market.Second, 10)
		}
		days = append(days, s)
	}
	provider.Respond(w, http.StatusOK, map[string]any{"name": "Fear and Greed Index", "data": days, "metadata": map[string]any{"error": nil}})
}

// sentimentAt is how the market compares with its month before, from 0 to 100.
func sentimentAt(w *market.World, at int64) int {
	whole, index := w.Seed.Of("market"), at/market.Hour
	x := whole.Noise(index, market.HourOctaves)
	for week := int64(1); week <= 4; week++ {
		x -= whole.Noise(index-week*7*24, market.HourOctaves) / 4
	}
	mood := 50 + 1.1*x + 8*(whole.Unit(at/market.Day)-0.5)
	return min(max(int(mood), 4), 96)
}

func sentimentClass(value int) string {
	switch {
	case value <= 25:
		return "Extreme Fear"
	case value <= 46:
		return "Fear"
	case value <= 54:
		return "Neutral"
	case value <= 75:
		return "Greed"
	}
	return "Extreme Greed"
}
