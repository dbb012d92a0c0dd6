// Package stream is how Marketlog's events move and where they rest: the log and its clocks,
// consumer groups that begin where a fold's outputs say, tails, and the administration of topics.
// Its sub-packages materialize the log: history in ClickHouse, latest in Redis.
package stream

import (
	"errors"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream/faults"
)

// Config says where the log is.
type Config struct {
	// Brokers are host:port addresses of any Kafka-API broker.
	Brokers []string
	// ClientID names the process in the broker's logs.
	ClientID string
	// Archive has what the broker has no longer; nil: nothing.
	Archive Archive
	// Options adds transport security; empty for a loopback broker.
	Options []kgo.Opt
	// Dialer is the same for kafka-go's readers; nil for a loopback broker.
	Dialer *kafka.Dialer
}

// Fetch sizes: larger ones delay the first record and hold more memory, most of which is new each time and in no cache
// of the processor (measured: 8 MB a partition reads at 0.6 of the speed of 2 MB; a sink takes 0.88 of the CPU time
// with 4 MB of 1 MB a partition that it takes with 16 MB of 2 MB).
const (
	fetchMaxBytes          = 4 << 20
	fetchMaxPartitionBytes = 1 << 20
	fetchMaxWait           = 250 * time.Millisecond
	// gatherBytes is what a reader that gathers waits for, of all its partitions together, and gatherMaxWait how long.
	gatherBytes   = 256 << 10
	gatherMaxWait = 500 * time.Millisecond
)

// clientOptions are those of every franz-go client of this process.
func (c Config) clientOptions() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.FetchMaxBytes(fetchMaxBytes),
		kgo.FetchMaxPartitionBytes(fetchMaxPartitionBytes),
		kgo.FetchMaxWait(fetchMaxWait),
		kgo.RetryTimeout(30 * time.Second),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.DisableClientMetrics(), // pushed to the broker, where nobody reads them
	}
	return append(opts, c.Options...)
}

// Gathering is c for readers to whom half a second makes no difference: the broker answers them when there are gatherBytes, or after that time, and not
// with each batch of a few records that is written. A partition of ticks gets some forty of these a second, and each answer costs broker, reader and the
// system more than the records in it.
func (c Config) Gathering() Config {
	c.Options = append(slices.Clip(c.Options), kgo.FetchMinBytes(gatherBytes), kgo.FetchMaxWait(gatherMaxWait))
	return c
}

// NewClient opens a client for administration and explicit reads. The caller closes it.
func (c Config) NewClient(opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append(c.clientOptions(), opts...)
	if faults.Enabled() {
		opts = append(opts, kgo.WithHooks(acknowledged{}))
	}
	return kgo.NewClient(opts...)
}

// newReader opens a client that reads a part of the log once. It has no fetch session, which saves nothing then and has to be ended by a
// request of its own; and closing one while an answer arrives is a data race in franz-go 1.22. The caller closes it.
func (c Config) newReader() (*kgo.Client, error) { return c.NewClient(kgo.DisableFetchSessions()) }

// NewProducer opens a client that writes derived records: idempotent, acknowledged by all in-sync
// replicas, to the partition that the record names. The caller closes it.
func (c Config) NewProducer() (*kgo.Client, error) {
	return c.NewClient(
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.WithCompressor(compressor()),
		kgo.ProducerLinger(2*time.Millisecond),
		kgo.MaxBufferedRecords(100_000),
		kgo.ProducerBatchMaxBytes(1<<20),
	)
}

// partitioner is Kafka's default for records with a key: murmur2 of the key bytes.
var partitioner = kgo.StickyKeyPartitioner(nil).ForTopic("")

// PartitionFor is the partition of a key among n, as every Kafka client computes it.
func PartitionFor(key string, n int32) int32 {
	return int32(partitioner.Partition(&kgo.Record{Key: []byte(key)}, int(n)))
}

// ErrUnavailable means that a store did not answer, or not for certain. It is to be tried again.
var ErrUnavailable = errors.New("the store is not available")
