package cli

import (
	"cmp"
	"fmt"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
)

func correctionsCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corrections",
		Short: "Exclude ticks of a venue that were wrong, take that back, and list what was excluded",
		Long: `Exclude ticks of a venue that were wrong, take that back, and list what was excluded. New prices apply a correction within seconds; past
ones stay as they were published until replay --corrected restates them. Corrections are kept for ever, with author, reason and evidence.`,
	}
	var input operations.CorrectionInput
	var from, to string
	exclude := &cobra.Command{
		Use:     "exclude VENUE [SYMBOL]",
		Short:   "Leave out the ticks of a venue, or of one of its markets as the venue spells it",
		Example: "  marketlog corrections exclude poloniex ZEC_USDT --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z --reason 'stuck prices'",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			input.Venue = args[0]
			if len(args) > 1 {
				input.Symbol = args[1]
			}
			if input.From, err = operations.ParseTime("from", from); err != nil {
				return err
			}
			if input.To, err = operations.ParseTime("to", to); err != nil {
				return err
			}
			return printCorrections(rt, cmd, "corrections.exclude", input)
		},
	}
	exclude.Flags().StringVar(&from, "from", "", "leave out what was received at this `TIME` or later (RFC 3339); default now")
	exclude.Flags().StringVar(&to, "to", "", "and before this `TIME`; default until it is withdrawn")
	withdraw := &cobra.Command{
		Use:   "withdraw ID",
		Short: "Take an exclusion back",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Withdraws = args[0]
			return printCorrections(rt, cmd, "corrections.withdraw", input)
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "List all corrections, the first one first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printCorrections(rt, cmd, "corrections.list", input)
		},
	}
	for _, c := range []*cobra.Command{exclude, withdraw} {
		c.Flags().StringVar(&input.Author, "author", "", "who is answerable; stored with the correction; default the name of your user")
		c.Flags().StringVar(&input.Reason, "reason", "", "reason; stored with the correction")
		c.Flags().StringVar(&input.Evidence, "evidence", "", "address or text that shows it; stored with the correction")
	}
	for _, c := range []*cobra.Command{exclude, withdraw, list} {
		config.AddInstanceFlags(c.Flags())
		command.AddOutputFlag(c.Flags())
	}
	cmd.AddCommand(exclude, withdraw, list)
	return cmd
}

// userName is the name of the user of this process, "operator" where it has none.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "operator"
}

// printCorrections calls a command that replies with corrections.
func printCorrections(rt *command.Runtime, cmd *cobra.Command, name string, input operations.CorrectionInput) error {
	input.Author = cmp.Or(input.Author, userName())
	lines, err := command.Lines(rt, cmd, name, input, func(out *command.Output, line operations.CorrectionEntry) error {
		what, state := "withdraws "+line.Withdraws, ""
		if line.Withdraws == "" {
			what = line.Venue + " " + cmp.Or(line.Symbol, "(all markets)")
			state = "from " + line.From.Format(time.RFC3339)
			if line.To != nil {
				state += " to " + line.To.Format(time.RFC3339)
			}
			if line.WithdrawnBy != "" {
				state += ", withdrawn by " + line.WithdrawnBy
			}
		}
		out.Row(line.ID, line.Kind, what, state, line.Author, line.Reason, line.Evidence)
		return nil
	})
	if format, _ := cmd.Flags().GetString("output"); err == nil && lines == 0 && format == "text" {
		fmt.Fprintln(rt.Stdout, "there are no corrections")
	}
	return err
}
