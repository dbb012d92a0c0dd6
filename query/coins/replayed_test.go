package coins_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// replayedFixture publishes prices to the log, to history and to who answers.
type replayedFixture struct {
	*querytest.Fixture
	*rand.Rand
	client     *kgo.Client
	partitions int32
	published  []*eventsv1.PriceRecord
}

var marketsOf = []string{"/api/v1/coins/bitcoin/markets?", "/api/v1/coins/ethereum/markets?", "/api/v1/coins/tether/markets?", "/api/v1/coins/solana/markets?"}

// What a replay changes and removes in history the log still has as it was published: as of an instant before the replay that is answered, by the
// process that answered then and by another.
func TestAnswersAsOfBeforeAReplayAreThoseThatWereGiven(t *testing.T) {
	w := &replayedFixture{Fixture: newFixture(t), Rand: streamtest.Rand(t)}
	w.Open(enginetest.Migrated(t))
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	w.Must(err)
	w.partitions = topic.Partitions
	log, client := w.Log()
	w.client = client
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { return w.Now }
	w.Prices.RememberBy(clock)
	w.Prices.ReadPastFrom(log)
	w.Prices.Steps().Begin(clock)
	var answers []querytest.Answered
	for i := range 70 {
		w.Now = w.Now.Add(time.Duration(w.IntN(1500)) * time.Millisecond)
		if i == 30 { // nobody publishes for a while: what counts is older than a price is repeated
			w.Now = w.Now.Add(45 * time.Second)
			answers = append(answers, w.Ask(w.Now, false, marketsOf))
			w.Now = w.Now.Add(time.Millisecond)
		}
		w.publish([]string{"bitcoin", "bitcoin", "bitcoin", "ethereum", "tether"}[w.IntN(5)])
		if w.IntN(3) == 0 {
			w.Now = w.Now.Add(time.Duration(w.IntN(100)) * time.Millisecond)
			answers = append(answers, w.Ask(w.Now, false, marketsOf))
		}
	}
	w.RecordServed(w.Prices.Steps(), "one")
	w.Must(w.Store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
	w.Now = w.Now.Add(time.Minute)
	w.replay()
	w.Now = w.Now.Add(time.Minute)
	w.same("by the same process", answers)

	other := views.NewPriceCache(w.Prices.Coins())
	other.ReadPastFrom(log)
	for p := range w.partitions {
		pulse := &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano()}}}
		w.Must(other.Apply(views.TailRecord{Partition: p, Offset: w.Offset(), Marked: pulse}))
	}
	w.Serve(coins.New(other, w.Catalog, w.Yields, views.NewCandles(other, stored{w.Fixture}), coins.Served{}, stored{w.Fixture}).Endpoints())
	w.same("by another process", answers)

	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), schemas.TopicPrices)
	w.Must(err)
	_, err = kadm.NewClient(client).DeleteRecords(t.Context(), ends.Offsets()) // the log has it no longer
	w.Must(err)
	aged := 0
	for _, a := range answers {
		for i, got := range w.Ask(a.At, true, marketsOf).Bodies {
			if strings.HasPrefix(got, "410 ") {
				aged++
			} else if got != a.Bodies[i] {
				t.Fatalf("without the log %s as of %s:\n%s\nwhat was answered then:\n%s", marketsOf[i], a.At.Format(time.RFC3339Nano), got, a.Bodies[i])
			}
		}
	}
	if aged == 0 {
		t.Error("without the log nothing was refused")
	}
}

func (w *replayedFixture) same(who string, answers []querytest.Answered) {
	w.T.Helper()
	for _, a := range answers {
		for i, got := range w.Ask(a.At, true, marketsOf).Bodies {
			// Whether a coin that had no price had one that a replay removed is not known.
			if unpriced := strings.Contains(a.Bodies[i], `"reason":"no_price"`); got != a.Bodies[i] && !(unpriced && strings.HasPrefix(got, "410 ")) {
				w.T.Fatalf("%s as of %s %s:\n%s\nwhat was answered then:\n%s", marketsOf[i], a.At.Format(time.RFC3339Nano), who, got, a.Bodies[i])
			}
		}
	}
}

// publish makes a price of a coin's second, or a reason why there is none.
func (w *replayedFixture) publish(coin string) {
	second, offset := w.Now.Truncate(time.Second).UnixNano(), w.Offset()
	for _, rec := range w.published {
		if rec.GetPrice().CoinId == coin && rec.GetPrice().Time == second {
			return
		}
	}
	partition := views.PartitionOf(coin, w.partitions)
	price := &eventsv1.Price{CoinId: coin, Time: second, Published: w.Now.UnixNano(), Method: schemas.AggregateVersion}
	if w.IntN(5) == 0 {
		price.Reason = schemas.ReasonNoFreshInputs
	} else {
		price.Price, price.Source, price.Accepted, price.Score, price.Volume24H = 100+float64(w.IntN(900)), "kraken", 1, 0.5, 7
		price.Inputs = []*eventsv1.PriceInput{{Provider: "kraken", Symbol: coin + "/USD", QuoteId: "USD", Rate: 1, Last: price.Price, LastHeard: w.Now.UnixNano()}}
	}
	rec := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Partition: partition, Offset: offset}, Body: &eventsv1.PriceRecord_Price{Price: price}}
	value, err := proto.Marshal(rec)
	w.Must(err)
	w.Must(w.client.ProduceSync(w.T.Context(), &kgo.Record{Topic: schemas.TopicPrices, Partition: partition, Key: []byte(coin), Value: value, Timestamp: w.Now}).FirstErr())
	w.insert(partition, rec)
	w.Must(querytest.ApplyPrice(w.Prices, views.TailRecord{Partition: partition, Offset: offset, Marked: rec}))
	w.published = append(w.published, rec)
}

func (w *replayedFixture) insert(partition int32, rec *eventsv1.PriceRecord) {
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicPrices, Partition: partition, Offset: rec.Mark.Offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

// replay changes prices of bitcoin and ethereum, removes some, and adds one.
func (w *replayedFixture) replay() {
	changed := 0
	restated := func(kind string, p *eventsv1.Price) {
		w.Run(fmt.Sprintf("restatement replay-1 1 %s restatement { table: %q view: %q kind: %q cause: %q coin_id: %q event_time: %d key { name: %q value: %q } }",
			w.Now.Format(time.RFC3339Nano), "prices", schemas.ViewPrices, kind, "correction", p.CoinId, p.Time, "coin_id", p.CoinId))
		changed++
	}
	for _, rec := range w.published {
		p := rec.GetPrice()
		if p.CoinId == "tether" {
			continue
		}
		switch w.IntN(4) {
		case 0:
			again := proto.CloneOf(rec)
			again.Mark.LogicVersion, again.GetPrice().Price = 2, 5
			w.insert(rec.Mark.Partition, again)
			restated("changed", p)
		case 1:
			w.Must(w.Store.Conn().Exec(w.T.Context(), "ALTER TABLE prices DELETE WHERE coin_id = ? AND time = ? SETTINGS mutations_sync = 2", p.CoinId, time.Unix(0, p.Time).UTC()))
			restated("removed", p)
		}
	}
	w.Run(fmt.Sprintf("restatement replay-1 1 %s table { table: %q view: %q changed: %d listed: %d }", w.Now.Format(time.RFC3339Nano), "prices", schemas.ViewPrices, changed, changed))
}
