package embedded

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Apache Kafka's own tools work on the embedded broker, without a login: what they only look at, and a group of their own.
func TestToolsOfKafkaWork(t *testing.T) {
	streamtest.InTier(t, streamtest.TierKafka)
	broker := startBroker(t, t.TempDir())
	defer broker.Close()
	addr := broker.Addr()
	createTopic(t, addr, schemas.Topic{Name: "prices.v1", Partitions: 2, EmbeddedBytes: 1 << 20})
	owner := connect(t, addr, kgo.DefaultProduceTopic("prices.v1"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := owner.ProduceSync(t.Context(), kgo.StringRecord("one"), kgo.StringRecord("two")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset("prices.v1", 0, 2, -1)
	for _, group := range []string{"resolve", "theirs"} {
		if err := kadm.NewClient(owner).CommitAllOffsets(t.Context(), group, offsets); err != nil {
			t.Fatal(err)
		}
	}
	const topics, groups = "org.apache.kafka.tools.TopicCommand", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	for _, test := range []struct {
		class string
		args  []string
		wants []string
	}{
		{topics, []string{"--list"}, []string{"prices.v1"}},
		{topics, []string{"--describe", "--topic", "prices.v1"}, []string{"PartitionCount: 2", "Partition: 1"}},
		{"org.apache.kafka.tools.GetOffsetShell", []string{"--topic", "prices.v1"}, []string{"prices.v1:0:2", "prices.v1:1:0"}},
		{groups, []string{"--list"}, []string{"resolve", "theirs"}},
		{groups, []string{"--describe", "--group", "resolve"}, []string{"resolve", "prices.v1"}},
		{groups, []string{"--reset-offsets", "--group", "theirs", "--topic", "prices.v1:0", "--to-earliest", "--execute"}, []string{"theirs", "prices.v1"}},
		{"org.apache.kafka.tools.consumer.ConsoleConsumer", []string{"--topic", "prices.v1", "--group", "theirs", "--max-messages", "2", "--timeout-ms", "60000"}, []string{"one", "two"}},
	} {
		out, err := streamtest.KafkaTool(t, test.class, append(test.args, "--bootstrap-server", addr)...)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range test.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s %v: got\n%s\nwithout %q", test.class, test.args, out, want)
			}
		}
	}
	if out, err := streamtest.KafkaTool(t, topics, "--delete", "--topic", "prices.v1", "--bootstrap-server", addr); err == nil || !strings.Contains(out, "AuthorizationException") {
		t.Errorf("deleting a topic: got %v\n%s, want that it is not authorized", err, out)
	}
}
