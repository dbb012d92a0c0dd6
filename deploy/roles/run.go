// Package roles runs what an instance consists of: producers, processors, query and engine, each on an opened instance, in stages.
package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/metrics"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/query"
)

// drainLimit is what stopping may take; another second or two go to closing the engine and the log.
const drainLimit = 8 * time.Second

// firstKeyFile holds the key of a first start whose output is not a terminal.
const firstKeyFile = "first-key"

// Run opens an instance, starts the parts of the role on it (run: all) and waits until ctx ends. Its addresses answer
// first: /healthz at once, /readyz with what is missing. Then follow broker, topics, engine, tables, processors, query,
// producers; each later one finds the earlier ones there.
func Run(ctx context.Context, cfg config.Config, role string, out io.Writer, log *slog.Logger) (err error) {
	began := time.Now()
	if err := enoughFiles(); err != nil {
		return err
	}
	dir, err := admin.AwaitDataDir(ctx, cfg.DataDir)
	if err != nil {
		return err
	}
	dir.AwaitAddresses(ctx, cfg.Listen, cfg.MetricsListen, cfg.SQLListen, cfg.ClickHouse.Listen, cfg.Kafka.Listen)
	in, err := instance.NewInstance(cfg, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	log = in.Log // which says less while the disk is full
	at, err := openPorts(cfg, role, log)
	if err != nil {
		return err
	}
	defer at.close()
	if at.api != nil {
		if at.api.tls, err = serverTLS(cfg.TLS, log); err != nil {
			return err
		}
		at.api.encrypted = at.api.tls != nil
	}
	health := supervise.NewHealth(time.Now)
	in.Metrics.MustRegister(health, metrics.Readiness(func() map[string][]string { return in.Missing(health) }))
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var served sync.WaitGroup
	serve := func(r supervise.Role) { served.Go(func() { supervise.Run(serving, r, health, log) }) }
	defer func() { stopServing(); served.Wait(); at.close() }()
	serve(diskRole(in))
	if at.api != nil {
		fallback := query.StartingHandler(func() map[string][]string { return in.Missing(health) }, documentsWhileStarting(in, at.api.addr))
		serve(supervise.Role{Name: "listen", Run: func(ctx context.Context) error { return at.api.run(ctx, fallback) }})
	}
	if at.metrics != nil {
		serve(metricsRole(in, at.metrics, health))
	}
	boundGarbage(in)
	var fresh *firstFresh
	if role == "run" && in.Config.Feeds != "none" {
		fresh = newFirstFresh()
		defer fresh.open()
	}
	if err := in.Disk.AwaitRoom(ctx); err != nil {
		return supervise.Stopped(ctx, err)
	}
	engineOpened := openEngine(in, role)
	defer func() { _ = engineOpened() }() // before the instance is closed
	if role != "engine" {
		if err := awaitServers(ctx, log, func() error { return in.Open(ctx) }); err != nil {
			return supervise.Stopped(ctx, err)
		}
	}
	server := &admin.Server{Verbs: in.Jobs.Measured(operations.InstanceVerbs(in)), Log: log, Sql: in.OperatorSQL}
	var own *operations.OwnBackfill
	if role == "run" {
		own = operations.NewOwnBackfill(in, server)
	}
	var stages []supervise.Stage
	err = awaitServers(ctx, log, func() (err error) {
		if err := engineOpened(); err != nil {
			return err
		}
		stages, err = buildStages(ctx, in, role, at, own, fresh)
		return err
	})
	if err != nil {
		return supervise.Stopped(ctx, err)
	}
	key := ""
	if role == "run" {
		if err := in.WithRoom(ctx, func() error { return operations.CarryKeysOver(ctx, in) }); err != nil {
			return supervise.Stopped(ctx, err)
		}
		if key, err = operations.FirstKey(ctx, in); err != nil {
			return err
		}
	}

	info := RunInfo(in, at)
	serve(supervise.Role{Name: "admin", Run: func(ctx context.Context) error { return server.Serve(ctx, info.Admin) }})
	if err := in.WithRoom(ctx, func() error { return in.Dir.Announce(info) }); err != nil {
		return supervise.Stopped(ctx, err)
	}
	registry := admin.UserRegistry(os.Environ())
	if err := registry.Add(in.Dir.Path()); err != nil {
		// Commands need --data-dir then; nothing else does.
		log.Warn("instance not listed for commands without --data-dir", "error", err)
	}
	defer func() { _ = registry.Remove(in.Dir.Path()) }() // one that stays is passed over
	if key != "" && !IsTerminal(out) {                    // what is printed is kept in a log then
		path := in.Dir.Path(firstKeyFile)
		if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
			return fmt.Errorf("writing the first key: %w", err)
		}
		log.Info("first API key (plan pro) written; read it and delete the file", "file", path)
		key = ""
	}
	printStart(out, in, role, info, key, time.Since(began))
	for _, s := range stages {
		for _, role := range s.Roles {
			health.Set(role, "starting", nil)
		}
	}
	in.Opening("")
	return supervise.RunStages(ctx, stages, drainLimit, health, log)
}

// openEngine opens the embedded engine of a role that has one, while the log is opened, which takes as long. The returned function waits for
// it, and returns why it failed.
func openEngine(in *instance.Instance, role string) (opened func() error) {
	if len(in.Config.ClickHouse.Addr) > 0 || role != "run" && role != "process" {
		return func() error { return nil }
	}
	opened = sync.OnceValue(func() error {
		_, err := in.Engine()
		return err
	})
	go func() { _ = opened() }()
	return opened
}

