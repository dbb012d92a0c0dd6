package venues

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// A process that starts again, and one that asks in another order, meet the same market.
func TestMarketIsAFunctionOfSeedAndTime(t *testing.T) {
	a, b, other := open(t, 7), open(t, 7), open(t, 8)
	differs := false
	for i, x := range a.exchanges {
		for j, m := range x.markets {
			if j%29 != 0 {
				continue
			}
			same := b.exchanges[i].Market(m.Symbol)
			same.State(simulatortest.Noon.Add(-time.Hour)) // whatever was asked before
			same.Candles(simulatortest.Noon.Add(-9*time.Hour), simulatortest.Noon, simulatortest.Noon, time.Hour)
			got, want := fmt.Sprint(same.State(simulatortest.Noon), same.Trades(simulatortest.Noon, 20)), fmt.Sprint(m.State(simulatortest.Noon), m.Trades(simulatortest.Noon, 20))
			if got != want {
				t.Fatalf("%s %s: got %s, want %s", x.venue.Slug, m.Symbol, got, want)
			}
			if o := other.exchanges[i].Market(m.Symbol); o != nil && fmt.Sprint(o.State(simulatortest.Noon)) != fmt.Sprint(m.State(simulatortest.Noon)) {
				differs = true
			}
		}
	}
	if !differs {
		t.Error("another seed makes the same market")
	}
}

func TestTradesAreNumberedWithoutHolesInTheOrderOfTime(t *testing.T) {
	for _, x := range open(t, 1).exchanges {
		m := x.markets[0]
		var last market.Trade
		// Asked for piece by piece, as a feed is.
		for at := simulatortest.Noon; at.Before(simulatortest.Noon.Add(10 * time.Minute)); at = at.Add(700 * time.Millisecond) {
			for _, trade := range m.Trades(at, 30) {
				if last.ID == 0 || trade.ID == last.ID+1 {
					if trade.Time < last.Time {
						t.Fatalf("%s: trade %d is at %d, before its predecessor at %d", m.Symbol, trade.ID, trade.Time, last.Time)
					}
					last = trade
				}
				if trade.Time >= at.UnixNano() {
					t.Fatalf("%s: trade %d is not before %s", m.Symbol, trade.ID, at)
				}
				if trade.Price.Units <= 0 || trade.Size.Units <= 0 {
					t.Fatalf("%s: got %+v, want a price and a size", m.Symbol, trade)
				}
			}
			events := m.EventsFrom(at)
			for !events.IsTrade() {
				events.Advance()
			}
			if next := events.Trade(); next.ID != last.ID+1 {
				t.Fatalf("%s: trade %d is the next at %s, and the last one seen is %d", m.Symbol, next.ID, at, last.ID)
			}
		}
	}
}

// High, low and volume of an interval are those of its parts, at every level that history is served in.
func TestCandlesAgreeWithTheirParts(t *testing.T) {
	s := open(t, 3, coinbase())
	for symbol, exact := range map[string]bool{"BTC-USD": true, "SHIB-USD": true, "ETH-BTC": false, "ADA-EUR": false, "USDT-USD": false} {
		m := s.exchanges[0].Market(symbol)
		if m == nil {
			t.Fatalf("no market %s", symbol)
		}
		for _, level := range []struct{ whole, part time.Duration }{{24 * time.Hour, time.Hour}, {time.Hour, time.Minute}} {
			from := simulatortest.Noon.Truncate(24 * time.Hour).Add(-48 * time.Hour)
			for _, whole := range m.Candles(from, from.Add(2*level.whole), simulatortest.Noon, level.whole) {
				start := time.Unix(0, whole.Start)
				parts := m.Candles(start, start.Add(level.whole), simulatortest.Noon, level.part)
				if len(parts) != int(level.whole/level.part) {
					t.Fatalf("%s: %d parts of %s in %s", symbol, len(parts), level.part, level.whole)
				}
				high, low, volume := int64(0), int64(math.MaxInt64), int64(0)
				for i, p := range parts {
					high, low, volume = max(high, p.High.Units), min(low, p.Low.Units), volume+p.Volume.Units
					if p.High.Units < max(p.Open.Units, p.Close.Units) || p.Low.Units > min(p.Open.Units, p.Close.Units) {
						t.Fatalf("%s: candle %+v is not one", symbol, p)
					}
					if i > 0 && p.Open != parts[i-1].Close {
						t.Fatalf("%s: opens at %s, closed at %s before", symbol, p.Open, parts[i-1].Close)
					}
				}
				if high > whole.High.Units || low < whole.Low.Units || exact && (high != whole.High.Units || low != whole.Low.Units) {
					t.Errorf("%s %s: parts span %d to %d, whole %d to %d", symbol, level.whole, low, high, whole.Low.Units, whole.High.Units)
				}
				if parts[0].Open != whole.Open || parts[len(parts)-1].Close != whole.Close {
					t.Errorf("%s %s: opens %s and closes %s, its parts %s and %s", symbol, level.whole, whole.Open, whole.Close, parts[0].Open, parts[len(parts)-1].Close)
				}
				if off := math.Abs(float64(volume)/float64(whole.Volume.Units) - 1); off > 1e-3 {
					t.Errorf("%s %s: volume of the parts is off by %g", symbol, level.whole, off)
				}
			}
		}
	}
}

