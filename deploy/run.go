package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
)

// drainLimit is what stopping may take; another second or two go to closing the engine and the log.
const drainLimit = 8 * time.Second

// run opens an instance, starts the parts of the role on it (run: all) and waits until ctx ends. Start order: broker,
// topics, engine, tables, processors, query, producers; each later one finds the earlier ones there.
func run(ctx context.Context, cfg Config, role string, out io.Writer, log *slog.Logger) (err error) {
	began := time.Now()
	in, err := OpenInstance(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	at, err := openPorts(cfg, role)
	if err != nil {
		return err
	}
	health := NewHealth(time.Now)
	stages, err := buildStages(ctx, in, role, at, health)
	if err != nil {
		return err
	}
	key := ""
	if role == "run" {
		if key, err = in.firstKey(ctx); err != nil {
			return err
		}
	}

	info := in.info(at)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	admin := &adminServer{verbs: instanceVerbs(in), log: log}
	go func() {
		defer close(served)
		supervise(serving, Role{Name: "admin", Run: func(ctx context.Context) error { return admin.serve(ctx, info.Admin) }}, health, log)
	}()
	defer func() { stopServing(); <-served }()
	if err := in.Dir.Announce(info); err != nil {
		return err
	}
	printStart(out, in, role, info, key, time.Since(began))
	return runStages(ctx, stages, drainLimit, health, log)
}

func openPorts(cfg Config, role string) (at ports, err error) {
	for _, p := range []struct {
		key, addr string
		wanted    bool
		into      **port
	}{
		{"listen", cfg.Listen, role == "run" || role == "query", &at.api},
		{"metrics_listen", cfg.MetricsListen, true, &at.metrics},
		{"sql_listen", cfg.SQLListen, role == "run" && len(cfg.ClickHouse.Addr) == 0, &at.sql},
	} {
		if !p.wanted || p.addr == "" {
			continue
		}
		if *p.into, err = openPort(p.key, p.addr); err != nil {
			return at, err
		}
	}
	return at, nil
}

func buildStages(ctx context.Context, in *Instance, role string, at ports, health *Health) ([]stage, error) {
	var stages []stage
	if at.metrics != nil {
		stages = append(stages, stage{"metrics", []Role{metricsRole(in, at.metrics, health)}})
	}
	if role == "run" || role == "process" {
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
		{"process", func() ([]Role, error) { return processorRoles(ctx, in) }},
		{"query", func() ([]Role, error) { return queryRoles(in, at) }},
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
		Listen: addr(at.api), MetricsListen: addr(at.metrics), SQLListen: addr(at.sql),
		Kafka: in.Stream.Brokers, Redis: in.Config.Redis.Addr, Feeds: in.Config.Feeds,
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
	fmt.Fprintf(out, "marketlog %s: %s, after %v\n", info.Version, role, took.Round(time.Millisecond))
	if in.Config.Feeds == "sim" && (role == "run" || role == "produce") {
		fmt.Fprintf(out, "  SIMULATED: real coins, invented prices (seed %d); --feeds live reads the exchanges\n", in.Config.Sim.Seed)
	}
	say("REST and stream", link(info.Listen))
	say("SQL", link(info.SQLListen))
	say("metrics", link(info.MetricsListen))
	say("Kafka", strings.Join(info.Kafka, ","))
	say("Redis", strings.Join(info.Redis, ","))
	say("ClickHouse", strings.Join(in.Config.ClickHouse.Addr, ","))
	say("data", in.Dir.Path())
	if key != "" {
		say("API key", key+"  (plan pro; it is not shown again)")
		say("try", fmt.Sprintf(`curl -H "Authorization: Bearer %s" http://%s/api/v1/prices/BTC`, key, info.Listen))
	}
}
