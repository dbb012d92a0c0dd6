package venues

import (
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// BenchmarkPump asks what one second of the feed costs, everything subscribed to.
func BenchmarkPump(b *testing.B) {
	for _, rate := range []struct {
		name      string
		perSecond float64
	}{{"Default", 1500}, {"50kPerSecond", 50_000}} {
		b.Run(rate.name, func(b *testing.B) {
			s := openWith(1, Config{Clock: simulatortest.Fixed(simulatortest.Noon), Rate: rate.perSecond, Outlier: outlier})
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
			frames, at := 0, simulatortest.Noon
			for b.Loop() {
				at = at.Add(time.Second)
				for i, x := range s.exchanges {
					x.pump(at)
					frames += len(clients[i].receivedSince())
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
				if n := len(m.Candles(simulatortest.Noon.Add(-time.Duration(h.n)*h.interval), simulatortest.Noon, simulatortest.Noon, h.interval)); n != h.n {
					b.Fatalf("%d candles", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*h.n), "ns/candle")
		})
	}
}
