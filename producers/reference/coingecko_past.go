package reference

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// coinGeckoPastCoins are the coins whose past is read, the largest: one request each, which within a start all take
	// ten minutes of the budget, and then half a percent of it.
	coinGeckoPastCoins = 50
	// coinGeckoPastDays are what global statistics look back over. Up to 90 days come in hours.
	coinGeckoPastDays = 30
	// coinGeckoPastFew is the least that comes in hours: one day comes in steps of five minutes.
	coinGeckoPastFew = 2
	// coinGeckoPastEvery is how often what a process was away for is filled.
	coinGeckoPastEvery = 24 * time.Hour
)

// coinGeckoPasts are the charts of the largest coins, as described on
// https://docs.coingecko.com/v3.0.1/reference/coins-id-market-chart: all of the span of a coin whose past was not read
// lately, then each day what is new. The past of the whole market is documented for paid plans alone.
func coinGeckoPasts(k poll.Known) []string {
	if k.Read[coinGeckoMarkets(1, 1)[0]].IsZero() {
		return nil // ranks are not known: the first by name would be asked for
	}
	var paths []string
	for _, id := range k.Ranked[:min(len(k.Ranked), coinGeckoPastCoins)] {
		all, few := coinGeckoChart(id, coinGeckoPastDays), coinGeckoChart(id, coinGeckoPastFew)
		last := k.Read[all]
		if k.Read[few].After(last) {
			last = k.Read[few]
		}
		switch age := k.Now.Sub(last); {
		case last.IsZero() || age >= coinGeckoPastFew*24*time.Hour-time.Hour: // the hour under way is reported in part
			paths = append(paths, all)
		case age >= coinGeckoPastEvery:
			paths = append(paths, few)
		}
	}
	return paths
}

func coinGeckoChart(id string, days int) string {
	return coinGeckoCoins + url.PathEscape(id) + "/market_chart?vs_currency=usd&days=" + strconv.Itoa(days)
}

// coinGeckoPast reads a chart: points of [milliseconds, value], the same times in each list. 0 and null are not known.
// The answer does not say which coin it is of.
func coinGeckoPast(id string, body []byte, out *poll.Readings) error {
	var chart struct {
		Caps    [][]producers.Num `json:"market_caps"`
		Volumes [][]producers.Num `json:"total_volumes"`
	}
	if err := json.Unmarshal(body, &chart); err != nil {
		return producers.Unreadable("parsing a chart: %w", err)
	}
	if chart.Caps == nil || chart.Volumes == nil {
		return producers.Unreadable("no market_caps and total_volumes in it")
	}
	volumes := map[producers.Num]producers.Num{}
	for _, point := range chart.Volumes {
		if len(point) == 2 {
			volumes[point[0]] = point[1]
		}
	}
	var day *eventsv1.CoinPast
	end := func() {
		if day != nil {
			out.CoinPast(day)
		}
	}
	for i, point := range chart.Caps {
		if len(point) != 2 {
			answer.Refuse(out, producers.Unreadable("%d numbers, want a time and a value", len(point)), "point %d", i)
			continue
		}
		at := producers.Unix(point[0], time.Millisecond)
		if at == producers.BadTime || at == 0 {
			answer.Refuse(out, producers.Unreadable("%.40q is no time", string(point[0])), "point %d", i)
			continue
		}
		if point[1] == "" || point[1] == "0" || point[1] == "0.0" {
			continue
		}
		if begins := time.Unix(0, at).UTC().Truncate(24 * time.Hour).UnixNano(); day == nil || day.Day != begins {
			end()
			day = &eventsv1.CoinPast{SourceId: id, Day: begins}
		}
		day.Points = append(day.Points, &eventsv1.CoinPastPoint{Time: at, MarketCap: string(point[1]), Volume24H: string(volumes[point[0]])})
	}
	end()
	return nil
}
