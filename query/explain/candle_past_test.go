package explain_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// venueCandle is a venue's own candle as a test draws it.
type venueCandle struct {
	venue, base, quote               string
	open, high, low, closing, volume float64
	offset                           int64
}

// drawnDigits are those after the point of what is drawn.
const drawnDigits = 1e6

func drawnNumber(random *rand.Rand, around float64) float64 {
	return math.Round(around*(0.9+0.2*random.Float64())*drawnDigits) / drawnDigits
}

func drawnVenueCandle(random *rand.Rand, venue, base, quote string, around float64) venueCandle {
	return venueCandle{venue: venue, base: base, quote: quote, open: drawnNumber(random, around), high: drawnNumber(random, 1.3*around), low: drawnNumber(random, 0.7*around),
		closing: drawnNumber(random, around), volume: drawnNumber(random, 50)}
}

// told has a venue state candles of one length that start at a time, in the log and in the tables.
func (w *fixture) told(length time.Duration, start time.Time, candles []venueCandle) {
	w.T.Helper()
	var batch rows.Batch
	for i, c := range candles {
		text := func(value float64) string { return fmt.Sprintf("%.6f", value) }
		rec := &eventsv1.BackfillRecord{Producer: c.venue, Body: &eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
			Venue: c.venue, Symbol: c.base + "-" + c.quote, Base: c.base, Quote: c.quote, Interval: uint32(length / time.Second), Start: start.UnixNano(),
			Open: text(c.open), High: text(c.high), Low: text(c.low), Close: text(c.closing), Volume: text(c.volume),
		}}}
		r := w.append(schemas.TopicBackfillRaw, 0, c.venue, w.Now.UnixNano(), rec)
		w.flush()
		candles[i].offset = r.Offset
		batch.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: r.Offset}, rec)
	}
	w.Must(batch.Insert(w.T.Context(), w.Store, ""))
}

// medianVote is the median of a field over votes, each times what its quote cost.
func medianVote(votes []venueCandle, field func(venueCandle) float64, cost map[string]float64) float64 {
	var values []float64
	for _, v := range votes {
		values = append(values, field(v)*cost[v.quote])
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// A candle of the past is folded again of what the log has of venues' own candles: each field as a model takes the median of the venues' best markets, converted
// by what their quotes cost in the same interval or on the day. A table that has something else is found out, and what waits to be folded again is not.
func TestCandlesOfVenuesAreFoldedAgain(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	day := time.Date(2026, 11, 18, 0, 0, 0, 0, time.UTC)
	w.Now = day.Add(50 * time.Hour)
	var batch rows.Batch
	euro := math.Round((1+0.2*random.Float64())*1e4) / 1e4
	w.Now = w.Now.Truncate(time.Second)
	batch.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: w.Offset()}, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
		Source: "ecb", Base: "EUR", Quote: "USD", Rate: fmt.Sprint(euro), Date: day.AddDate(0, 0, -random.IntN(5)).Format(time.DateOnly), EventTime: day.UnixNano(), IngestTime: w.Now.UnixNano()}}})
	w.Must(batch.Insert(t.Context(), w.Store, ""))
	// A minute has closed since, so that the past may be folded.
	w.AddCandles(&eventsv1.Candle{CoinId: "ethereum", Start: day.Add(49 * time.Hour).UnixNano(), Open: 1, High: 1, Low: 1, Close: 1, Volume: "1"})
	w.close(w.Now.UnixNano())
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO ledger (sink, generation, log_partition, next_offset, closed_until) SELECT 'candles.v1', 0, number, 1, ? FROM numbers(8)", w.Now))

	interval := []string{"1m", "1h", "1d"}[random.IntN(3)]
	length := map[string]time.Duration{"1m": time.Minute, "1h": time.Hour, "1d": oneDay}[interval]
	tether := drawnVenueCandle(random, "kraken", "USDT", "USD", 1)
	// Of what FOO cost nothing is known: the market has no vote, and its volume counts if its venue has another.
	markets := []venueCandle{
		drawnVenueCandle(random, "kraken", "BTC", "USD", 90_000), drawnVenueCandle(random, "kraken", "BTC", "USDT", 90_000),
		drawnVenueCandle(random, "okx", "BTC", "USDT", 90_000), drawnVenueCandle(random, "bitstamp", "BTC", "EUR", 80_000), drawnVenueCandle(random, "gate", "BTC", "FOO", 80_000),
	}
	from := 0
	if random.IntN(2) == 0 {
		from = 1 // the only market of the venue is in another quote
	}
	markets = markets[from:]
	w.told(length, day, append([]venueCandle{tether}, markets...))
	for i := range markets {
		markets[i].offset = int64(i + 1)
	}
	fold := past.NewFold(w.Store)
	_, err := fold.Pass(t.Context())
	w.Must(err)

	votes := slices.DeleteFunc(slices.Clone(markets), func(c venueCandle) bool {
		return c.quote == "FOO" || from == 0 && c.venue == "kraken" && c.quote == "USDT"
	})
	model := func(field, cost func(venueCandle) float64) float64 {
		return medianVote(votes, field, map[string]float64{"USD": 1, "USDT": cost(tether), "EUR": euro})
	}
	open, high := func(c venueCandle) float64 { return c.open }, func(c venueCandle) float64 { return c.high }
	low, closing := func(c venueCandle) float64 { return c.low }, func(c venueCandle) float64 { return c.closing }
	want := map[string]float64{"open": model(open, open), "high": model(high, high), "low": model(low, low), "close": model(closing, closing), "trades": 0}
	for _, c := range markets {
		if c.quote != "FOO" {
			want["volume"] += c.volume
		}
	}
	want["volumeUsd"] = want["volume"] * (want["open"] + want["high"] + want["low"] + want["close"]) / 4
	base := "candle/bitcoin/" + interval + "/" + day.Format(time.RFC3339) + "/"
	for field, value := range want {
		n := w.reproduced(base+field, "", true)
		if n.Value == nil || math.Abs(*n.Value-value) > 1e-9*value || n.Method.Name != "candles-of-venues" || n.Note != "" || len(n.Inputs) != len(markets) {
			t.Errorf("%s of %s: got %+v, want %v of %d markets", field, interval, n, value, len(markets))
			continue
		}
		for _, in := range n.Inputs {
			if i := slices.IndexFunc(markets, func(c venueCandle) bool { return c.offset == in.Records[0].Offset }); i < 0 || in.Records[0].Topic != schemas.TopicBackfillRaw ||
				(markets[i].quote == "FOO") != (in.Note == "does not vote: what its quote cost is not known") {
				t.Errorf("%s has the input %+v, want one of %+v", field, in, markets)
			}
		}
	}
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO past_candles SELECT * REPLACE (close * 1.01 AS close, version + 1 AS version) FROM past_candles FINAL WHERE coin_id = 'bitcoin'"))
	w.reproduced(base+"close", "", false)
	w.reproduced(base+"open", "", true)
	w.told(length, day, []venueCandle{drawnVenueCandle(random, "bybit", "BTC", "USD", 50_000)})
	if n := w.ask(base+"open", ""); n.Reproduced != nil || n.Note == "" {
		t.Errorf("got %+v of what waits to be folded again, want that it is not compared", n)
	}
	_, err = fold.Pass(t.Context())
	w.Must(err)
	w.reproduced(base+"open", "", true)
}

