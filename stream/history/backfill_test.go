package history_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
)

// past is a venue's own candle: open, high, low, close and volume.
func past(offset int64, venue, base, quote string, interval time.Duration, start int64, prices ...string) logged {
	return logged{history.Place{Topic: schemas.TopicBackfillRaw, Offset: offset}, &eventsv1.BackfillRecord{Producer: venue, Body: &eventsv1.BackfillRecord_Candle{
		Candle: &eventsv1.BackfillCandle{
			Venue: venue, Symbol: base + "-" + quote, Base: base, Quote: quote, Start: start, Interval: uint32(interval / time.Second),
			Open: prices[0], High: prices[1], Low: prices[2], Close: prices[3], Volume: prices[4], IngestTime: noon,
		}}}}
}

// fixing is a rate for one euro.
func fixing(offset int64, quote, rate string, day time.Time) logged {
	return logged{history.Place{Topic: schemas.TopicReferenceRaw, Offset: offset}, &eventsv1.ReferenceRecord{Producer: "ecb", Body: &eventsv1.ReferenceRecord_Fixing{
		Fixing: &eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: quote, Rate: rate, Date: day.Format(time.DateOnly), IngestTime: noon}}}}
}

var lengths = map[string]time.Duration{"1m": time.Minute, "1h": time.Hour, "1d": day}

// describe is a candle as a script shows it.
func describe(coin string, c schemas.Candle) string {
	return fmt.Sprintf("%s %s o=%g h=%g l=%g c=%g v=%s usd=%.9g trades=%d minutes=%d %s", coin, c.Start.Format("2006-01-02T15:04"), c.Open, c.High, c.Low, c.Close,
		c.Volume, c.VolumeUSD, c.Trades, c.Minutes, c.Origin)
}

// viewed reads what the views of analysts say of a coin.
func viewed(t testing.TB, store *history.Store, coin, interval string) []string {
	minutes := "minutes"
	if interval == "1m" {
		minutes = "1"
	}
	rows, err := store.Conn().Query(t.Context(), "SELECT start, open, high, low, close, toDecimal256(volume_exact, 18), volume_usd, trades, toUInt16("+minutes+"), toString(origin) FROM default.v_candles_"+interval+
		" WHERE coin_id = ? ORDER BY start", coin)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var c schemas.Candle
		var minutes uint16
		var origin string
		if err := rows.Scan(&c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &c.Trades, &minutes, &origin); err != nil {
			t.Fatal(err)
		}
		c.Minutes, c.Origin = int(minutes), schemas.Origin(origin)
		all = append(all, describe(coin, c))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// read reads what charts are made of.
func read(t testing.TB, store *history.Store, coin, interval string) []string {
	candles, err := store.Intervals(t.Context(), coin, lengths[interval], time.Unix(0, noon).Add(-400*day), time.Unix(0, noon).Add(3*day))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range candles {
		all = append(all, describe(coin, c))
		if want := c.Start.Add(lengths[interval] - time.Minute); c.Minutes == int(lengths[interval]/time.Minute) && !c.Newest.Equal(want) {
			t.Errorf("%s: got its newest minute %s, want %s", describe(coin, c), c.Newest, want)
		}
	}
	return all
}

// TestBackfilledCandlesReadAsTheirScripts runs every script of testdata/backfill. A line is
//
//	live <coin> <start> <minutes> <open> <high> <low> <close>: so many equal minutes with 1 traded in each
//	past <interval> <venue> <base> <quote> <start> <open> <high> <low> <close> <volume>
//	fixing <currency> <units for one euro> <day>
//	candles <interval> <coin>: what there is, by the store and by the views alike
//	left: what v_backfill counts as left out, and why
//
// The last two are followed by a line of dashes and the answer, up to an empty line.
func TestBackfilledCandlesReadAsTheirScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/backfill/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := script{T: t, store: newStore(t)}
			lines := strings.Split(string(content), "\n")
			for i := 0; i < len(lines); i++ {
				if lines[i] == "" || lines[i][0] == '#' {
					continue
				}
				got := s.run(lines[i])
				if got == nil {
					continue
				}
				question := lines[i]
				var want []string
				if lines[i+1] != "----" {
					t.Fatalf("%q: want a line of dashes below it", question)
				}
				for i += 2; i < len(lines) && lines[i] != ""; i++ {
					want = append(want, lines[i])
				}
				if diff := cmp.Diff(want, got, cmp.Transformer("text", func(l []string) string { return strings.Join(l, "\n") })); diff != "" {
					t.Errorf("%q: want(-), got(+):\n%s", question, diff)
				}
			}
		})
	}
}

type script struct {
	*testing.T
	store  *history.Store
	offset int64
}

