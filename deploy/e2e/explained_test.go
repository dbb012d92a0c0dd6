package e2e

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

const (
	explainedPrices  = 300
	explainedSeconds = 240
)

// explainedMarket is one market of a market that a seed invents.
type explainedMarket struct {
	venue, base, quote string
	price              float64
}

// tickGenerator invents ticks: prices that wander, prints from far away, a coin whose two venues do not
// agree for a while, and one that falls silent.
type tickGenerator struct {
	random  *rand.Rand
	markets []*explainedMarket
	events  uint64
}

var (
	explainedVenues = []string{"bitstamp", "bybit", "coinbase", "gate", "kraken", "okx"}
	explainedBases  = []string{"BTC", "ETH", "SOL", "XRP", "ADA", "DOGE", "LTC", "LINK", "DOT", "UNI", "AAVE", "XLM", "AVAX", "TRX"}
)

// quarrelling is the coin of two venues, silenced the one that nobody speaks of after a minute.
const quarrelling, silenced = "NEAR", "ATOM"

func newTickGenerator(seed uint64) *tickGenerator {
	w := &tickGenerator{random: rand.New(rand.NewPCG(seed, 1))}
	for _, m := range []explainedMarket{{"kraken", "USDT", "USD", 0.9996}, {"kraken", "EUR", "USD", 1.0837}, {"coinbase", "USDT", "USD", 0.9998}} {
		w.markets = append(w.markets, &m)
	}
	for i, base := range explainedBases {
		price := math.Pow(7, float64(i%6)) * (1 + w.random.Float64())
		for _, venue := range explainedVenues {
			quotes := []string{"USD", "USDT", "EUR", "BTC"}
			for _, quote := range quotes[:1+w.random.IntN(len(quotes))] {
				per := map[string]float64{"USD": 1, "USDT": 0.9996, "EUR": 1.0837, "BTC": 1.5}[quote]
				if base != quote {
					w.markets = append(w.markets, &explainedMarket{venue, base, quote, price / per})
				}
			}
		}
	}
	w.markets = append(w.markets, &explainedMarket{"kraken", quarrelling, "USD", 5}, &explainedMarket{"okx", quarrelling, "USD", 5},
		&explainedMarket{"kraken", silenced, "USD", 9}, &explainedMarket{"gate", silenced, "USD", 9.01})
	return w
}

// second is what the venues send in one second, the nth.
func (w *tickGenerator) second(n int, at time.Time) (ticks []*eventsv1.Tick) {
	for _, m := range w.markets {
		rate := m.quote == "USD" && (m.base == "USDT" || m.base == "EUR")
		if !rate && w.random.IntN(4) > 0 || m.base == silenced && n > 60 {
			continue
		}
		m.price *= 1 + (w.random.Float64()-0.5)*0.002
		price := m.price
		switch {
		case m.base == quarrelling && m.venue == "okx" && n > 100 && n < 200:
			price *= 10 // two prices, each more than half of their mean away from it
		case !rate && w.random.IntN(60) == 0:
			price *= 3
		}
		ticks = append(ticks, w.tick(m, price, at))
	}
	return ticks
}

func (w *tickGenerator) tick(m *explainedMarket, price float64, at time.Time) *eventsv1.Tick {
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', 8, 64) }
	w.events++
	var id schemas.EventID
	binary.BigEndian.PutUint64(id[:], w.events)
	t := &eventsv1.Tick{
		Venue: m.venue, Symbol: m.base + "-" + m.quote, Base: m.base, Quote: m.quote, EventId: id[:],
		IngestTime: at.UnixNano(), EventTime: at.Add(-time.Duration(w.random.IntN(400)) * time.Millisecond).UnixNano(),
	}
	switch w.random.IntN(3) {
	case 0:
		t.Kind, t.Price, t.Size, t.TradeId = eventsv1.TickKind_TICK_KIND_TRADE, text(price), text(0.0001+w.random.Float64()), fmt.Sprint(w.events)
	case 1:
		t.Kind, t.Bid, t.Ask = eventsv1.TickKind_TICK_KIND_QUOTE, text(price*0.9995), text(price*1.0004)
	default:
		t.Kind, t.Bid, t.Ask, t.Last = eventsv1.TickKind_TICK_KIND_TICKER, text(price*0.9998), text(price*1.0002), text(price*(0.999+0.002*w.random.Float64()))
		t.VolumeBase = text(1e4 * w.random.Float64())
	}
	return t
}

