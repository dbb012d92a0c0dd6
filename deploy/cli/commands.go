package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/archive"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/cli/doctor"
	"github.com/marketlog/marketlog/deploy/cli/topics"
	"github.com/marketlog/marketlog/deploy/config"
)

// Exit codes beside 0.
const (
	exitFailed      = 1
	ExitInterrupted = 130
)

// Commands are the commands of the program, without their parent. Each is a file cmd_NAME.go or a package, and a line here.
func Commands(rt *command.Runtime) []*cobra.Command {
	return []*cobra.Command{
		runCommand(rt, "run", "Run everything in this process"),
		runCommand(rt, "produce", "Run only the producers: feeds to log"),
		runCommand(rt, "process", "Run only the processors: log to log and views"),
		runCommand(rt, "query", "Run only the query roles: REST, MCP and the price stream"),
		engineCommand(rt),
		migrateCommand(rt),
		decodeCommand(rt),
		keysCommand(rt),
		topics.Command(rt),
		replayCommand(rt),
		backfillCommand(rt),
		gapsCommand(rt),
		sourcesCommand(rt),
		symbolsCommand(rt),
		earnCommand(rt),
		mcpCommand(rt),
		configCommand(rt),
		deadCommand(rt),
		sqlCommand(rt),
		simCommand(rt),
		openCommand(rt),
		doctor.Command(rt),
		rebuildCommand(rt),
		archive.Command(rt),
		versionCommand(rt),
	}
}

// Execute runs one command line and returns the exit code. When ctx ends, the command drains and returns.
func Execute(ctx context.Context, rt *command.Runtime, args []string) int {
	rt.Args = args
	root := &cobra.Command{
		Use:           "marketlog",
		Short:         "Crypto market data as an append-only log, and views computed from it",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(rt.Stdin)
	root.SetOut(rt.Stdout)
	root.SetErr(rt.Stderr)
	root.SetArgs(args)
	root.AddCommand(Commands(rt)...)
	err := root.ExecuteContext(ctx)
	var faults config.Faults
	switch {
	case err == nil:
		return 0
	case errors.Is(err, command.ErrReported):
	case errors.As(err, &faults):
		fmt.Fprintf(rt.Stderr, "marketlog: the configuration is invalid:\n%s\n", indent(faults.Error()))
	default:
		fmt.Fprintf(rt.Stderr, "marketlog: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n           "))
	}
	return exitFailed
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
