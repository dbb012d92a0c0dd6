package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/diskbudget"
	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/deploy/metrics"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/sql"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/latest"
	"github.com/marketlog/marketlog/stream/near"
)

// Instance is the parts of one installation, opened: what is embedded lives in this process, what is configured is
// connected to. Roles and verbs work on it.
type Instance struct {
	Config config.Config
	Log    *slog.Logger
	// Dir is held by this process.
	Dir *admin.DataDir
	// Stream reaches the log, whose topics exist.
	Stream stream.Config
	// Metrics is where roles register what they measure.
	Metrics *prometheus.Registry
	// Clock is the time that producers and the simulator live in, and by which ages are taken.
	Clock producers.Clock
	// Began is when this process took the directory, by Clock.
	Began time.Time
	// Simulated are the venues that the built-in simulator plays; set before roles and verbs run.
	Simulated map[string]bool

	// Sim is the built-in simulator, where one runs here.
	Sim atomic.Pointer[simulator.Simulator]
	// SimNear is where it is dialled from within this process.
	SimNear atomic.Pointer[near.Listener]

	// Pages is where the pages of this process are; nil where it serves none. Set before verbs run.
	Pages *Pages

	// Keys are what the server of this process judges keys by, where it runs one.
	Keys atomic.Pointer[keys.Table]

	// Disk pauses ingest before the disk is full, pauses remembers what it paused.
	Disk   *diskguard.Guard
	Pauses *Pauses
	// Budget keeps the log, its archive and the tables within what they may take on the disk; nil: nothing of them is embedded, or that is unbounded.
	Budget *diskbudget.Budget
	// Exports order exports: one runs at a time. Lake is what exports finished days by itself, where it does so here.
	Exports export.Turns
	Lake    atomic.Pointer[export.Lake]
	// Lost is what the tables lack that they had, Behind what they do not have yet of what the log had at the start.
	Lost, Behind lostTables

	// Archived is the part of the log that is in the archive; nil: the log is not archived.
	Archived *archive.Log

	// Switches are the polled sources that an operator switched on or off, sources those that are asked here.
	Switches *SourceSwitches
	Sources  sourceHealth
	// Listings are what venues have listed and nobody has recorded yet.
	Listings Listings

	// Folding, feeds, position and jobs are what is measured of the pipeline.
	Folding  *processors.Metrics
	Feeds    *metrics.Feeds
	position *metrics.Log
	Jobs     *admin.JobMetrics

	underWay atomic.Pointer[string]
	// Retrying is held while dead letters are retried.
	Retrying sync.Mutex

	engineMu sync.Mutex // is held while the engine opens
	engine   *engine.Engine

	mu     sync.Mutex
	broker *embedded.Broker
	people *sqlport.Reader // runs people's statements; nil: none
	// sqlServer runs those of callers with a key on the configured server; nil: none.
	sqlServer *sql.Server
	history   *history.Store
	latest    *latest.Store
	// archive is where the log is kept, archiving how that goes; nil: the log is not archived.
	archive   archive.Store
	archiving *archiveState
	// closers undo what was opened, the last first.
	closers []func()
}

// sweepInterval is how often the embedded log is cut back to its bound; at 10,000 ticks a second it grows by some
// 60 MB meanwhile.
const sweepInterval = time.Minute

