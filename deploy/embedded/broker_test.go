package embedded

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

// In a process of its own the broker can be killed: with this variable the test binary serves the named folder.
const brokerDirVariable = "EMBEDDED_TEST_BROKER_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(brokerDirVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	broker, err := StartBroker(BrokerConfig{Dir: dir, Listen: "127.0.0.1:0", Password: testPassword, OwnGroups: []string{"resolve"}, OwnGroupPrefixes: []string{"sink-"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(broker.Addr())
	broker.Sweep(context.Background(), 10*time.Millisecond)
}

// brokerProcess starts the broker in another process; kill ends it as kill -9 does.
func brokerProcess(t *testing.T, dir string) (addr string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokerDirVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("waiting for the broker's address: %v", err)
	}
	return strings.TrimSpace(line), kill
}

func startBroker(t *testing.T, dir string) *Broker {
	t.Helper()
	broker, err := StartBroker(BrokerConfig{Dir: dir, Listen: "127.0.0.1:0", Password: testPassword, OwnGroups: []string{"resolve"}, OwnGroupPrefixes: []string{"sink-"}})
	if err != nil {
		t.Fatal(err)
	}
	return broker
}

const testPassword = "only for tests"

// connect opens a client of the broker's owner.
func connect(t *testing.T, addr string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	return connectFrom(t, addr, append(options, kgo.SASL(plain.Auth{User: User, Pass: testPassword}.AsMechanism()))...)
}

// connectFrom opens a client of anybody.
func connectFrom(t *testing.T, addr string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createTopic(t *testing.T, addr string, topic schemas.Topic) {
	t.Helper()
	if err := stream.CreateTopics(t.Context(), connect(t, addr), []schemas.Topic{topic}, -1, TopicConfigs); err != nil {
		t.Fatal(err)
	}
}

func endOffset(t *testing.T, addr, topic string) int64 {
	t.Helper()
	ends, err := kadm.NewClient(connect(t, addr)).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

// What was acknowledged before kill -9 is there afterwards, whole and in order.
func TestAcknowledgedRecordsSurviveKill(t *testing.T) {
	topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 1 << 30}
	dir := t.TempDir()
	var acknowledged atomic.Int64
	sent := 0
	for round := range 3 {
		addr, kill := brokerProcess(t, dir)
		if round == 0 {
			createTopic(t, addr, topic)
		}
		ctx, cancel := context.WithCancel(t.Context())
		producer := connect(t, addr, kgo.DefaultProduceTopic(topic.Name), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(5*time.Second))
		target := acknowledged.Load() + 20_000
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			for acknowledged.Load() < target && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			kill()
			cancel()
		}()
		for ctx.Err() == nil {
			producer.Produce(ctx, &kgo.Record{Value: fmt.Appendf(nil, "%09d", sent)}, func(_ *kgo.Record, err error) {
				if err == nil {
					acknowledged.Add(1)
				}
			})
			sent++
		}
		<-killed
		producer.Close()
	}

	broker := startBroker(t, dir)
	defer broker.Close()
	recovered := endOffset(t, broker.Addr(), topic.Name)
	if recovered < acknowledged.Load() {
		t.Fatalf("recovered %d records of %d acknowledged", recovered, acknowledged.Load())
	}
	consumer := connect(t, broker.Addr(), kgo.ConsumeTopics(topic.Name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	last := ""
	for next := int64(0); next < recovered; {
		fetches := consumer.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != next {
				t.Fatalf("offset %d follows %d", r.Offset, next-1)
			}
			if string(r.Value) <= last {
				t.Fatalf("record %s follows %s", r.Value, last)
			}
			last, next = string(r.Value), next+1
		})
	}
	t.Logf("acknowledged %d, recovered %d", acknowledged.Load(), recovered)
}

// A topic in which all is old keeps its newest offset, and its records, whatever ended the broker.
func TestOffsetsNeverStartAgain(t *testing.T) {
	topic := schemas.Topic{Name: "dead", Partitions: 1, EmbeddedBytes: 1 << 20, Retention: time.Hour}
	for _, end := range []string{"close", "kill"} {
		t.Run(end, func(t *testing.T) {
			dir := t.TempDir()
			addr, kill := brokerProcess(t, dir)
			createTopic(t, addr, topic)
			producer := connect(t, addr, kgo.DefaultProduceTopic(topic.Name))
			old := &kgo.Record{Value: []byte("long ago"), Timestamp: time.Now().AddDate(0, -2, 0)}
			if err := producer.ProduceSync(t.Context(), old).FirstErr(); err != nil {
				t.Fatal(err)
			}
			kill()
			if end == "close" {
				broker := startBroker(t, dir)
				broker.cluster.ApplyRetention()
				broker.Close()
			}
			broker := startBroker(t, dir)
			defer broker.Close()
			broker.cluster.ApplyRetention()
			if got := endOffset(t, broker.Addr(), topic.Name); got != 1 {
				t.Errorf("end offset after the restart: got %d, want 1", got)
			}
		})
	}
}

// The log stays within the topic's bound and one segment, also after a restart.
func TestSizeIsBounded(t *testing.T) {
	topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 1 << 20}
	broker := startBroker(t, t.TempDir())
	defer broker.Close()
	createTopic(t, broker.Addr(), topic)
	producer := connect(t, broker.Addr(), kgo.DefaultProduceTopic(topic.Name), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(64<<10))
	value := make([]byte, 10<<10)
	for range 400 {
		producer.Produce(t.Context(), &kgo.Record{Value: value}, nil)
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	broker.cluster.ApplyRetention()
	dirs, err := kadm.NewClient(producer).DescribeAllLogDirs(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got int64
	dirs.Each(func(d kadm.DescribedLogDir) { got += d.Size() })
	if most := topic.EmbeddedBytes + topic.EmbeddedBytes/segmentShare; got > most || got == 0 {
		t.Errorf("the log holds %d bytes, want at most %d and some", got, most)
	}
	if got := endOffset(t, broker.Addr(), topic.Name); got != 400 {
		t.Errorf("end offset: got %d, want 400", got)
	}
}

// A group's committed offsets survive kill -9, and its static members find their place again.
func TestGroupSurvivesKill(t *testing.T) {
	topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 1 << 20}
	dir := t.TempDir()
	member := func(addr string) *kgo.Client {
		return connect(t, addr, kgo.ConsumerGroup("median"), kgo.InstanceID("median-0"), kgo.ConsumeTopics(topic.Name),
			kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	readOne := func(client *kgo.Client) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		records := client.PollRecords(ctx, 1).Records()
		if len(records) != 1 {
			t.Fatalf("got %d records (%v), want one", len(records), ctx.Err())
		}
		if err := client.CommitRecords(ctx, records...); err != nil {
			t.Fatal(err)
		}
		return string(records[0].Value)
	}

	addr, kill := brokerProcess(t, dir)
	createTopic(t, addr, topic)
	producer := connect(t, addr, kgo.DefaultProduceTopic(topic.Name))
	if err := producer.ProduceSync(t.Context(), kgo.StringRecord("one"), kgo.StringRecord("two")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if got := readOne(member(addr)); got != "one" {
		t.Fatalf("before the kill: got %q, want %q", got, "one")
	}
	kill()

	addr, _ = brokerProcess(t, dir)
	start := time.Now()
	if got := readOne(member(addr)); got != "two" {
		t.Errorf("after the kill: got %q, want %q", got, "two")
	}
	t.Logf("the static member read again after %v", time.Since(start))
}
