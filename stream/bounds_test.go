package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestBoundsAreWhatTheLogHas(t *testing.T) {
	log := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	client, err := log.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := stream.CreateTopics(t.Context(), client, schemas.Topics, 1, stream.ClusterTopicConfigs); err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Truncate(time.Second)
	for i := range 5 {
		rec := &kgo.Record{Topic: schemas.TopicEarn, Value: []byte{byte(i)}, Timestamp: begin.Add(time.Duration(i) * time.Second)}
		if err := client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	cut := kadm.Offsets{}
	cut.AddOffset(schemas.TopicEarn, 0, 2, -1)
	if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	starts, ends, err := log.Bounds(t.Context(), schemas.TopicEarn, schemas.TopicDefi)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stream.Offsets{schemas.TopicEarn: {0: 2}, schemas.TopicDefi: {0: 0}}, starts); diff != "" {
		t.Errorf("starts: want(-), got(+):\n%s", diff)
	}
	if diff := cmp.Diff(stream.Offsets{schemas.TopicEarn: {0: 5}, schemas.TopicDefi: {0: 0}}, ends); diff != "" {
		t.Errorf("ends: want(-), got(+):\n%s", diff)
	}
	for _, test := range []struct {
		after time.Duration
		want  int64
	}{{3 * time.Second, 3}, {3*time.Second + time.Millisecond, 4}, {time.Minute, 5}} {
		from, err := stream.OffsetsFrom(t.Context(), client, begin.Add(test.after), schemas.TopicEarn)
		if err != nil || from[schemas.TopicEarn][0] != test.want {
			t.Errorf("from %s on: got %v, %v; want %d", test.after, from, err, test.want)
		}
	}
	if _, _, err := log.Bounds(t.Context(), "weather.v1"); err == nil || !strings.Contains(err.Error(), "weather.v1") {
		t.Errorf("a topic that there is none of: got %v, want an error that names it", err)
	}
}
