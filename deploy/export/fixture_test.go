package export_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

var (
	firstDay = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	lastDay  = firstDay.AddDate(0, 0, 3)
	venues   = []string{"binance", "okx"}
)

// logged is a record and where it lies.
type logged struct {
	place  rows.Place
	record eventsv1.Marked
}

// records are three days of a small log, the same each time: every dataset has rows on each of them.
func records() (all []logged) {
	offset := int64(100)
	add := func(topic string, record eventsv1.Marked) {
		all = append(all, logged{rows.Place{Topic: topic, Partition: int32(offset % 2), Offset: offset}, record})
		offset++
	}
	mark := func() *eventsv1.Mark { return &eventsv1.Mark{LogicVersion: 1, Offset: offset} }
	tick := func(k *eventsv1.Tick) {
		id := schemas.NumberedTrade(k.Venue, k.Kind.String(), "", fmt.Sprint(k.EventTime))
		k.EventId, k.IngestTime, k.Symbol, k.Base, k.Quote = id[:], k.EventTime+int64(50*time.Millisecond), "BTC-usdt", "BTC", "USDT"
		add(schemas.TopicTicks, &eventsv1.ResolvedRecord{Mark: mark(), Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{Tick: k, CoinId: "bitcoin", QuoteId: "tether", Rate: 1}}})
	}
	reference := func(r *eventsv1.ReferenceRecord) { add(schemas.TopicReferenceRaw, r) }
	for _, n := range []*eventsv1.SourceNotice{
		{Source: "binance", Name: "Binance", Kinds: []string{"price"}, Terms: "https://binance.example/terms", Enabled: true},
		{Source: "ecb", Name: "European Central Bank", Kinds: []string{"fiat"}, License: "free reuse", Attribution: "Source: ECB", Interval: int64(time.Hour), Enabled: true},
		{Source: "closed", Name: "Closed", Kinds: []string{"fiat", "tvl"}, License: "not to be passed on", Interval: int64(time.Hour), Enabled: true},
	} {
		n.IngestTime = firstDay.UnixNano()
		reference(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: n}})
	}
	for day := range 3 {
		for n := range 40 {
			at := firstDay.AddDate(0, 0, day).Add(time.Duration(n) * 17 * time.Minute).Add(time.Duration(day) * time.Minute).UnixNano()
			for i, venue := range venues {
				tick(&eventsv1.Tick{Venue: venue, Kind: eventsv1.TickKind_TICK_KIND_TRADE, EventTime: at + int64(i), Price: fmt.Sprintf("65000.%d1", n), Size: "0.000000000000000001", Side: eventsv1.Side(n % 3), TradeId: fmt.Sprint(n)})
				tick(&eventsv1.Tick{Venue: venue, Kind: eventsv1.TickKind_TICK_KIND_QUOTE, EventTime: at + int64(i), Bid: fmt.Sprintf("64999.%d", n), Ask: "65001"})
				tick(&eventsv1.Tick{Venue: venue, Kind: eventsv1.TickKind_TICK_KIND_TICKER, EventTime: at + int64(i), Last: "65000", VolumeBase: "12.5"})
				add(schemas.TopicCandles, &eventsv1.CandleRecord{Mark: mark(), Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{
					Venue: venue, Symbol: "BTC-usdt", CoinId: "bitcoin", QuoteId: "tether", Start: schemas.Minute(at), Open: "1.5", High: "2", Low: "1", Close: "1.25", Volume: "3", Trades: 2,
				}}})
			}
			add(schemas.TopicPrices, &eventsv1.PriceRecord{Mark: mark(), Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
				CoinId: "bitcoin", Symbol: "BTC", Time: at, Price: 65000.1 + float64(n), Median0: 65000, Min: 64999, Max: 65001, Accepted: 1, Source: "binance",
				Inputs: []*eventsv1.PriceInput{{Provider: "binance", Symbol: "BTC-usdt", Bid: 64999, Ask: 65001, Rate: 1, Accepted: true}},
			}}})
			add(schemas.TopicCandles, &eventsv1.CandleRecord{Mark: mark(), Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{
				CoinId: "bitcoin", Start: schemas.Minute(at), Open: 1, High: 2, Low: 0.5, Close: 1.5, Volume: "3.000000000000000001", VolumeUsd: 4.5, Trades: 2,
			}}})
			minute := schemas.Minute(at) + int64(time.Minute)
			add(schemas.TopicMarkets, &eventsv1.MarketRecord{Mark: mark(), Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: "bitcoin", Symbol: "BTC", Time: minute, Price: 65000, PriceSource: "median"}}})
			add(schemas.TopicMarkets, &eventsv1.MarketRecord{Mark: mark(), Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: minute, TotalMarketCap: 1e12}}})
			add(schemas.TopicDefi, &eventsv1.DefiRecord{Mark: mark(), Body: &eventsv1.DefiRecord_Summary{Summary: &eventsv1.DefiSummary{Time: minute, TotalTvl: 1e11}}})
			add(schemas.TopicRates, &eventsv1.RateRecord{Mark: mark(), Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{
				Source: "ecb", Category: "lending", Pool: "p", CoinId: "bitcoin", Time: minute, Apr: 1, Apy: 1.005, Heard: minute, Said: &eventsv1.Rate{Source: "ecb", Pool: "p", Category: "lending"},
			}}})
			for _, source := range []string{"ecb", "closed"} {
				reference(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
					Source: source, Base: "EUR", Quote: "USD", Rate: fmt.Sprintf("1.%d", 100+n), Date: time.Unix(0, at).UTC().Format(time.DateOnly), IngestTime: at, EventTime: at,
				}}})
			}
		}
		at := firstDay.AddDate(0, 0, day).Add(time.Hour).UnixNano()
		add(schemas.TopicTicks, &eventsv1.ResolvedRecord{Mark: mark(), Body: &eventsv1.ResolvedRecord_Gap{Gap: &eventsv1.Gap{Venue: "okx", Reason: "silence", FromTime: at, ToTime: at + int64(time.Minute)}}})
	}
	return all
}

