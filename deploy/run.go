package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/query"
)

// drainLimit is what stopping may take; another second or two go to closing the engine and the log.
const drainLimit = 8 * time.Second

// firstKeyFile holds the key of a first start whose output is no terminal.
const firstKeyFile = "first-key"

// run opens an instance, starts the parts of the role on it (run: all) and waits until ctx ends. Its addresses answer
// first: /healthz at once, /readyz with what is missing. Then follow broker, topics, engine, tables, processors, query,
// producers; each later one finds the earlier ones there.
func run(ctx context.Context, cfg Config, role string, out io.Writer, log *slog.Logger) (err error) {
	began := time.Now()
	dir, err := AwaitDataDir(ctx, cfg.DataDir)
	if err != nil {
		return err
	}
	dir.AwaitAddresses(ctx, cfg.Listen, cfg.MetricsListen, cfg.SQLListen, cfg.ClickHouse.Listen, cfg.Kafka.Listen)
	in, err := newInstance(cfg, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	at, err := openPorts(cfg, role, log)
	if err != nil {
		return err
	}
	defer at.close()
	if at.api != nil {
		if at.api.tls, err = serverTLS(cfg.TLS, log); err != nil {
			return err
		}
	}
	health := NewHealth(time.Now)
	in.Metrics.MustRegister(health, readiness(func() map[string][]string { return in.missing(health) }))
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var served sync.WaitGroup
	serve := func(r Role) { served.Go(func() { supervise(serving, r, health, log) }) }
	defer func() { stopServing(); served.Wait(); at.close() }()
	serve(diskRole(in))
	if at.api != nil {
		fallback := query.StartingHandler(func() map[string][]string { return in.missing(health) })
		serve(Role{Name: "listen", Run: func(ctx context.Context) error { return at.api.run(ctx, fallback) }})
	}
	if at.metrics != nil {
		serve(metricsRole(in, at.metrics, health))
	}
	if err := in.disk.AwaitRoom(ctx); err != nil {
		return stopped(ctx, err)
	}
	if role != "engine" {
		if err := awaitServers(ctx, log, func() error { return in.open(ctx) }); err != nil {
			return stopped(ctx, err)
		}
	}
	admin := &adminServer{verbs: in.jobs.measured(instanceVerbs(in)), log: log, sql: in.operatorSQL}
	if role == "run" {
		in.own = newOwnBackfill(in, admin)
	}
	var stages []stage
	err = awaitServers(ctx, log, func() (err error) {
		stages, err = buildStages(ctx, in, role, at)
		return err
	})
	if err != nil {
		return stopped(ctx, err)
	}
	key := ""
	if role == "run" {
		if err := in.withRoom(ctx, func() error { return in.carryKeysOver(ctx) }); err != nil {
			return stopped(ctx, err)
		}
		if key, err = in.firstKey(ctx); err != nil {
			return err
		}
	}

	info := in.info(at)
	serve(Role{Name: "admin", Run: func(ctx context.Context) error { return admin.serve(ctx, info.Admin) }})
	if err := in.withRoom(ctx, func() error { return in.Dir.Announce(info) }); err != nil {
		return stopped(ctx, err)
	}
	if key != "" && !isTerminal(out) { // what is printed is kept in a log then
		path := in.Dir.Path(firstKeyFile)
		if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
			return fmt.Errorf("writing the first key: %w", err)
		}
		log.Info("the first API key, of plan pro, was written; read it and remove the file", "file", path)
		key = ""
	}
	printStart(out, in, role, info, key, time.Since(began))
	for _, s := range stages {
		for _, role := range s.roles {
			health.set(role, "starting", nil)
		}
	}
	in.opening("")
	return runStages(ctx, stages, drainLimit, health, log)
}

// stopped is nil if all that ended a start was being asked to stop while it waited.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func openPorts(cfg Config, role string, log *slog.Logger) (at ports, err error) {
	var api *port
	for _, p := range []struct {
		key, addr string
		wanted    bool
		into      **port
	}{
		{"listen", cfg.Listen, role == "run" || role == "query", &api},
		{"metrics_listen", cfg.MetricsListen, true, &at.metrics},
		{"sql_listen", cfg.SQLListen, role == "engine" || role == "run" && len(cfg.ClickHouse.Addr) == 0, &at.sql},
		{"clickhouse.listen", cfg.ClickHouse.Listen, role == "engine", &at.engine},
	} {
		if !p.wanted || p.addr == "" {
			continue
		}
		if *p.into, err = openPort(p.key, p.addr, log); err != nil {
			at.close()
			return at, err
		}
	}
	if api != nil {
		at.api = newFront(api)
	}
	return at, nil
}

func buildStages(ctx context.Context, in *Instance, role string, at ports) ([]stage, error) {
	var stages []stage
	if role == "run" || role == "process" {
		in.opening("opening the tables")
		if len(in.Config.ClickHouse.Addr) == 0 {
			if _, err := in.Engine(); err != nil {
				return nil, err
			}
		}
		if _, err := migrate(ctx, in); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		role  string
		build func() ([]Role, error)
	}{
		{"engine", func() ([]Role, error) { return engineRoles(in, at) }},
		{"process", func() ([]Role, error) { return processorRoles(ctx, in) }},
		{"query", func() ([]Role, error) { return queryRoles(in, at, role == "run" && in.Config.Feeds != "none") }},
		{"produce", func() ([]Role, error) { return producerRoles(ctx, in) }},
	} {
		if role != "run" && role != part.role {
			continue
		}
		roles, err := part.build()
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage{part.role, roles})
	}
	if in.own != nil {
		stages = append(stages, stage{"backfill", []Role{in.own.role()}})
	}
	return stages, nil
}

// info is what run.json says of this process.
func (in *Instance) info(at ports) RunInfo {
	addr := func(p *port) string {
		if p == nil {
			return ""
		}
		return p.addr
	}
	return RunInfo{
		PID: os.Getpid(), Version: version(), Started: time.Now().UTC(), Admin: in.Dir.socketPath(),
		Listen: addr(at.api.address()), MetricsListen: addr(at.metrics), SQLListen: addr(at.sql),
		Engine: addr(at.engine), Kafka: in.Stream.Brokers, Redis: in.Config.Redis.Addr, Feeds: in.Config.Feeds,
	}
}

// printStart tells who started it what runs and where.
func printStart(out io.Writer, in *Instance, role string, info RunInfo, key string, took time.Duration) {
	say := func(name, value string) {
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
	say("REST and stream", api)
	say("SQL", link(info.SQLListen))
	say("engine", link(info.Engine))
	say("metrics", link(info.MetricsListen))
	say("Kafka", strings.Join(info.Kafka, ","))
	say("Redis", strings.Join(info.Redis, ","))
	say("ClickHouse", strings.Join(in.Config.ClickHouse.Addr, ","))
	say("data", in.Dir.Path())
	if key != "" {
		say("API key", key+"  (plan pro; it is not shown again)")
		say("try", fmt.Sprintf(`curl -H "Authorization: Bearer %s" %s/api/v1/prices/BTC`, key, api))
	}
}
