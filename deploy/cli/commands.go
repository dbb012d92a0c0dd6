package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/stream"
)

// Exit codes beside 0.
const (
	exitFailed      = 1
	ExitInterrupted = 130
)

// errReported ends a command that has said all there is to say; the exit code is 1.
var errReported = errors.New("reported")

// App is the command line of one call. Each command is a file cmd_NAME.go and a line in commands.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string

	args []string // of the call under way
}

// Commands are the commands of the program, without their parent.
func (a *App) Commands() []*cobra.Command {
	return []*cobra.Command{
		a.runCommand("run", "Run everything in this process"),
		a.runCommand("produce", "Run only the producers: feeds to log"),
		a.runCommand("process", "Run only the processors: log to log and views"),
		a.runCommand("query", "Run only the query side: REST and the price stream"),
		a.engineCommand(),
		a.migrateCommand(),
		a.decodeCommand(),
		a.keysCommand(),
		a.topicsCommand(),
		a.replayCommand(),
		a.backfillCommand(),
		a.gapsCommand(),
		a.sourcesCommand(),
		a.symbolsCommand(),
		a.earnCommand(),
		a.mcpCommand(),
		a.configCommand(),
		a.deadCommand(),
		a.sqlCommand(),
		a.simCommand(),
		a.doctorCommand(),
		a.rebuildCommand(),
		a.versionCommand(),
	}
}

// Execute runs one command line and returns the exit code. When ctx ends, the command drains and returns.
func (a *App) Execute(ctx context.Context, args []string) int {
	a.args = args
	root := &cobra.Command{
		Use:           "marketlog",
		Short:         "Crypto prices as an append-only log, and views that equal it",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetArgs(args)
	root.AddCommand(a.Commands()...)
	err := root.ExecuteContext(ctx)
	var faults config.Faults
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
	case errors.As(err, &faults):
		fmt.Fprintf(a.Stderr, "marketlog: the configuration is wrong:\n%s\n", indent(faults.Error()))
	default:
		fmt.Fprintf(a.Stderr, "marketlog: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n           "))
	}
	return exitFailed
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// addOutputFlag adds -o.
func addOutputFlag(flags *pflag.FlagSet) {
	flags.StringP("output", "o", "text", "text or json")
}

// asJSON reads -o.
func asJSON(cmd *cobra.Command) (bool, error) {
	switch format, _ := cmd.Flags().GetString("output"); format {
	case "json":
		return true, nil
	case "text":
		return false, nil
	default:
		return false, fmt.Errorf("--output %q is unknown; use text or json", format)
	}
}

// load reads the configuration of a command.
func (a *App) load(cmd *cobra.Command) (config.Config, []config.Setting, error) {
	path, _ := cmd.Flags().GetString("config")
	return config.LoadConfig(config.Sources{File: path, Env: a.Env, Flags: cmd.Flags()})
}

// patience is how long a command waits for an instance that is just starting, or for another command to finish.
const patience = 15 * time.Second

// runningInstance is RunningInstance with patience.
func runningInstance(ctx context.Context, dir string) (info admin.RunInfo, ok bool, err error) {
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

// call asks the instance for a verb: the running one, else one that this command opens. v needs its name and length
// only. Without an instance in the data directory it is an error: a command never makes one.
func (a *App) call(ctx context.Context, cfg config.Config, v admin.Command, action admin.Action, input any, onLine func(json.RawMessage) error) error {
	info, ok, err := runningInstance(ctx, cfg.DataDir)
	if err != nil {
		return err
	}
	if ok {
		return admin.CallRunning(ctx, info.Admin, v, action, input, onLine)
	}
	if err := findInstance(cfg, "log"); err != nil {
		return err
	}
	return a.callOpened(ctx, cfg, v, action, input, onLine)
}

// callOpened calls a verb of the instance in the data directory, which nobody runs.
func (a *App) callOpened(ctx context.Context, cfg config.Config, v admin.Command, action admin.Action, input any, onLine func(json.RawMessage) error) error {
	in, err := instance.OpenInstance(ctx, alone(cfg), a.quietLogger(cfg))
	if err != nil {
		return err
	}
	here, ok := operations.InstanceVerbs(in)[v.Name]
	if !ok {
		return errors.Join(fmt.Errorf("this program cannot %q", v.Name), in.Close())
	}
	return errors.Join(admin.CallHere(ctx, here, action, input, onLine), in.Close())
}

// alone is the configuration of an instance that a command opens for itself: only the command uses its broker, so that it
// takes any free address. Another instance may have the configured one.
func alone(cfg config.Config) config.Config {
	cfg.Kafka.Listen = "127.0.0.1:0"
	return cfg
}

// findInstance is nil if the data directory has one of the folders of an instance, or any where the log is outside. Else a
// folder that was misspelt would be taken for an empty instance, and made.
func findInstance(cfg config.Config, folders ...string) error {
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

// instancesBelow names the instances in the folders below and beside one, in words.
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

// openLog reaches the log of an instance: the configured brokers, else those of the running instance, else the log in
// the data directory, else whoever listens where the instance would. The caller calls done.
func (a *App) openLog(ctx context.Context, cfg config.Config) (log stream.Config, done func() error, err error) {
	done = func() error { return nil }
	if len(cfg.Kafka.Brokers) > 0 {
		log, err = cfg.StreamConfig(cfg.Kafka.Brokers)
		return log, done, err
	}
	info, ok, err := runningInstance(ctx, cfg.DataDir)
	if err != nil {
		return log, nil, err
	}
	if ok {
		log, err = cfg.StreamConfig(info.Kafka)
		return log, done, err
	}
	missing := findInstance(cfg, "log")
	if missing == nil {
		in, err := instance.OpenInstance(ctx, alone(cfg), a.quietLogger(cfg))
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

// quietLogger is for commands that open parts for themselves: nobody wants to read how they are opened.
func (a *App) quietLogger(cfg config.Config) *slog.Logger {
	if cfg.Log.Level == "info" {
		cfg.Log.Level = "warn"
	}
	return newLogger(cfg.Log, a.Stderr)
}

// printJSON writes one line of JSON.
func (a *App) printJSON(v any) error {
	return json.NewEncoder(a.Stdout).Encode(v)
}