func buildStages(ctx context.Context, in *instance.Instance, role string, at Ports, own *operations.OwnBackfill, fresh *firstFresh) ([]supervise.Stage, error) {
	var stages []supervise.Stage
	if role == "run" || role == "process" {
		in.Opening("opening the tables")
		if _, err := operations.Migrate(ctx, in); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		role  string
		build func() ([]supervise.Role, error)
	}{
		{"engine", func() ([]supervise.Role, error) { return engineRoles(in, at) }},
		{"process", func() ([]supervise.Role, error) { return ProcessorRoles(ctx, in, fresh) }},
		{"query", func() ([]supervise.Role, error) {
			return queryRoles(in, at, role == "run" && in.Config.Feeds != "none", own.Waiting, fresh)
		}},
		{"produce", func() ([]supervise.Role, error) { return ProducerRoles(ctx, in) }},
	} {
		if role != "run" && role != part.role {
			continue
		}
		roles, err := part.build()
		if err != nil {
			return nil, err
		}
		if in.Budget != nil && part.role == map[string]string{"run": "process", "engine": "engine"}[role] {
			roles = append(roles, budgetRole(in))
		}
		stages = append(stages, supervise.Stage{Name: part.role, Roles: roles})
	}
	if own != nil {
		stages = append(stages, supervise.Stage{Name: "backfill", Roles: []supervise.Role{own.Role()}})
	}
	if in.Config.Lake.Dir != "" && (role == "run" || role == "process") {
		lake, err := lakeRole(ctx, in, own.Waiting)
		if err != nil {
			return nil, err
		}
		stages = append(stages, supervise.Stage{Name: "lake", Roles: []supervise.Role{lake}})
	}
	if fresh != nil {
		for _, stage := range stages {
			for i, role := range stage.Roles {
				if waitsForPrices(role.Name) {
					stage.Roles[i] = fresh.before(role)
				}
			}
		}
	}
	return stages, nil
}

// RunInfo is what run.json reports of this process.
func RunInfo(in *instance.Instance, at Ports) admin.RunInfo {
	addr := func(p *port) string {
		if p == nil {
			return ""
		}
		return p.addr
	}
	return admin.RunInfo{
		PID: os.Getpid(), Version: operations.Version(), Started: time.Now().UTC(), Admin: in.Dir.SocketPath(),
		Listen: addr(at.api.address()), MetricsListen: addr(at.metrics), SQLListen: addr(at.sql),
		Engine: addr(at.engine), Kafka: in.Stream.Brokers, Redis: in.Config.Redis.Addr, Feeds: in.Config.Feeds,
	}
}

// pagesAddress is how a browser on this machine reaches the pages.
func pagesAddress(listen string, encrypted bool) string {
	scheme := "http"
	if encrypted {
		scheme = "https"
	}
	if host, port, err := net.SplitHostPort(listen); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			listen = net.JoinHostPort("127.0.0.1", port)
		}
	}
	return scheme + "://" + listen + "/"
}

// printStart reports who started it what runs and where.
func printStart(out io.Writer, in *instance.Instance, role string, info admin.RunInfo, key string, took time.Duration) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "  %-16s %s\n", name, value)
		}
	}
	link := func(addr string) string {
		if addr == "" {
			return ""
		}
		return "http://" + addr
	}
	api := link(info.Listen)
	if in.Config.TLS.Cert != "" {
		api = strings.Replace(api, "http:", "https:", 1)
	}
	fmt.Fprintf(out, "marketlog %s: %s, after %v\n", info.Version, role, took.Round(time.Millisecond))
	if in.Config.Feeds == "sim" && (role == "run" || role == "produce") {
		fmt.Fprintf(out, "  SIMULATED: real coins, invented prices (seed %d); --feeds live reads the exchanges\n", in.Config.Sim.Seed)
	}
	if in.Pages != nil {
		page := in.Pages.Address
		if IsTerminal(out) { // what is printed elsewhere is kept, and a link is not to be
			page = in.Pages.Link() + "  (once, within 10 min; `marketlog open` makes another)"
		}
		line("page", page)
	}
	line("REST and stream", api)
	line("SQL", link(info.SQLListen))
	line("engine", link(info.Engine))
	line("metrics", link(info.MetricsListen))
	line("Kafka", strings.Join(info.Kafka, ","))
	line("Redis", strings.Join(info.Redis, ","))
	line("ClickHouse", strings.Join(in.Config.ClickHouse.Addr, ","))
	line("data", in.Dir.Path())
	switch bound := in.Config.Archive.Bytes; {
	case in.Archived == nil:
	case bound == 0 && in.Config.ArchiveInBudget():
		line("archive", in.Config.ArchivePlace())
	default:
		line("archive", fmt.Sprintf("%s, of ticks and prices the newest %.1f GiB", in.Config.ArchivePlace(), float64(in.Config.ArchiveBound())/(1<<30)))
	}
	if in.Budget != nil {
		line("disk budget", fmt.Sprintf("%.1f GB for log, archive and tables (retention.disk_bytes)", float64(in.Budget.Limit)/1e9))
	}
	if key != "" {
		line("API key", key+"  (plan pro; it is not shown again)")
		line("try", fmt.Sprintf(`curl -H "Authorization: Bearer %s" %s/api/v1/prices/BTC`, key, api))
	}
}
