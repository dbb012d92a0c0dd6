package records_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/records"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

const at = 1_790_000_000_000

// log is a broker with all topics, and an archive.
type log struct {
	t      *testing.T
	reach  stream.Config
	client *kgo.Client
	store  archive.Store
	last   archive.Segment
}

func newLog(t *testing.T) *log {
	l := &log{t: t, reach: stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}, store: archive.NewDir(t.TempDir())}
	var err error
	if l.client, err = l.reach.NewProducer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.Close)
	if err := stream.CreateTopics(t.Context(), l.client, schemas.Topics, 1, func(schemas.Topic) map[string]string { return nil }); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *log) produce(topic string, partition int32, key string, value []byte) {
	l.t.Helper()
	record := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key), Value: value, Timestamp: time.UnixMilli(at)}
	if err := l.client.ProduceSync(l.t.Context(), record).FirstErr(); err != nil {
		l.t.Fatal(err)
	}
}

// archive writes the records [0, next) of a partition to the archive, and deletes them from the broker.
func (l *log) archive(topic string, partition int32, next int64) {
	l.t.Helper()
	ids, err := stream.TopicIDs(l.t.Context(), l.reach, topic)
	if err != nil {
		l.t.Fatal(err)
	}
	of := archive.Partition{Topic: topic, TopicID: ids[topic], Number: partition}
	var held iter.Seq2[*kgo.Record, error] = func(yield func(*kgo.Record, error) bool) {
		_ = stream.ReadBroker(l.t.Context(), l.reach, topic, partition, 0, next, func(r *kgo.Record) error {
			yield(r, nil)
			return nil
		})
	}
	if l.last, err = archive.Commit(l.t.Context(), l.store, of, archive.Segment{}, 0, strings.Repeat("ab", 32), held); err != nil {
		l.t.Fatal(err)
	}
	var offsets kadm.Offsets
	offsets.AddOffset(topic, partition, next, -1)
	if _, err := kadm.NewClient(l.client).DeleteRecords(l.t.Context(), offsets); err != nil {
		l.t.Fatal(err)
	}
}

func (l *log) serve() *querytest.Fixture {
	w := querytest.NewFixture(l.t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.Now = time.UnixMilli(at).UTC()
	rules := map[string]archive.Rule{}
	for _, topic := range schemas.Topics {
		if topic.Archive != schemas.ArchiveNever {
			rules[topic.Name] = archive.Rule{Period: time.Hour, Bytes: 1 << 20}
		}
	}
	w.Serve(records.New(views.NewLog(l.reach, archive.NewLog(l.store, l.reach, rules)), func() bool { return false }).Endpoints())
	return w
}

func price(t *testing.T, text string) []byte {
	t.Helper()
	rec := &eventsv1.PriceRecord{}
	if err := prototext.Unmarshal([]byte(text), rec); err != nil {
		t.Fatal(err)
	}
	value, err := rec.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string {
		l := newLog(t)
		l.produce(schemas.TopicPrices, 2, "bitcoin", price(t, `mark: {partition: 2 offset: 17} price: {coin_id: "bitcoin" price: 64250.5}`))
		l.produce(schemas.TopicPrices, 2, "\xff", []byte{0x0f})
		l.produce(schemas.TopicKeys, 0, "secret", []byte("secret"))
		return l.serve().Run
	})
}

// TestARecordIsReadWhereverItIs asks for each record of a partition of which the archive has the first ones, and the broker
// the rest.
func TestARecordIsReadWhereverItIs(t *testing.T) {
	l := newLog(t)
	for i := range 6 {
		l.produce(schemas.TopicPrices, 0, "bitcoin", price(t, fmt.Sprintf(`mark: {offset: %d} price: {coin_id: "bitcoin" price: %d}`, i, i)))
	}
	l.archive(schemas.TopicPrices, 0, 4)
	l.produce(schemas.TopicTicksRaw, 0, "binance|BTC", []byte{1})
	l.produce(schemas.TopicTicksRaw, 0, "binance|BTC", []byte{1})
	var offsets kadm.Offsets
	offsets.AddOffset(schemas.TopicTicksRaw, 0, 1, -1)
	if _, err := kadm.NewClient(l.client).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	w := l.serve()
	for offset := range 6 {
		text := w.Run(fmt.Sprintf("get /api/v1/log/prices.v1/0/%d", offset))
		_, body, _ := strings.Cut(text, "\n")
		var got records.Body
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		want := "broker"
		if offset < 4 {
			want = "archive"
			if s := got.Data.Segment; s == nil || s.File != l.last.Data || s.Next != 4 || s.Digest != l.last.Digest {
				t.Errorf("record %d is of segment %+v, want that of %s", offset, s, l.last.Data)
			}
		}
		if got.Data.Found != want || !strings.Contains(string(got.Data.Value), fmt.Sprintf(`"offset": "%d"`, offset)) && offset > 0 {
			t.Errorf("record %d is answered as %s", offset, text)
		}
	}
	if status, _, _ := strings.Cut(w.Run("get /api/v1/log/ticks.raw.v1/0/0"), " "); status != fmt.Sprint(http.StatusNotFound) {
		t.Errorf("a record that retention removed and no archive has is answered with %s", status)
	}
}
