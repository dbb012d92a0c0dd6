// Package embedded runs, inside the process, what a cluster runs outside: a Kafka-API broker and a Redis-API cache. Both
// listen on loopback, so that any client can look. What the broker acknowledged survives kill -9, since it is in the
// page cache by then; it survives a power failure only with BrokerConfig.SyncWrites.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/near"
)

// BrokerConfig says where the embedded broker keeps its log and where it listens.
type BrokerConfig struct {
	// Dir holds the log. One process may have it open; the caller locks it.
	Dir string
	// Listen is HOST:PORT; port 0 takes a free one, which the next start does not keep.
	Listen string
	// SyncWrites flushes every batch to the disk before it is acknowledged.
	SyncWrites bool
	// Password is that of User, who alone may write.
	Password string
	// OwnGroups are the consumer groups that only User may join, commit to and delete; OwnGroupPrefixes begin the names of
	// others.
	OwnGroups, OwnGroupPrefixes []string
	Log                         *slog.Logger
}

// sweepNever keeps the broker's own sweep from running: it would compact too, which unlinks a partition's segments
// before it writes their successors, so that a kill in between loses the partition. And after a restart it would not
// run at all until some topic is altered. Broker.Sweep applies the retention instead.
const sweepNever = 365 * 24 * time.Hour

// Broker is a Kafka-API broker of one node in this process.
type Broker struct {
	within  *near.Listener
	cluster *kfake.Cluster
	disk    *brokerDisk
	dir     string
	addr    string

	mu      sync.Mutex
	damages []Damage
}

// openTimeout bounds how long the broker, once its log is read, may take to answer its first requests.
const openTimeout = time.Minute

// StartBroker opens the log and serves it. It reads the whole log into memory once, so a start takes as long and as much
// memory as the log is large. Committed group offsets and the ids of static members survive kill -9; the members
// themselves only a clean Close, after a kill each joins again. Idempotent producers' sequence windows do not survive a
// kill: a batch in flight then may be there twice.
func StartBroker(cfg BrokerConfig) (*Broker, error) {
	return startBrokerOn(newBrokerDisk(cfg.Log), cfg)
}

func startBrokerOn(disk *brokerDisk, cfg BrokerConfig) (*Broker, error) {
	if cfg.Password == "" {
		return nil, errors.New("opening the log: it needs a password, which distinguishes those who may write")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	if err := writable(disk, cfg.Dir); err != nil {
		return nil, fmt.Errorf("opening the log in %s: %w", cfg.Dir, err)
	}
	disk.durable = cfg.SyncWrites
	damages, err := disk.prepare(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the log in %s: %w", cfg.Dir, err)
	}
	if err := forgetLogins(cfg.Dir); err != nil {
		return nil, err
	}
	var within *near.Listener
	options := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(clusterName),
		kfake.DataDir(cfg.Dir),
		withFS(disk),
		kfake.WithLogger(brokerLog{cfg.Log}),
		kfake.BrokerConfigs(map[string]string{
			"log.cleaner.backoff.ms": strconv.FormatInt(sweepNever.Milliseconds(), 10),
		}),
		// The broker asks for 127.0.0.1 and a port of its own choice; it advertises what the listener reports.
		kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			listener, err := net.Listen(network, cfg.Listen)
			if err != nil {
				return nil, err
			}
			within = near.Listen(listener)
			return newGate(within, cfg.Password, cfg.Log), nil
		}),
	}
	options = append(options, gateOptions(cfg)...)
	if cfg.SyncWrites {
		options = append(options, kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(options...)
	disk.loaded()
	if err != nil {
		return nil, fmt.Errorf("opening the log in %s, listening on %s: %w", cfg.Dir, cfg.Listen, err)
	}
	broker := &Broker{cluster: cluster, disk: disk, dir: cfg.Dir, damages: damages, within: within, addr: cluster.ListenAddrs()[0]}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := errors.Join(openReading(ctx, broker.addr, cfg), forgetLogins(cfg.Dir)); err != nil {
		broker.Close()
		return nil, err
	}
	return broker, nil
}

// Addr is the HOST:PORT that clients connect to.
func (b *Broker) Addr() string { return b.addr }

// Dial connects a client of this process to the broker, without the system's sockets; to any other address as net.Dialer does.
func (b *Broker) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == b.addr {
		return b.within.Dial(ctx)
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// Sweep drops what exceeds the topics' retention.bytes, at once and then every interval, until ctx ends. It must
// have returned before Close is called.
func (b *Broker) Sweep(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		b.cluster.ApplyRetention()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Held is why the broker has stopped: an append that failed, on a full disk for one, and is tried again. It serves
// nobody meanwhile, and nothing is lost. Nil: it works.
func (b *Broker) Held() error { return b.disk.holding() }

// Damages are what was found damaged, at this start or an earlier one, and not settled.
func (b *Broker) Damages() []Damage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.damages)
}

// Settle forgets all damages: whoever has to know was notified, and what could be mended is.
func (b *Broker) Settle() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := writeDamages(b.dir, nil); err != nil {
		return fmt.Errorf("settling the damages of the log: %w", err)
	}
	b.damages = nil
	return nil
}

// Close ends all connections and writes down what makes the next start faster. An append that the broker is held by is
// given up: it was not acknowledged.
func (b *Broker) Close() {
	b.disk.release()
	b.cluster.Close()
	_ = forgetLogins(b.dir) // the next start does it too
}

// segmentShare is how much of a partition's bound one segment file takes: old records leave in whole segments, so a
// partition's files exceed its bound by as much.
const segmentShare = 8

// TopicConfigs are the settings of a topic on the embedded broker. They bound it by size alone: an age limit can empty a
// partition, and this broker forgets the end offset of an empty one at the next start, so that offsets would be given
// out twice. A compacted topic is kept whole, for the reason given at the sweep.
func TopicConfigs(t schemas.Topic) map[string]string {
	configs := map[string]string{
		"cleanup.policy":  "delete",
		"retention.ms":    "-1",
		"retention.bytes": strconv.FormatInt(t.EmbeddedBytes, 10),
		"segment.bytes":   strconv.FormatInt(min(t.EmbeddedBytes/segmentShare, 16<<20), 10),
	}
	if t.Compacted {
		configs["retention.bytes"] = "-1"
	}
	return configs
}

// brokerLog hands the broker's words on; what clients ask and how the group protocol goes is for debugging.
type brokerLog struct{ log *slog.Logger }

func (l brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	var at slog.Level
	switch level {
	case kfake.LogLevelError:
		at = slog.LevelError
	case kfake.LogLevelWarn:
		at = slog.LevelWarn
	default:
		at = slog.LevelDebug
	}
	if l.log == nil || !l.log.Enabled(context.Background(), at) {
		return
	}
	l.log.Log(context.Background(), at, strings.TrimSpace(fmt.Sprintf(format, args...)), "part", "broker")
}
