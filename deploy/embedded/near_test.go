package embedded

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/near"
)

// Both clients write and read through the process, with the same rights as over the network, and lose nothing when connections end.
func TestClientsOfTheProcessWriteAndRead(t *testing.T) {
	broker := startBroker(t, t.TempDir())
	addr := broker.Addr()
	topic := schemas.Topic{Name: "keys.v1", Partitions: 1, EmbeddedBytes: 1 << 20}
	createTopic(t, addr, topic)
	var dialled []net.Conn
	dial := func(ctx context.Context, network, host string) (net.Conn, error) {
		conn, err := broker.Dial(ctx, network, host)
		if _, within := conn.(*near.Conn); err == nil && !within {
			t.Errorf("dialled %s over the network", host)
		}
		dialled = append(dialled, conn)
		return conn, err
	}
	stranger := connectFrom(t, addr, kgo.Dialer(broker.Dial), kgo.DefaultProduceTopic(topic.Name), kgo.RecordRetries(0))
	if err := stranger.ProduceSync(t.Context(), kgo.StringRecord("no")).FirstErr(); err == nil {
		t.Error("without the password a client of the process writes")
	}
	owner := connect(t, addr, kgo.Dialer(dial), kgo.DefaultProduceTopic(topic.Name))
	if err := owner.ProduceSync(t.Context(), kgo.StringRecord("one")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for _, conn := range dialled { // it connects again
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := owner.ProduceSync(t.Context(), kgo.StringRecord("two")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{addr}, Topic: topic.Name, Partition: 0, MaxWait: 100 * time.Millisecond, Dialer: &kafka.Dialer{DialFunc: broker.Dial, Timeout: time.Minute},
	})
	defer reader.Close()
	for _, want := range []string{"one", "two"} {
		message, err := reader.ReadMessage(t.Context())
		if err != nil || string(message.Value) != want {
			t.Fatalf("got %q, %v, want %s", message.Value, err, want)
		}
	}
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	if conn, err := broker.Dial(t.Context(), "tcp", elsewhere.Addr().String()); err != nil {
		t.Errorf("another address is dialled over the network: %v", err)
	} else if _, within := conn.(*near.Conn); within {
		t.Error("another address is dialled within the process")
	}
}