// A candle of the past is explained as of an instant as long as it is what it was then. Once it has been folded again of what sources reported since, it is
// refused as of before, with the time from which on it holds; so are hours of a sparkline that repeat it, and others stay as they are.
func TestCandlesThatWereFoldedAgainAreRefusedAsOfBefore(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	hour := time.Date(2026, 11, 20, 4, 0, 0, 0, time.UTC)
	w.Now = hour.Add(6*time.Hour + 30*time.Second)
	// A minute has closed since, so that the past may be folded.
	w.AddCandles(&eventsv1.Candle{CoinId: "ethereum", Start: hour.Add(5 * time.Hour).UnixNano(), Open: 1, High: 1, Low: 1, Close: 1, Volume: "1"})
	w.close(w.Now.UnixNano())
	steps := w.Prices.Steps()
	steps.Begin(func() time.Time { return w.Now })
	fold := past.NewFold(w.Store)
	folded := func(at time.Time, venue string) {
		w.told(time.Hour, at, []venueCandle{drawnVenueCandle(random, venue, "BTC", "USD", 90_000)})
		w.looked()
		_, err := fold.Pass(t.Context())
		w.Must(err)
		w.looked()
		w.Now = w.Now.Add(time.Duration(10+random.IntN(60)) * time.Second)
	}
	numbers := []string{"candle/bitcoin/1h/2026-11-20T04:00:00Z/close", "sparkline/bitcoin/2026-11-20T10:00:00Z/6", "sparkline/bitcoin/2026-11-20T10:00:00Z/4",
		"candle/bitcoin/1h/2026-11-20T04:00:00Z/volume"}
	var then []time.Time
	var values []float64
	said := func() {
		then = append(then, w.Now)
		for _, number := range numbers {
			values = append(values, *w.reproduced(number, "", true).Value)
		}
		w.Now = w.Now.Add(time.Second)
	}
	folded(hour, "kraken")
	said()
	folded(hour.Add(-time.Hour), "okx") // another candle
	said()
	for i, number := range numbers {
		for _, at := range then {
			if n := w.reproduced(number, "?asOf="+at.Format(time.RFC3339Nano), true); *n.Value != values[i] {
				t.Errorf("%s as of %s is %v, and was %v", number, at, *n.Value, values[i])
			}
		}
	}
	changed := w.Now
	folded(hour, "bitstamp")
	said()
	for i, number := range numbers {
		if n := w.reproduced(number, "?asOf="+then[2].Format(time.RFC3339Nano), true); *n.Value != values[2*len(numbers)+i] || *n.Value == values[i] {
			t.Errorf("%s as of %s is %v, want that of now, another than %v", number, then[2], *n.Value, values[i])
		}
		if random.IntN(2) == 0 {
			w.record()
		}
		for _, at := range then[:2] {
			var refused struct {
				Error struct {
					Code          string
					AvailableFrom time.Time
				}
			}
			path := "/api/v1/explain/" + number + "?asOf=" + at.Format(time.RFC3339Nano)
			w.Must(json.Unmarshal([]byte(strings.TrimPrefix(w.Get(path), "410 ")), &refused))
			if from := refused.Error.AvailableFrom; refused.Error.Code != "AGED_OUT" || from.Before(changed.Truncate(time.Millisecond)) || from.After(then[2]) {
				t.Errorf("%s: got %+v, want that it is refused until it was folded again at %s", path, refused, changed)
			}
		}
	}
	// A minute of live trades stays.
	w.traded("bitcoin", hour.Add(6*time.Hour), 97_000, 97_000, 97_000, 97_000, 1e9)
	w.Now = hour.Add(6*time.Hour + 5*time.Minute)
	w.close(w.Now.UnixNano())
	w.answered(map[string]int{"candle/bitcoin/1m/2026-11-20T10:00:00Z/close?asOf=" + hour.Add(6*time.Hour+time.Minute).Format(time.RFC3339): http.StatusOK})
}
