package simulator

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// noon is a time in the middle of an hour, a minute and a lattice step.
var noon = time.Date(2026, 3, 4, 12, 34, 56, 789_000_000, time.UTC)

// standing is a clock that does not move.
type standing struct{ time.Time }

func (s standing) Now() time.Time                     { return s.Time }
func (standing) After(time.Duration) <-chan time.Time { return nil }

func open(t testing.TB, seed int64, venues ...Venue) *Simulator {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Seed, cfg.Clock, cfg.Venues = seed, standing{noon}, venues
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.listener.Close() })
	return s
}

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
			same.State(noon.Add(-time.Hour)) // whatever was asked before
			same.Candles(noon.Add(-9*time.Hour), noon, noon, time.Hour)
			got, want := fmt.Sprint(same.State(noon), same.Trades(noon, 20)), fmt.Sprint(m.State(noon), m.Trades(noon, 20))
			if got != want {
				t.Fatalf("%s %s: got %s, want %s", x.venue.Slug, m.Symbol, got, want)
			}
			if o := other.exchanges[i].Market(m.Symbol); o != nil && fmt.Sprint(o.State(noon)) != fmt.Sprint(m.State(noon)) {
				differs = true
			}
		}
	}
	if !differs {
		t.Error("another seed tells the same market")
	}
}

func TestTradesAreNumberedWithoutHolesInTheOrderOfTime(t *testing.T) {
	for _, x := range open(t, 1).exchanges {
		m := x.markets[0]
		var last Trade
		// Asked for piece by piece, as a feed is.
		for at := noon; at.Before(noon.Add(10 * time.Minute)); at = at.Add(700 * time.Millisecond) {
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
			if n := m.trades.before(at.UnixNano()); n != last.ID+1 {
				t.Fatalf("%s: %d trades before %s, and the last one seen is %d", m.Symbol, n, at, last.ID)
			}
		}
	}
}

// High, low and volume of an interval are those of its parts, at every level that history is served in.
func TestCandlesAgreeWithTheirParts(t *testing.T) {
	s := open(t, 3, coinbase())
	for _, symbol := range []string{"BTC-USD", "SHIB-USD", "ETH-BTC", "ADA-EUR", "USDT-USD"} {
		m := s.exchanges[0].Market(symbol)
		if m == nil {
			t.Fatalf("no market %s", symbol)
		}
		for _, level := range []struct{ whole, part time.Duration }{{24 * time.Hour, time.Hour}, {time.Hour, time.Minute}} {
			from := noon.Truncate(24 * time.Hour).Add(-48 * time.Hour)
			for _, whole := range m.Candles(from, from.Add(2*level.whole), noon, level.whole) {
				start := time.Unix(0, whole.Start)
				parts := m.Candles(start, start.Add(level.whole), noon, level.part)
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
				exact := m.quote.id == "USD" && m.base.parent == nil
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
	minute := noon.Truncate(time.Minute)
	for range 30 {
		c := m.Candles(minute, minute.Add(time.Minute), noon.Add(time.Hour), time.Minute)[0]
		spread := c.Close.Float() * (m.halfSpread + 0.0005) // and what the market moves in the venue's lag
		end := minute.Add(time.Minute)
		volume := 0.0
		for _, trade := range m.Trades(end, int(time.Minute)/int(m.trades.period)) {
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
	at := noon.UnixNano()
	dollars := func(m *Market) float64 { return m.mid(at) * m.quote.at(at) }
	compared := 0
	first := map[*asset]float64{}
	for _, x := range s.exchanges {
		if x.venue.Slug == s.cfg.Outlier {
			continue
		}
		for _, m := range x.markets {
			p := dollars(m)
			if math.IsNaN(p) || p <= 0 {
				t.Fatalf("%s %s costs %g", x.venue.Slug, m.Symbol, p)
			}
			if was, ok := first[m.base]; ok {
				compared++
				if math.Abs(p/was-1) > 0.003 {
					t.Errorf("%s %s costs %g USD, elsewhere %g", x.venue.Slug, m.Symbol, p, was)
				}
			} else {
				first[m.base] = p
			}
		}
	}
	if compared < 500 || len(first) < 200 {
		t.Errorf("%d coins in %d further markets, want hundreds", len(first), compared)
	}
}

// Bitcoin and another large coin move together, as they do.
func TestMovesAreCorrelated(t *testing.T) {
	w := newWorld(99)
	for _, at := range []struct {
		name string
		step int64
	}{{"hours", hour}, {"minutes", minute}} {
		var xy, xx, yy float64
		from := noon.UnixNano() / day * day
		for i := range int64(500) {
			move := func(id string) float64 {
				a := w.coins[id]
				return math.Log(a.at(from+(i+1)*at.step) / a.at(from+i*at.step))
			}
			x, y := move("bitcoin"), move("ethereum")
			xy, xx, yy = xy+x*y, xx+x*x, yy+y*y
		}
		if r := xy / math.Sqrt(xx*yy); r < 0.4 || r > 0.99 {
			t.Errorf("correlation over %s is %.2f", at.name, r)
		}
	}
}

func TestStablecoinsStayNearTheirPeg(t *testing.T) {
	w := newWorld(4)
	moved := false
	for id, a := range w.coins {
		if !a.stable || a.parent == nil {
			continue
		}
		for i := range int64(200) {
			at := noon.UnixNano() - i*7*hour
			peg := a.at(at) / a.parent.at(at)
			if peg < 0.98 || peg > 1.02 {
				t.Errorf("%s is at %g of its peg", id, peg)
			}
			moved = moved || peg != 1
		}
	}
	if !moved {
		t.Error("nothing wobbles")
	}
}

func TestDecimalSpellings(t *testing.T) {
	for _, test := range []struct {
		d                          Decimal
		all, short, padded, number string
	}{
		{Decimal{1000, 4}, "0.1000", "0.1", "0.10000000", "0.1"},
		{Decimal{5, 8}, "0.00000005", "0.00000005", "0.00000005", "0.00000005"},
		{Decimal{740, 0}, "740", "740", "740.00000000", "740.0"},
		{Decimal{74000, 2}, "740.00", "740", "740.00000000", "740.0"},
		{Decimal{-17, 5}, "-0.00017", "-0.00017", "-0.00017000", "-0.00017"},
		{Decimal{0, 2}, "0.00", "0", "0.00000000", "0.0"},
	} {
		if got := test.d.String(); got != test.all {
			t.Errorf("%v: got %s, want %s", test.d, got, test.all)
		}
		if got := test.d.Short(); got != test.short {
			t.Errorf("%v: got %s, want %s", test.d, got, test.short)
		}
		if got := test.d.Padded(8); got != test.padded {
			t.Errorf("%v: got %s, want %s", test.d, got, test.padded)
		}
		if got := string(test.d.AppendNumber(nil)); got != test.number {
			t.Errorf("%v: got %s, want %s", test.d, got, test.number)
		}
	}
}