// write writes the generated seconds into ticks.raw.v1 as one producer does.
func (w *tickGenerator) write(t *testing.T, cfg config.Config, begin time.Time) {
	t.Helper()
	producer, err := deploytest.Writer(t, cfg).NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	raw, err := schemas.TopicNamed(schemas.TopicTicksRaw)
	if err != nil {
		t.Fatal(err)
	}
	write := func(partition int32, at time.Time, rec *eventsv1.RawRecord) {
		rec.Producer, rec.Epoch = "market", 1
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		producer.Produce(t.Context(), &kgo.Record{Topic: raw.Name, Partition: partition, Value: value, Timestamp: at}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("producing: %v", err)
			}
		})
	}
	for n := range explainedSeconds {
		at := begin.Add(time.Duration(n) * time.Second)
		for _, tick := range w.second(n, at.Add(-100*time.Millisecond)) {
			write(stream.PartitionFor(tick.Venue+"|"+tick.Base, raw.Partitions), at, &eventsv1.RawRecord{Body: &eventsv1.RawRecord_Tick{Tick: tick}})
		}
		for p := range raw.Partitions {
			write(p, at, &eventsv1.RawRecord{Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at.UnixNano()}}})
		}
		if n == 9 || n%60 == 59 { // else a price could wait for ticks that are far older than the clocks
			awaitFolds(t, producer)
		}
	}
	awaitFolds(t, producer)
	awaitGroups(t, producer, "sink-"+schemas.TopicPrices)
}

// explainedRow is a row of v_prices.
type explainedRow struct {
	Coin               string `json:"coin_id"`
	Second             int64
	Price              *float64
	Accepted, Rejected uint32
	Reason             string
}

// TestPastPricesAreExplained asks why prices that lie in ClickHouse were what they were.
func TestPastPricesAreExplained(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("MARKETLOG_EXPLAIN_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("MARKETLOG_EXPLAIN_SEED is %q, want a number", text)
		}
	}
	t.Logf("MARKETLOG_EXPLAIN_SEED=%d repeats this", seed)
	alone(t)
	cfg := startInstance(t)
	w := newTickGenerator(seed)
	w.write(t, cfg, time.Now().UTC().Truncate(time.Minute).Add(-20*time.Minute))
	byCoin, reasons := readRows(t, cfg)
	if reasons["no_consensus"] == 0 || reasons["no_fresh_inputs"] == 0 || reasons["outlier"] == 0 || reasons[""] < explainedPrices {
		t.Fatalf("rows by reason: %v, want %d prices, some with outliers, and coins that lost theirs for either reason", reasons, explainedPrices)
	}
	code, out, errs := marketlog(t, "keys", "create", "--data-dir", cfg.DataDir, "--plan", "enterprise", "-o", "json")
	var created struct{ Key string }
	if code != 0 || json.Unmarshal([]byte(out), &created) != nil {
		t.Fatalf("creating a key: %d %s%s", code, out, errs)
	}
	awaitKey(t, cfg, created.Key)

	var coins []string
	for coin := range byCoin {
		coins = append(coins, coin)
	}
	slices.Sort(coins)
	without, outliers, stale := 0, 0, 0
	for asked := 0; asked < explainedPrices; {
		rows := byCoin[coins[w.random.IntN(len(coins))]]
		i := w.random.IntN(len(rows))
		asOf := time.Unix(rows[i].Second, w.random.Int64N(1e9)).UTC()
		// What is explained is the last price, also where there has been a reason for none since.
		want := i
		for want >= 0 && rows[want].Reason != "" {
			want--
		}
		if want < 0 {
			continue
		}
		asked++
		if want != i {
			stale++
		}
		x := explanation(t, cfg, created.Key, rows[i].Coin, asOf)
		if asked%5 == 0 {
			checkAnswerOfThePast(t, cfg, created.Key, asOf, x, rows[i])
		}
		if wrong := unexplained(x, rows[want]); wrong != "" {
			t.Fatalf("seed %d: %s as of %s: %s", seed, rows[i].Coin, asOf.Format(time.RFC3339Nano), wrong)
		}
		if len(x.Rejected) > 0 {
			without++
		}
		if slices.ContainsFunc(x.Inputs, func(in prices.Input) bool { return in.Reason == "outlier" }) {
			outliers++
		}
	}
	t.Logf("%d of %d coins explained: %d without all providers, %d with an outlier, %d while there was no new price", explainedPrices, len(coins), without, outliers, stale)
}

// awaitKey waits until the server knows a new key, which it learns of from the log.
func awaitKey(t *testing.T, cfg config.Config, key string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+cfg.Listen+"/api/v1/usage", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the new key is not known after a minute")
		}
	}
}

// readRows reads the prices, by coin and in order.
func readRows(t *testing.T, cfg config.Config) (byCoin map[string][]explainedRow, reasons map[string]int) {
	t.Helper()
	const statement = `SELECT coin_id, toUnixTimestamp(time) AS second, price, accepted, rejected, reason,
		arrayExists(i -> i.8 = 'outlier', inputs) AS outlier FROM v_prices ORDER BY coin_id, time FORMAT JSONEachRow`
	response, err := http.Post("http://"+cfg.SQLListen+"/", "text/plain", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	byCoin, reasons = map[string][]explainedRow{}, map[string]int{}
	for decoder := json.NewDecoder(response.Body); decoder.More(); {
		var row struct {
			explainedRow
			Outlier int
		}
		if err := decoder.Decode(&row); err != nil {
			t.Fatalf("reading v_prices: %v", err)
		}
		byCoin[row.Coin] = append(byCoin[row.Coin], row.explainedRow)
		reasons[row.Reason]++
		reasons["outlier"] += row.Outlier
	}
	return byCoin, reasons
}

// read reads an answer of the interface, which must be one, into body.
func read(t *testing.T, cfg config.Config, key, path string, body any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+cfg.Listen+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(content, body)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, response.StatusCode, content, err)
	}
}

