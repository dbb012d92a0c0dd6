package history_test

import (
	"fmt"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/read"
)

// The past of the market is a sum over the coins that were reported, says how many and how much that is, and leaves out hours in
// which a coin that counts is missing: the sum would fall by what was not reported.
func TestThePastOfTheMarketIsThatOfItsLargestCoins(t *testing.T) {
	store := newStore(t)
	const hour = int64(time.Hour)
	offset := int64(0)
	past := func(source, coin string, from int, caps ...string) logged {
		offset++
		p := &eventsv1.CoinPast{Source: source, SourceId: coin, Day: noon - 12*hour}
		for i, c := range caps {
			p.Points = append(p.Points, &eventsv1.CoinPastPoint{Time: noon + int64(from+i)*hour + int64(time.Second), MarketCap: c, Volume24H: c + "0"})
		}
		return sourceRecord(offset, p)
	}
	insert(t, store, summary(60+1, &eventsv1.Summary{TotalMarketCap: 1000}), summary(60*6, &eventsv1.Summary{TotalMarketCap: 2000}),
		past("coingecko", "bitcoin", 0, "1", "1", "1", "1", "1"), // replaced by what is reported later, point by point
		past("coingecko", "bitcoin", 1, "600"),                   // a part of the day
		past("coingecko", "bitcoin", 0, "500"), past("coingecko", "bitcoin", 2, "700", "800", "900"),
		past("coingecko", "ethereum", 0, "300", "300", "300", "", "300"),   // an hour is missing
		past("coingecko", "dogecoin", 1, "11", "11", "11", "11"),           // younger, less than one percent
		past("coingecko", "bitcoin-cash", -90, "5", "5", "5"),              // not reported any more
		past("coingecko", "tether", 0, "100", "100", "100", "100", "none")) // as it was reported last
	checkRows(t, store, fmt.Sprintf(`SELECT concatWithSeparator(' ', (toUnixTimestamp(time) - %d) / 3600, total_market_cap, total_volume_24h, round(btc_dominance, 3), round(eth_dominance, 3), coins, coverage, toUInt8(measured), origin)
		FROM default.v_global_past ORDER BY time`, noon/1e9),
		"0 900 9000 55.556 33.333 3 65 0 backfill", "1 1011 10110 59.347 29.674 4 65.55 0 backfill", "2 1111 11110 63.006 27.003 4 65.55 1 backfill")
	from := time.Unix(0, noon).UTC()
	got, err := read.From(store).GlobalPast(t.Context(), from, from.Add(2*time.Hour))
	if err != nil || len(got) != 2 || !got[0].Time.Equal(from.Add(time.Hour)) || got[1].TotalMarketCap != 1111 || got[1].Coins != 4 || *got[1].Coverage != 65.55 {
		t.Errorf("between noon and two o'clock there is %+v, %v, want the hours that end then", got, err)
	}
}