// Candles are of the price between bid and ask, trades are at bid or ask.
func TestTradesLieWithinTheirMinute(t *testing.T) {
	m := open(t, 5, coinbase()).exchanges[0].Market("BTC-USD")
	minute := simulatortest.Noon.Truncate(time.Minute)
	for range 30 {
		c := m.Candles(minute, minute.Add(time.Minute), simulatortest.Noon.Add(time.Hour), time.Minute)[0]
		end := minute.Add(time.Minute)
		s := m.State(end)
		halfSpread := (s.Ask.Float() - s.Bid.Float()) / 2
		spread := halfSpread + c.Close.Float()*0.0005 // and what the market moves in the venue's lag
		volume := 0.0
		for _, trade := range m.Trades(end, int(m.TradesPerDay()/(24*60))) {
			volume += trade.Size.Float()
			if trade.Time < minute.UnixNano() {
				continue
			}
			if p := trade.Price.Float(); p > c.High.Float()+spread || p < c.Low.Float()-spread {
				t.Errorf("trade at %g in a minute from %s to %s", p, c.Low, c.High)
			}
		}
		if share := volume / c.Volume.Float(); share < 0.6 || share > 1.6 {
			t.Errorf("trades of %s: %g of the candle's volume", minute, share)
		}
		minute = end
	}
}

func TestVenuesAgree(t *testing.T) {
	s := open(t, 1)
	at := simulatortest.Noon.UnixNano()
	dollars := func(m *market.Market) float64 { return m.Mid(at) * m.QuoteAsset.At(at) }
	compared := 0
	first := map[*market.Asset]float64{}
	for _, x := range s.exchanges {
		if x.venue.Slug == outlier {
			continue
		}
		for _, m := range x.markets {
			p := dollars(m)
			if math.IsNaN(p) || p <= 0 {
				t.Fatalf("%s %s costs %g", x.venue.Slug, m.Symbol, p)
			}
			if was, ok := first[m.BaseAsset]; ok {
				compared++
				if math.Abs(p/was-1) > 0.003 {
					t.Errorf("%s %s costs %g USD, elsewhere %g", x.venue.Slug, m.Symbol, p, was)
				}
			} else {
				first[m.BaseAsset] = p
			}
		}
	}
	if compared < 500 || len(first) < 200 {
		t.Errorf("%d coins in %d further markets, want hundreds", len(first), compared)
	}
}

func TestOutlierVenueIsFarOffInAFewMarketsSometimes(t *testing.T) {
	markets := 0
	for _, x := range openWith(1, Config{Clock: simulatortest.Fixed(simulatortest.Noon), Outlier: "kraken"}).exchanges {
		for _, m := range x.markets {
			off, spells := 0, 200
			for i := range int64(spells) {
				at := simulatortest.Noon.Add(time.Duration(i) * market.Spell).UnixNano()
				switch ratio := m.Mid(at) / (m.BaseAsset.At(at) / m.QuoteAsset.At(at)); { // but for what it moves in the venue's lag
				case ratio > 2:
					off++
				case ratio < 0.99 || ratio > 1.01:
					t.Fatalf("%s %s: %g of the world's price", x.venue.Slug, m.Symbol, ratio)
				}
			}
			if off == 0 {
				continue
			}
			markets++
			if x.venue.Slug != "kraken" || m.BaseAsset.Rank > market.OutlierRank {
				t.Errorf("%s %s of rank %d is off", x.venue.Slug, m.Symbol, m.BaseAsset.Rank)
			}
			if off < spells/4 || off > spells*3/4 {
				t.Errorf("%s is off in %d of %d spells, want about half", m.Symbol, off, spells)
			}
			// Its history serves the same, piece by piece and whole.
			from := simulatortest.Noon.Truncate(time.Hour).Add(-time.Hour)
			whole := m.Candles(from, from.Add(time.Hour), simulatortest.Noon, time.Hour)[0]
			parts := m.Candles(from, from.Add(time.Hour), simulatortest.Noon, time.Minute)
			high, low := whole.Low.Units, whole.High.Units
			for _, p := range parts {
				high, low = max(high, p.High.Units), min(low, p.Low.Units)
			}
			if high != whole.High.Units || low != whole.Low.Units || parts[0].Open != whole.Open || parts[59].Close != whole.Close {
				t.Errorf("%s: an hour is %+v, its minutes span %d to %d", m.Symbol, whole, low, high)
			}
		}
	}
	if markets != market.Outliers {
		t.Errorf("%d markets are off, want %d", markets, market.Outliers)
	}
}
