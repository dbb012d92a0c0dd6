package streamtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestMain(m *testing.M) { os.Exit(streamtest.Share(m).Run()) }

const records = 500

// What the idempotent producer got acknowledged, every client reads: each record once, in order.
func TestEveryClientReadsWhatWasAcknowledged(t *testing.T) {
	streamtest.Backends(t, func(t *testing.T, addr string) {
		topic := createTopic(t, addr)
		produce(t, addr, topic, 0)

		clients := map[string]func(*testing.T, string, string) []string{
			"franz-go": readFranz, "kafka-go": readKafkaGo, "kcat": readKcat,
		}
		for name, read := range clients {
			t.Run(name, func(t *testing.T) { wantRecords(t, read(t, addr, topic), records) })
		}
	})
}

func TestKilledKafkaKeepsWhatWasAcknowledged(t *testing.T) {
	broker := streamtest.StartKafka(t)
	topic := createTopic(t, broker.Addr())
	produce(t, broker.Addr(), topic, 0)
	broker.Kill()
	broker.Restart(t)
	produce(t, broker.Addr(), topic, records)
	wantRecords(t, readFranz(t, broker.Addr(), topic), 2*records)
}

func TestPausedKafkaAnswersAfterwards(t *testing.T) {
	broker := streamtest.StartKafka(t)
	topic := createTopic(t, broker.Addr())
	broker.Pause(t)
	client := newFranz(t, broker.Addr(), kgo.RequestTimeoutOverhead(200*time.Millisecond), kgo.RetryTimeout(time.Millisecond))
	if err := client.Ping(t.Context()); err == nil {
		t.Fatal("a paused broker answered")
	}
	broker.Resume(t)
	produce(t, broker.Addr(), topic, 0)
	wantRecords(t, readFranz(t, broker.Addr(), topic), records)
}

func TestRedisForgetsWhenFlushedOrKilled(t *testing.T) {
	server := streamtest.StartRedis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	forget := map[string]func(){
		"flush":            func() { server.Flush(t) },
		"kill and restart": func() { server.Kill(); server.Restart(t) },
	}
	for name, act := range forget {
		if err := client.Set(t.Context(), "BTC", "1", 0).Err(); err != nil {
			t.Fatalf("setting before %s: %v", name, err)
		}
		act()
		if err := client.Get(t.Context(), "BTC").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("getting after %s: got error %v, want %v", name, err, redis.Nil)
		}
	}
}

func TestPausedRedisKeepsItsKeys(t *testing.T) {
	server := streamtest.StartRedis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	if err := client.Set(t.Context(), "BTC", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := client.Get(ctx, "BTC").Err(); err == nil {
		t.Fatal("a paused server answered")
	}
	server.Resume(t)
	if got, err := client.Get(t.Context(), "BTC").Result(); got != "1" || err != nil {
		t.Errorf("getting after the pause: got %q, error %v; want 1", got, err)
	}
}

func newFranz(t *testing.T, addr string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createTopic(t *testing.T, addr string) string {
	t.Helper()
	topic := streamtest.Name(t, "ticks")
	_, err := kadm.NewClient(newFranz(t, addr)).CreateTopic(t.Context(), 1, 1, nil, topic)
	if err != nil {
		t.Fatalf("creating %s: %v", topic, err)
	}
	return topic
}

// produce writes the values first to first+records-1 by franz-go, idempotent and with acks=all, its defaults.
func produce(t *testing.T, addr, topic string, first int) {
	t.Helper()
	client := newFranz(t, addr, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	for i := range records {
		record := kgo.KeyStringRecord("BTC", fmt.Sprint(first+i))
		client.Produce(t.Context(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("producing: %v", err)
			}
		})
	}
	if err := client.Flush(t.Context()); err != nil {
		t.Fatalf("flushing: %v", err)
	}
}

func wantRecords(t *testing.T, got []string, n int) {
	t.Helper()
	if len(got) != n {
		t.Fatalf("got %d records, want %d", len(got), n)
	}
	for i, value := range got {
		if value != fmt.Sprint(i) {
			t.Fatalf("record %d: got %s, want %d", i, value, i)
		}
	}
}

// endOffset returns the offset that the topic's next record would get.
func endOffset(t *testing.T, addr, topic string) int64 {
	t.Helper()
	ends, err := kadm.NewClient(newFranz(t, addr)).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}

func readFranz(t *testing.T, addr, topic string) []string {
	end := endOffset(t, addr, topic)
	client := newFranz(t, addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var values []string
	for int64(len(values)) < end {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func readKafkaGo(t *testing.T, addr, topic string) []string {
	end := endOffset(t, addr, topic)
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{addr}, Topic: topic, MaxWait: 200 * time.Millisecond,
	})
	defer reader.Close()
	var values []string
	for reader.Offset() < end {
		message, err := reader.ReadMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(message.Value))
	}
	return values
}

func readKcat(t *testing.T, addr, topic string) []string {
	program, err := exec.LookPath("kcat")
	if err != nil {
		streamtest.Missing(t, "kcat", "no kcat on PATH")
	}
	out, err := exec.CommandContext(t.Context(), program, "-b", addr, "-C", "-t", topic, "-o", "beginning", "-e", "-q").Output()
	if err != nil {
		t.Fatalf("running kcat: %v", err)
	}
	return strings.Fields(string(out))
}