func (s *script) run(line string) []string {
	words := strings.Fields(line)
	s.offset++
	switch words[0] {
	case "live":
		start, minutes := s.time(words[2]), s.integer(words[3])
		var records []logged
		for m := range minutes {
			records = append(records, candleAt(s.offset, &eventsv1.Candle{CoinId: words[1], Start: start + int64(m)*int64(time.Minute),
				Open: s.number(words[4]), High: s.number(words[5]), Low: s.number(words[6]), Close: s.number(words[7]), Volume: "1", VolumeUsd: s.number(words[7]), Trades: 1}))
		}
		insert(s, s.store, records...)
	case "past":
		insert(s, s.store, past(s.offset, words[2], words[3], words[4], lengths[words[1]], s.time(words[5]), words[6:]...))
	case "fixing":
		at, err := time.Parse(time.DateOnly, words[3])
		if err != nil {
			s.Fatal(err)
		}
		insert(s, s.store, fixing(s.offset, words[1], words[2], at))
	case "candles":
		got, views := read(s, s.store, words[2], words[1]), viewed(s, s.store, words[2], words[1])
		if diff := cmp.Diff(views, got); diff != "" {
			s.Errorf("%q: the view(-), the store(+):\n%s", line, diff)
		}
		return append([]string{}, got...)
	case "left":
		return append([]string{}, queryStrings(s, s.store, "SELECT concat(reason, ' ', venue, ' ', symbol, ' ', toString(count())) FROM default.v_backfill WHERE reason != '' GROUP BY reason, venue, symbol ORDER BY reason, venue, symbol")...)
	default:
		s.Fatalf("unknown line %q", line)
	}
	return nil
}

func (s *script) time(text string) int64 {
	at, err := time.Parse("2006-01-02T15:04", text)
	if err != nil {
		s.Fatal(err)
	}
	return at.UnixNano()
}

func (s *script) number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *script) integer(text string) int { return int(s.number(text)) }

// Whatever lies there, in whatever order it came, charts and views have the same candles.
func TestChartsAndViewsAgreeOnBackfilledCandles(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	bases := []string{"BTC", "ETH", "USDT", "USDC", "SOL", "DOGE"}
	coins := []string{"bitcoin", "ethereum", "tether", "usd-coin", "solana", "dogecoin"}
	quotes := []string{"USD", "USDT", "USDC", "EUR", "GBP", "BTC", "ETH", "SOL", "NOSUCH"}
	var records []logged
	offset := int64(0)
	for range 1500 {
		offset++
		length := lengths[[]string{"1m", "1m", "1h", "1d"}[r.IntN(4)]]
		span := map[time.Duration]int{time.Minute: 180, time.Hour: 5, day: 9}[length]
		start := time.Unix(0, noon).Truncate(length).Add(-time.Duration(r.IntN(span)) * length).UnixNano()
		prices := []string{}
		for range 5 {
			prices = append(prices, fmt.Sprintf("%d.%03d", 1+r.IntN(50), r.IntN(1000)))
		}
		records = append(records, past(offset, []string{"kraken", "gate", "okx", "bitstamp"}[r.IntN(4)], bases[r.IntN(len(bases))], quotes[r.IntN(len(quotes))], length, start, prices...))
	}
	for _, coin := range coins {
		for range r.IntN(150) {
			offset++
			records = append(records, candleAt(offset, minuteCandle(coin, -r.IntN(180), r)))
		}
	}
	for range 60 { // an hour that is whole
		offset++
		records = append(records, candleAt(offset, minuteCandle("tether", -120+int(offset%60), r)))
	}
	for n := range 12 {
		offset++
		records = append(records, fixing(offset, []string{"USD", "GBP"}[r.IntN(2)], fmt.Sprintf("1.%d", 1+n), time.Unix(0, noon).UTC().AddDate(0, 0, -r.IntN(12))))
	}
	store := newStore(t)
	insert(t, store, records...)
	r.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	insert(t, store, records[:len(records)/2]...)
	checkAllIntervals(t, store, coins)
	found, origins := 0, map[string]bool{}
	for _, coin := range coins {
		for interval := range lengths {
			got, views := read(t, store, coin, interval), viewed(t, store, coin, interval)
			if diff := cmp.Diff(views, got); diff != "" {
				t.Errorf("%s %s: the view(-), the store(+):\n%s", coin, interval, diff)
			}
			for _, line := range got {
				found++
				origins[line[strings.LastIndex(line, " ")+1:]] = true
			}
		}
	}
	if found < 100 || len(origins) < 2 {
		t.Errorf("got %d candles of origins %v, want many of several", found, slices.Sorted(maps.Keys(origins)))
	}
}

// checkAllIntervals compares what is read of all coins at once, and the extremes of what is back-filled, with each coin's own
// candles.
func checkAllIntervals(t *testing.T, store *history.Store, coins []string) {
	t.Helper()
	from, to := time.Unix(0, noon).Add(-12*day), time.Unix(0, noon).Add(day)
	for _, interval := range lengths {
		all, err := store.AllIntervals(t.Context(), interval, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, coin := range coins {
			one, err := store.Intervals(t.Context(), coin, interval, from, to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one, all[coin], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s of %s: of one coin(-), of all(+):\n%s", interval, coin, diff)
			}
		}
		if len(all) == 0 || len(all) > len(coins) {
			t.Errorf("%s: got candles of %d coins, want at most %d", interval, len(all), len(coins))
		}
	}
	extremes, err := store.BackfilledExtremes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, coin := range coins {
		low, high := extremes[coin].Low, extremes[coin].High
		if high <= low || high <= 0 {
			t.Errorf("%s: got extremes %+v", coin, extremes[coin])
		}
		days, err := store.Intervals(t.Context(), coin, day, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range days {
			if c.Origin == schemas.OriginBackfill && c.Minutes == 1440 && (c.High > high || c.Low < low) {
				t.Errorf("%s: got extremes from %g to %g, and a day from %g to %g", coin, low, high, c.Low, c.High)
			}
		}
	}
}