// fixture is a store with the records, and an exporter of it.
type fixture struct {
	*testing.T
	exporter *export.Exporter
	// lacks is what the disk lacks when it is asked for the nth time, from 1 on.
	lacks func(n int) int64
	asked int
}

func (w *fixture) Lacks(string) (int64, error) {
	w.asked++
	if w.lacks == nil {
		return 0, nil
	}
	return w.lacks(w.asked), nil
}

// shared is the fixture of all tests that need no other.
var shared struct {
	once  sync.Once
	store *history.Store
}

// sharedFixture has the records in one batch.
func sharedFixture(t *testing.T) *fixture {
	t.Helper()
	shared.once.Do(func() { shared.store = newStore(t, enginetest.KeptDatabase, 1, 1) })
	if shared.store == nil {
		t.Fatal("there is no fixture: an earlier test failed to make it")
	}
	return fixtureOf(t, shared.store)
}

// newStore inserts the records into a database in so many batches, in any order. The analysts' views are those of the newest store.
func newStore(t *testing.T, newDatabase func(testing.TB) (string, http.RoundTripper), batches int, seed uint64) *history.Store {
	t.Helper()
	database, way := newDatabase(t)
	store, err := history.Open(t.Context(), history.Config{Database: database, Transport: way})
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{T: t}
	_, err = store.Migrate(t.Context())
	w.must(err)
	all := records()
	r := rand.New(rand.NewPCG(seed, 1))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for n := range batches {
		var b rows.Batch
		for _, l := range all[n*len(all)/batches : (n+1)*len(all)/batches] {
			b.Add(l.place, l.record)
		}
		w.must(b.Insert(t.Context(), store, ""))
	}
	var progress []history.SinkProgress
	for _, topic := range schemas.Topics {
		if len(topic.Tables) == 0 {
			continue
		}
		for partition := range topic.Partitions {
			progress = append(progress, history.SinkProgress{Sink: topic.Name, Progress: history.Progress{Partition: partition, Next: 10_000 + int64(partition), LogTime: lastDay.Add(10 * time.Minute).UnixNano(), ClosedUntil: lastDay.Add(5 * time.Minute).UnixNano()}})
		}
	}
	w.must(store.Record(t.Context(), progress))
	return store
}

func fixtureOf(t *testing.T, store *history.Store) *fixture {
	w := &fixture{T: t}
	w.exporter = &export.Exporter{
		Store: store, Disk: w, Now: func() time.Time { return lastDay.Add(time.Hour) },
		Sources: []poll.Source{{Slug: "closed", Name: "Closed", OwnUse: "its terms forbid it"}},
		Emit:    func(any) error { return nil },
	}
	return w
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// request is one for all three days.
func request(dataset, format, dir string) export.Request {
	return export.Request{Dataset: dataset, Format: format, From: firstDay, To: lastDay, Dir: dir, OwnUse: true}
}

func (w *fixture) run(r export.Request) export.Result {
	w.Helper()
	result, err := w.exporter.Run(w.Context(), r)
	if err != nil {
		w.Fatalf("exporting %s as %s: %v", r.Dataset, r.Format, err)
	}
	return result
}

func (w *fixture) manifest(dir string) (m export.Manifest) {
	w.Helper()
	content, err := os.ReadFile(filepath.Join(dir, export.ManifestFile))
	w.must(err)
	w.must(json.Unmarshal(content, &m))
	return m
}

// tree is every file of a directory by its path, with the hash of its content.
func (w *fixture) tree(dir string) map[string]string {
	w.Helper()
	files := map[string]string{}
	w.must(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	}))
	return files
}
