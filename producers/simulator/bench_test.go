package simulator

import (
	"strconv"
	"testing"
	"time"
)

// BenchmarkPump asks what one second of the feed costs, everything subscribed to.
func BenchmarkPump(b *testing.B) {
	for _, rate := range []struct {
		name      string
		perSecond float64
	}{{"Default", 1500}, {"50kPerSecond", 50_000}} {
		b.Run(rate.name, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Rate, cfg.Clock = rate.perSecond, standing{noon}
			s, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer s.listener.Close()
			var clients []client
			for _, x := range s.exchanges {
				c := x.pretend(b)
				x.mu.Lock()
				for name := range x.venue.Channels {
					for _, m := range x.markets {
						c.topics[topic{name, m}] = true
						x.subscribe(c.Conn, name, m)
					}
				}
				x.mu.Unlock()
				clients = append(clients, c)
			}
			frames, at := 0, noon
			for b.Loop() {
				at = at.Add(time.Second)
				for i, x := range s.exchanges {
					x.pump(at)
					frames += len(clients[i].heardSince())
				}
			}
			b.ReportMetric(float64(frames)/b.Elapsed().Seconds(), "frames/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
			b.ReportAllocs()
		})
	}
}

// BenchmarkHistory asks what back-filling one market costs the simulator: days of five years, hours of
// 30 days, minutes of one day.
func BenchmarkHistory(b *testing.B) {
	s := open(b, 1)
	m := s.exchanges[0].Markets()[0]
	for _, h := range []struct {
		name     string
		interval time.Duration
		n        int
	}{{"1825Days", 24 * time.Hour, 1825}, {"720Hours", time.Hour, 720}, {"1440Minutes", time.Minute, 1440}} {
		b.Run(h.name, func(b *testing.B) {
			for b.Loop() {
				if n := len(m.Candles(noon.Add(-time.Duration(h.n)*h.interval), noon, noon, h.interval)); n != h.n {
					b.Fatalf("%d candles", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*h.n), "ns/candle")
		})
	}
}

// BenchmarkMarkets asks what a page of the 250 largest coins costs CoinGecko's twin, a minute after the last one:
// when nothing of it is known yet, and all 17,000 coins of the real one are ranked.
func BenchmarkMarkets_250Coins(b *testing.B) {
	for _, coins := range []int{1000, 17_000} {
		b.Run(strconv.Itoa(coins), func(b *testing.B) {
			now := noon
			cfg := DefaultConfig()
			cfg.Clock, cfg.Venues, cfg.Coins = walking{&now}, []Venue{kraken()}, coins
			s, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer s.listener.Close()
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