func explanation(t *testing.T, cfg config.Config, key, coin string, asOf time.Time) *prices.Explanation {
	t.Helper()
	path := "/api/v1/prices/" + coin + "/explain?asOf=" + asOf.Format(time.RFC3339Nano)
	var body prices.ExplainBody
	if read(t, cfg, key, path, &body); body.Data == nil {
		t.Fatalf("%s: there is no explanation", path)
	}
	return body.Data
}

// checkAnswerOfThePast compares the answer of an instant with the explanation of its price: it has that price, its age as it was then,
// and the inputs of the newest record, which may say why there is no newer price.
func checkAnswerOfThePast(t *testing.T, cfg config.Config, key string, asOf time.Time, x *prices.Explanation, newest explainedRow) {
	t.Helper()
	path := "/api/v1/prices/" + x.CoinID + "?asOf=" + asOf.Format(time.RFC3339Nano)
	var body struct {
		Data struct {
			Aggregated prices.Aggregated
			Providers  []prices.Row
		}
		Meta prices.PriceMeta
	}
	read(t, cfg, key, path, &body)
	made, err := time.Parse(time.RFC3339, x.Timestamp)
	if err != nil {
		t.Fatal(err)
	}
	a, stale := body.Data.Aggregated, newest.Reason != "" || asOf.Sub(made) > 30*time.Second
	if a.Price != x.Price || a.Timestamp != x.Timestamp || a.Reason != newest.Reason || a.IsStale != stale || body.Meta.LastUpdated != query.FormatTime(newest.Second*1e9) ||
		newest.Reason == "" && len(body.Data.Providers) != len(x.Inputs) {
		t.Fatalf("%s: got %+v of %s with %d inputs; want the price of %s, %g, stale: %t, with %d inputs, and what was known of %d: %q",
			path, a, body.Meta.LastUpdated, len(body.Data.Providers), x.Timestamp, x.Price, stale, len(x.Inputs), newest.Second, newest.Reason)
	}
}

// unexplained reports what an explanation leaves open: it must be of the row, reproduce it, and its inputs must
// give the price once more when they are worked out here.
func unexplained(x *prices.Explanation, row explainedRow) string {
	if !x.Reproduced || x.CoinID != row.Coin || row.Price == nil || x.Price != *row.Price ||
		x.Timestamp != query.FormatTime(time.Unix(row.Second, 0).UnixNano()) || len(x.Accepted) != int(row.Accepted) || len(x.Rejected) != int(row.Rejected) {
		return fmt.Sprintf("got %+v, want what the row has: %+v", x, row)
	}
	var votes []float64
	voted := map[string]bool{}
	for _, in := range x.Inputs {
		value, basis := worth(in)
		if in.PriceUSD != nil && (in.Raw != value || in.Basis != basis || *in.PriceUSD != value*in.RateUsed) {
			return fmt.Sprintf("%s %s: got %v by %s = %v USD, want %v by %s at %v USD", in.Provider, in.VenueSymbol, in.Raw, in.Basis, *in.PriceUSD, value, basis, in.RateUsed)
		}
		counts := in.PriceUSD != nil && !voted[in.Provider]
		if counts != (in.Accepted || in.Reason == "outlier") {
			return fmt.Sprintf("%s %s has a vote: %v, and is reported as %q", in.Provider, in.VenueSymbol, counts, cmp.Or(in.Reason, "accepted"))
		}
		if counts {
			voted[in.Provider] = true
			votes = append(votes, *in.PriceUSD)
		}
	}
	first := middleOf(votes)
	var accepted []float64
	for _, v := range votes {
		if math.Abs(v-first)/first <= 0.5 {
			accepted = append(accepted, v)
		}
	}
	if price := middleOf(accepted); first != x.Median0 || price != x.Price || len(accepted) != len(x.Accepted) {
		return fmt.Sprintf("the inputs give %v (at first %v) of %d providers, and the price is %v (%v) of %d", price, first, len(accepted), x.Price, x.Median0, len(x.Accepted))
	}
	return ""
}

// worth is the last price held inside the spread, or the middle of the spread.
func worth(in prices.Input) (value float64, basis string) {
	middle := (in.Bid + in.Ask) / 2
	usable := in.Bid > 0 && in.Ask >= in.Bid && in.Ask-in.Bid <= 0.1*middle
	switch {
	case in.Last == 0:
		return middle, "mid"
	case usable && in.Last < in.Bid:
		return in.Bid, "bid"
	case usable && in.Last > in.Ask:
		return in.Ask, "ask"
	}
	return in.Last, "last"
}

// middleOf is the median: of an even number, the mean of the two in the middle.
func middleOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