// OpenInstance takes the data directory and opens the log, with its topics. The engine and the cache are opened by the
// first caller that needs them. A *HeldError means that an instance runs already. The caller closes the instance.
func OpenInstance(ctx context.Context, cfg config.Config, log *slog.Logger) (*Instance, error) {
	in, err := HoldInstance(cfg, log)
	if err != nil {
		return nil, err
	}
	if err := in.Open(ctx); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// HoldInstance takes the data directory; nothing is open yet.
func HoldInstance(cfg config.Config, log *slog.Logger) (*Instance, error) {
	dir, err := admin.HoldDataDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	return NewInstance(cfg, dir, log)
}

// NewInstance is the instance in a directory that is held; nothing is open yet. With an error the directory is given back.
func NewInstance(cfg config.Config, dir *admin.DataDir, log *slog.Logger) (*Instance, error) {
	var err error
	in := &Instance{Config: cfg, Log: log, Dir: dir, Metrics: prometheus.NewRegistry(), Clock: NewClock(cfg)}
	in.Began = in.Clock.Now()
	if in.Switches, err = ReadSwitches(dir.Path(SwitchesFile)); err != nil {
		return nil, errors.Join(err, dir.Release())
	}
	in.Opening("opening the log")
	if cfg.Archives() {
		in.archiving = newArchiveState(in)
	}
	in.guardDisk()
	in.openBudget()
	in.measure()
	in.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return in, nil
}

// Open opens the log, with its topics.
func (in *Instance) Open(ctx context.Context) error {
	brokers := in.Config.Kafka.Brokers
	if len(brokers) == 0 {
		addr, err := in.openBroker(ctx)
		if err != nil {
			return err
		}
		brokers = []string{addr}
	}
	var err error
	if in.Stream, err = in.Config.StreamConfig(brokers); err != nil {
		return err
	}
	if broker := in.EmbeddedBroker(); broker != nil {
		in.Stream.Options = append(in.Stream.Options, kgo.Dialer(broker.Dial))
		in.Stream.Dialer.DialFunc = broker.Dial
	}
	if err := in.createTopics(ctx); err != nil {
		return err
	}
	if err := in.openArchive(); err != nil {
		return err
	}
	client, err := in.Stream.NewClient()
	if err != nil {
		return err
	}
	in.onClose(in.position.Open(client))
	return nil
}

// onClose has Close call what undoes something that was opened.
func (in *Instance) onClose(undo func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closers = append(in.closers, undo)
}

// Opening notes what is under way before the roles run; empty: they do.
func (in *Instance) Opening(what string) { in.underWay.Store(&what) }

// Missing is what the instance waits for before it is ready, by the part that lacks it.
func (in *Instance) Missing(health *supervise.Health) map[string][]string {
	missing := map[string][]string{}
	if what := *in.underWay.Load(); what != "" {
		missing["instance"] = []string{what}
	}
	for part, waiting := range in.Lacking() {
		if why := waiting(); why != "" {
			missing[part] = []string{why}
		}
	}
	// Whoever serves is ready without the tables, since current prices are: where ClickHouse is embedded, its process serves.
	if len(in.Config.ClickHouse.Addr) > 0 {
		for topic, why := range in.Folding.Waiting() {
			missing["sink/"+topic] = append(missing["sink/"+topic], why)
		}
	}
	for _, r := range health.Report() {
		switch {
		case r.Ready:
		case r.State == "running":
			missing[r.Name] = append(missing[r.Name], "catching up")
		default:
			missing[r.Name] = append(missing[r.Name], r.State)
		}
	}
	return missing
}

// Lacking are the parts beneath the roles that may keep an instance from being ready, and what each lacks.
func (in *Instance) Lacking() map[string]func() string {
	tables := func() string { return cmp.Or(in.Lost.Waiting(), in.Behind.Waiting()) }
	return map[string]func() string{"disk": in.Disk.Waiting, "log": in.logWaiting, "archive": in.archiving.Waiting, "tables": tables}
}

func (in *Instance) openBroker(ctx context.Context) (addr string, err error) {
	began := time.Now()
	password, err := in.kafkaPassword()
	if err != nil {
		return "", err
	}
	groups, prefixes := ownGroups()
	broker, err := embedded.StartBroker(embedded.BrokerConfig{
		Dir:              in.Dir.Path("log"),
		Listen:           in.Config.Kafka.Listen,
		SyncWrites:       in.Config.Kafka.SyncWrites,
		Password:         password,
		OwnGroups:        groups,
		OwnGroupPrefixes: prefixes,
		Log:              in.Log,
	})
	if err != nil {
		if listening := (*net.OpError)(nil); errors.As(err, &listening) {
			err = fmt.Errorf("%w (kafka.listen and --kafka-listen choose another address)", err)
		}
		return "", err
	}
	in.mu.Lock()
	in.broker = broker
	in.mu.Unlock()
	sweep, stop := context.WithCancel(context.WithoutCancel(ctx))
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		broker.Sweep(sweep, sweepInterval)
	}()
	in.onClose(func() {
		stop()
		<-swept
		broker.Close()
	})
	in.Log.Info("embedded broker started", "addr", broker.Addr(), "duration", time.Since(began).Round(time.Millisecond))
	return broker.Addr(), nil
}

func (in *Instance) createTopics(ctx context.Context) error {
	client, err := in.Stream.NewClient()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	configs := in.Config.TopicConfigs()
	if err := stream.CreateTopics(ctx, client, schemas.Topics, int16(in.Config.Kafka.ReplicationFactor), configs); err != nil {
		return err
	}
	if len(in.Config.Kafka.Brokers) == 0 { // a cluster's settings are its operators' once the topic exists
		return stream.SetTopicConfigs(ctx, client, schemas.Topics, configs)
	}
	return nil
}

// Engine is the embedded ClickHouse, opened by the first call. It is an error if the configuration names a server.
func (in *Instance) Engine() (*engine.Engine, error) {
	if len(in.Config.ClickHouse.Addr) > 0 {
		return nil, errors.New("opening the embedded engine: the configuration names an outside ClickHouse")
	}
	in.engineMu.Lock()
	defer in.engineMu.Unlock()
	if in.engine != nil {
		return in.engine, nil
	}
	began := time.Now()
	e, err := engine.Open(in.Dir.Path("clickhouse"), engine.Options{Library: in.Config.ClickHouse.Library})
	if err != nil {
		return nil, err
	}
	in.engine = e
	in.onClose(func() {
		if err := e.Close(); err != nil {
			in.Log.Error("closing the engine", "error", err)
		}
	})
	in.Log.Info("embedded ClickHouse started", "duration", time.Since(began).Round(time.Millisecond))
	return e, nil
}

// UseEngine gives the instance an engine that somebody else opened and closes, before the first call of Engine.
func (in *Instance) UseEngine(e *engine.Engine) {
	in.engineMu.Lock()
	defer in.engineMu.Unlock()
	in.engine = e
}

// Close closes what was opened, the last first, and gives the data directory back.
func (in *Instance) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := len(in.closers) - 1; i >= 0; i-- {
		in.closers[i]()
	}
	in.closers = nil
	return in.Dir.Release()
}
