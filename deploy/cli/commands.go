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
	"github.com/marketlog/marketlog/deploy/cli/market"
	"github.com/marketlog/marketlog/deploy/cli/sql"
	"github.com/marketlog/marketlog/deploy/cli/topics"
	"github.com/marketlog/marketlog/deploy/config"
)

// Exit codes beside 0.
const (
	exitFailed      = 1
	ExitInterrupted = 130
)

// group is a heading of the help with its commands.
type group struct {
	id, title string
	commands  []*cobra.Command
}

// groups are the commands of the program as the help shows them. Each is a file cmd_NAME.go or a package, and a line here.
func groups(rt *command.Runtime) []group {
	return []group{
		{"use", "Prices and yields:", append(market.Commands(rt), openCommand(rt), sql.Command(rt), mcpCommand(rt))},
		{"roles", "Start:", []*cobra.Command{
			runCommand(rt, "run", "Run everything in this process"),
			runCommand(rt, "produce", "Run only the producers: feeds to log"),
			runCommand(rt, "process", "Run only the processors: log to log and views"),
			runCommand(rt, "query", "Run only the query roles: REST, MCP and the price stream"),
			engineCommand(rt),
		}},
		{"look", "Look:", []*cobra.Command{
			doctor.Command(rt), topics.Command(rt), sourcesCommand(rt), gapsCommand(rt), deadCommand(rt), archive.Command(rt), decodeCommand(rt),
		}},
		{"operate", "Operate:", []*cobra.Command{
			keysCommand(rt), configCommand(rt), migrateCommand(rt), backfillCommand(rt), symbolsCommand(rt), correctionsCommand(rt), earnCommand(rt), exportCommand(rt), importCommand(rt), simCommand(rt),
		}},
		{"recover", "Prove and recover:", []*cobra.Command{replayCommand(rt), rebuildCommand(rt)}},
		{"", "", []*cobra.Command{versionCommand(rt)}},
	}
}

// Commands are the commands of the program, without their parent.
func Commands(rt *command.Runtime) []*cobra.Command {
	var all []*cobra.Command
	for _, g := range groups(rt) {
		all = append(all, g.commands...)
	}
	return all
}

// Short is what the program is, in a line.
const Short = "Crypto prices and yields with an answer to two questions: why this number, and what was published then"

// Execute runs one command line and returns the exit code. When ctx ends, the command drains and returns.
func Execute(ctx context.Context, rt *command.Runtime, args []string) int {
	rt.Args = args
	root := &cobra.Command{
		Use:           "marketlog",
		Short:         Short,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(rt.Stdin)
	root.SetOut(rt.Stdout)
	root.SetErr(rt.Stderr)
	root.SetArgs(args)
	for _, g := range groups(rt) {
		if g.id != "" {
			root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		}
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
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
