package sources

import (
	"strconv"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// BenchmarkMarkets asks what a page of the 250 largest coins costs the simulated CoinGecko, a minute after the last one:
// when nothing of it is known yet, and all 17,000 coins of the real one are ranked.
func BenchmarkMarkets_250Coins(b *testing.B) {
	for _, coins := range []int{1000, 17_000} {
		b.Run(strconv.Itoa(coins), func(b *testing.B) {
			now := simulatortest.Noon
			s := openWith(1, Config{Clock: simulatortest.Settable{Time: &now}, Coins: coins})
			const page = geckoMarkets + "&per_page=250&price_change_percentage=1h,24h,7d,14d,30d,200d,1y"
			answerTo(b, s, "coingecko", page) // finds the extremes of all time, once
			size := 0
			for b.Loop() {
				now = now.Add(time.Minute)
				size += answerTo(b, s, "coingecko", page).Body.Len()
			}
			b.SetBytes(int64(size / b.N))
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/page")
		})
	}
}
