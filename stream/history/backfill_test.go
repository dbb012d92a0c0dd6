package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// venueCandle is a venue's own candle: open, high, low, close and volume.
func venueCandle(offset int64, venue, base, quote string, interval time.Duration, start int64, prices ...string) logged {
	return logged{rows.Place{Topic: schemas.TopicBackfillRaw, Offset: offset}, &eventsv1.BackfillRecord{Producer: venue, Body: &eventsv1.BackfillRecord_Candle{
		Candle: &eventsv1.BackfillCandle{
			Venue: venue, Symbol: base + "-" + quote, Base: base, Quote: quote, Start: start, Interval: uint32(interval / time.Second),
			Open: prices[0], High: prices[1], Low: prices[2], Close: prices[3], Volume: prices[4], IngestTime: noon,
		}}}}
}

// fixing is a rate for one euro.
func fixing(offset int64, quote, rate string, day time.Time) logged {
	return logged{rows.Place{Topic: schemas.TopicReferenceRaw, Offset: offset}, &eventsv1.ReferenceRecord{Producer: "ecb", Body: &eventsv1.ReferenceRecord_Fixing{
		Fixing: &eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: quote, Rate: rate, Date: day.Format(time.DateOnly), IngestTime: noon}}}}
}

var lengths = map[string]time.Duration{"1m": time.Minute, "1h": time.Hour, "1d": day}

// describe is a candle as a script shows it.
func describe(coin string, c schemas.Candle) string {
	return fmt.Sprintf("%s %s o=%g h=%g l=%g c=%g v=%s usd=%.9g trades=%d minutes=%d %s", coin, c.Start.Format("2006-01-02T15:04"), c.Open, c.High, c.Low, c.Close,
		c.Volume, c.VolumeUSD, c.Trades, c.Minutes, c.Origin)
}

// viewed reads what the views of analysts show of a coin.
func viewed(t testing.TB, store *history.Store, coin, interval string) (all []string) {
	t.Helper()
	foldPast(t, store)
	for _, c := range viewedAll(t, store, interval)[coin] {
		all = append(all, describe(coin, c))
	}
	return all
}

// viewedAll reads what the views of analysts show of all coins, by coin id.
func viewedAll(t testing.TB, store *history.Store, interval string) map[string][]schemas.Candle {
	t.Helper()
	minutes := "minutes"
	if interval == "1m" {
		minutes = "1"
	}
	rows, err := store.Conn().Query(t.Context(), "SELECT coin_id, start, open, high, low, close, toDecimal256(volume_exact, 18), volume_usd, trades, toUInt16("+minutes+"), toString(origin) FROM default.v_candles_"+interval+
		" ORDER BY coin_id, start")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string][]schemas.Candle{}
	for rows.Next() {
		var c schemas.Candle
		var minutes uint16
		var coin, origin string
		if err := rows.Scan(&coin, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &c.Trades, &minutes, &origin); err != nil {
			t.Fatal(err)
		}
		c.Start, c.Minutes, c.Origin = c.Start.UTC(), int(minutes), schemas.Origin(origin)
		all[coin] = append(all[coin], c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// intervalsOf reads what charts are made of.
func intervalsOf(t testing.TB, store *history.Store, coin, interval string) []string {
	foldPast(t, store)
	candles, err := read.From(store).Intervals(t.Context(), coin, lengths[interval], time.Unix(0, noon).Add(-400*day), time.Unix(0, noon).Add(3*day))
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
		// No ledger says that there are live minutes, so what they convert does not become due by itself.
		if err := past.NewFold(s.store).Mark(s.Context()); err != nil {
			s.Fatal(err)
		}
	case "past":
		insert(s, s.store, venueCandle(s.offset, words[2], words[3], words[4], lengths[words[1]], s.time(words[5]), words[6:]...))
	case "fixing":
		at, err := time.Parse(time.DateOnly, words[3])
		if err != nil {
			s.Fatal(err)
		}
		insert(s, s.store, fixing(s.offset, words[1], words[2], at))
	case "candles":
		got, views := intervalsOf(s, s.store, words[2], words[1]), viewed(s, s.store, words[2], words[1])
		if diff := cmp.Diff(views, got); diff != "" {
			s.Errorf("%q: the view(-), the store(+):\n%s", line, diff)
		}
		return append([]string{}, got...)
	case "left":
		foldPast(s, s.store)
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
