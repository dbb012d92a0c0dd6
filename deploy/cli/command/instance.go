package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/stream"
)

// Load reads the configuration of a command that starts an instance or shows what it would be started with.
func (rt *Runtime) Load(cmd *cobra.Command) (config.Config, []config.Setting, error) {
	path, _ := cmd.Flags().GetString("config")
	return config.LoadConfig(config.Sources{File: path, Env: rt.Env, Flags: cmd.Flags()})
}

// LoadInstance reads the configuration of a command about an instance: where nothing names a data directory, it is that of the
// one instance of this user that runs. It is an error if several run and none of them in the default directory.
func (rt *Runtime) LoadInstance(cmd *cobra.Command) (config.Config, error) {
	path, _ := cmd.Flags().GetString("config")
	cfg, _, err := config.LoadConfig(config.Sources{File: path, Env: rt.Env, Flags: cmd.Flags(), DataDir: rt.runningDataDir})
	return cfg, err
}

func (rt *Runtime) runningDataDir() (string, error) {
	running := admin.UserRegistry(rt.Env).Running()
	switch len(running) {
	case 0:
		return "", nil
	case 1:
		return running[0], nil
	}
	own, err := filepath.Abs(config.DefaultConfig().DataDir)
	if err == nil && slices.Contains(running, own) {
		return own, nil
	}
	return "", fmt.Errorf("%d instances run; name one: --data-dir %s", len(running), strings.Join(running, ", or --data-dir "))
}

// patience is how long a command waits for an instance that is starting, or for another command to finish.
const patience = 15 * time.Second

// RunningInstance is admin.RunningInstance, but waits up to patience for an instance that is starting or held by another command.
func RunningInstance(ctx context.Context, dir string) (info admin.RunInfo, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		info, ok, err = admin.RunningInstance(dir)
		var held *admin.HeldError
		if !errors.As(err, &held) {
			return info, ok, err
		}
		select {
		case <-ctx.Done():
			return info, false, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Call runs a command of the instance: of the running one, else of one that this call opens. v needs Name and Long only. It
// is an error if the data directory has no instance: a command never creates one.
func (rt *Runtime) Call(ctx context.Context, cfg config.Config, v admin.Command, action admin.Action, input any, onLine func(json.RawMessage) error) error {
	info, ok, err := RunningInstance(ctx, cfg.DataDir)
	if err != nil {
		return err
	}
	if ok {
		return admin.CallRunning(ctx, info.Admin, v, action, input, onLine)
	}
	if err := FindInstance(cfg, "log"); err != nil {
		return err
	}
	return rt.CallOpened(ctx, cfg, v, action, input, onLine)
}

// CallRunning runs a command of the instance that runs. It is an error if none does, which names flags to start one with, such as --feeds sim.
func (rt *Runtime) CallRunning(cmd *cobra.Command, v admin.Command, input any, onLine func(json.RawMessage) error, flags ...string) error {
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return err
	}
	info, ok, err := RunningInstance(cmd.Context(), cfg.DataDir)
	switch {
	case err != nil:
		return err
	case !ok:
		start := strings.Join(append(append([]string{"marketlog run"}, flags...), "--data-dir "+cfg.DataDir), " ")
		return fmt.Errorf("no instance runs in %s: start one with `%s`", cfg.DataDir, start)
	}
	return admin.CallRunning(cmd.Context(), info.Admin, v, admin.Start, input, onLine)
}

// CallOpened opens the instance in the data directory, which no process runs, and runs a command of it.
func (rt *Runtime) CallOpened(ctx context.Context, cfg config.Config, v admin.Command, action admin.Action, input any, onLine func(json.RawMessage) error) error {
	in, err := instance.OpenInstance(ctx, alone(cfg), rt.QuietLogger(cfg))
	if err != nil {
		return err
	}
	here, ok := operations.InstanceVerbs(in)[v.Name]
	if !ok {
		return errors.Join(fmt.Errorf("this program cannot %q", v.Name), in.Close())
	}
	return errors.Join(admin.CallHere(ctx, here, action, input, onLine), in.Close())
}

// alone is the configuration of an instance that only this command uses: its broker takes any free address, since another
// instance may use the configured one.
func alone(cfg config.Config) config.Config {
	cfg.Kafka.Listen = "127.0.0.1:0"
	return cfg
}

// FindInstance returns an error unless the data directory has one of the given folders of an instance, or, with external
// brokers, exists. Without this check a misspelt directory would be created as an empty instance.
func FindInstance(cfg config.Config, folders ...string) error {
	if len(cfg.Kafka.Brokers) > 0 {
		folders = []string{"."}
	}
	for _, folder := range folders {
		if stat, err := os.Stat(filepath.Join(cfg.DataDir, folder)); err == nil && stat.IsDir() {
			return nil
		}
	}
	holds := "holds no log"
	if _, err := os.Stat(cfg.DataDir); err != nil {
		holds = "is not there"
	}
	return fmt.Errorf("there is no instance: %s %s; name the folder of one with --data-dir%s, or start one with `marketlog run --data-dir %s`",
		cfg.DataDir, holds, instancesBelow(cfg.DataDir), cfg.DataDir)
}

// instancesBelow suggests up to three instances in subfolders and sibling folders.
func instancesBelow(dir string) string {
	var found []string
	for _, pattern := range []string{filepath.Join(dir, "*", "log"), filepath.Join(filepath.Dir(dir), "*", "log")} {
		logs, _ := filepath.Glob(pattern) // fails on a bad pattern only: then nothing is suggested
		for _, log := range logs {
			found = append(found, filepath.Dir(log))
		}
	}
	if len(found) == 0 {
		return ""
	}
	return ", such as " + strings.Join(slices.Compact(found[:min(3, len(found))]), " or ")
}

// OpenLog connects to the log of an instance: the configured brokers, else those of the running instance, else the log in the
// data directory, else a broker at the configured address. The caller calls done.
func (rt *Runtime) OpenLog(ctx context.Context, cfg config.Config) (log stream.Config, done func() error, err error) {
	done = func() error { return nil }
	if len(cfg.Kafka.Brokers) > 0 {
		log, err = cfg.StreamConfig(cfg.Kafka.Brokers)
		return log, done, err
	}
	info, ok, err := RunningInstance(ctx, cfg.DataDir)
	if err != nil {
		return log, nil, err
	}
	if ok {
		log, err = cfg.StreamConfig(info.Kafka)
		return log, done, err
	}
	missing := FindInstance(cfg, "log")
	if missing == nil {
		in, err := instance.OpenInstance(ctx, alone(cfg), rt.QuietLogger(cfg))
		if err != nil {
			return log, nil, err
		}
		return in.Stream, in.Close, nil
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", cfg.Kafka.Listen)
	if err != nil {
		return log, nil, missing
	}
	_ = conn.Close()
	log, err = cfg.StreamConfig([]string{cfg.Kafka.Listen})
	return log, done, err
}

// QuietLogger is for commands that open an instance themselves: it drops the info lines of opening it.
func (rt *Runtime) QuietLogger(cfg config.Config) *slog.Logger {
	if cfg.Log.Level == "info" {
		cfg.Log.Level = "warn"
	}
	return NewLogger(cfg.Log, rt.Stderr)
}
