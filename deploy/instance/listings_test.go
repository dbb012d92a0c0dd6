package instance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// listingLog is the log of one venue's list, at a time that the test sets.
type listingLog struct {
	poll.SourceOutbox
	producers.Clock
	now     time.Time
	records []*eventsv1.ReferenceRecord
}

func (l *listingLog) Now() time.Time { return l.now }

func (l *listingLog) Known(context.Context, func(*eventsv1.ReferenceRecord)) error { return nil }

func (l *listingLog) Append(_ context.Context, records ...*eventsv1.ReferenceRecord) error {
	for _, rec := range records {
		rec = proto.Clone(rec).(*eventsv1.ReferenceRecord)
		rec.GetListing().IngestTime = l.now.UnixNano()
		l.records = append(l.records, rec)
	}
	return nil
}

// listOf reads the list of a venue as the engine of adapters does.
func listOf(t *testing.T, venue adapter.Venue, address string) (all []adapter.Instrument) {
	t.Helper()
	for _, path := range venue.Listing {
		answer, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %d, %v", path, answer.StatusCode, err)
		}
		for _, read := range []func(string, []byte) ([]adapter.Instrument, error){venue.Instruments, venue.Halted} {
			list, err := read(path, body)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, list...)
		}
	}
	return all
}

// A market that a simulated venue delists or halts is distinguished, in SQL, from one that is only not traded: from the venue's list over the records of it to the views.
func TestDelistedAndHaltedMarketsAreDistinguishedFromQuietOnes(t *testing.T) {
	t.Run("delisted", func(t *testing.T) { checkListingChange(t, provider.Faults{Delisted: true}, "gone", "", "not_listed") })
	t.Run("halted", func(t *testing.T) {
		checkListingChange(t, provider.Faults{Halted: true}, "halted", "state=suspend", "halted")
	})
}

// checkListingChange lets a venue do wrong for some hours, and asks the views for the change of its list, and for why a market is silent.
func checkListingChange(t *testing.T, wrong provider.Faults, change, status, because string) {
	cfg := simulator.DefaultConfig()
	cfg.Clock = producers.WallClock{}
	sim, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	running.Go(func() {
		if err := sim.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	venue, _ := exchanges.Find("okx")
	address := sim.URLs()["okx"].REST
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	log := &listingLog{now: noon}
	recorded := poll.NewListings(log, log)
	// read records the list, so long after noon, and returns what trades.
	read := func(after time.Duration, faults provider.Faults) (trading []string) {
		t.Helper()
		if err := sim.SetFaults("okx", faults); err != nil {
			t.Fatal(err)
		}
		log.now = noon.Add(after)
		list := listOf(t, venue, address)
		var listings []*eventsv1.Listing
		for _, in := range list {
			listings = append(listings, &eventsv1.Listing{Venue: "okx", Symbol: in.Symbol, Base: in.Base, Quote: in.Quote, Status: in.Status, Simulated: true})
			if in.Status == "" {
				trading = append(trading, in.Symbol)
			}
		}
		if _, err := recorded.Record(t.Context(), listings); err != nil {
			t.Fatal(err)
		}
		return trading
	}
	before := read(0, provider.Faults{})
	during := read(50*time.Minute, wrong)
	after := read(4*time.Hour, provider.Faults{})
	if len(before) < 100 || len(during) >= len(before) || len(during) < len(before)*8/10 || !slices.Equal(after, before) {
		t.Fatalf("the list has %d markets, then %d, then %d; want a tenth to leave, and to come back", len(before), len(during), len(after))
	}
	left := before[slices.IndexFunc(before, func(symbol string) bool { return !slices.Contains(during, symbol) })]
	quiet := during[0]

	database, way := enginetest.Migrated(t)
	store, err := history.Open(t.Context(), history.Config{Database: database, Transport: way})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Migrate(t.Context()); err != nil { // the views are those of this database from now on
		t.Fatal(err)
	}
	var batch rows.Batch
	for i, rec := range log.records {
		batch.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: int64(i)}, rec)
	}
	// All trade in the first minute; then only one that is neither of the two, for two hours.
	for minute := range int64(120) {
		for i, symbol := range []string{"OTHER-USDT", left, quiet} {
			if minute > 0 && i > 0 {
				continue
			}
			batch.Add(rows.Place{Topic: schemas.TopicCandles}, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: minute}, Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{
				Venue: "okx", Symbol: symbol, CoinId: "bitcoin", QuoteId: "tether", Start: noon.UnixNano() + minute*int64(time.Minute), Open: "1", High: "1", Low: "1", Close: "1", Volume: "1", Trades: 1,
			}}})
		}
	}
	if err := batch.Insert(t.Context(), store, ""); err != nil {
		t.Fatal(err)
	}
	check := func(query, want string) {
		t.Helper()
		var got string
		if err := store.Conn().QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", query, got, err, want)
		}
	}
	of := fmt.Sprintf(" WHERE venue = 'okx' AND symbol = '%s'", left)
	check("SELECT arrayStringConcat(groupArray(c), ' ') FROM (SELECT concat(toString(toHour(time)), change, status) AS c FROM default.v_listings"+of+" ORDER BY time)", "12listed 12"+change+status+" 16back")
	check("SELECT arrayStringConcat(groupArray(c), ' ') FROM (SELECT concat(symbol, ' ', silent_because) AS c FROM default.v_coverage WHERE toHour(hour) = 13 AND symbol != 'OTHER-USDT' ORDER BY silent_because = 'no_trades')",
		left+" "+because+" "+quiet+" no_trades")
	check("SELECT toString(count()) FROM default.v_listings WHERE change = '"+change+"'", fmt.Sprint(len(before)-len(during)))
	known := func(at string) string {
		return "SELECT toString(countIf(has(markets.symbol, '" + left + "'))) FROM default.v_universe_at(at = '" + at + "')"
	}
	check(known("2026-03-01 12:30:00"), "1")
	check(known("2026-03-01 13:30:00"), "0")
}
