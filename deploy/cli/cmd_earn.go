package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/spf13/cobra"
)

func (a *App) earnCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "earn", Short: "Correct the benchmark of earn products"}
	var input operations.CorrectInput
	correct := &cobra.Command{
		Use:   "correct DATE --without PROVIDER --reason TEXT",
		Short: "Work the fixings of a day out again without providers that told nonsense; the fixings stay, superseded",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Date = args[0]
			return a.correctEarn(cmd, input)
		},
	}
	flags := correct.Flags()
	flags.StringSliceVar(&input.Without, "without", nil, "slugs of providers that do not count")
	flags.StringVar(&input.Reason, "reason", "", "why; published with the correction")
	config.AddInstanceFlags(flags)
	addOutputFlag(flags)
	cmd.AddCommand(correct)
	return cmd
}

func (a *App) correctEarn(cmd *cobra.Command, input operations.CorrectInput) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	err = a.call(cmd.Context(), cfg, admin.Command{Name: "earn.correct"}, admin.Start, input, func(raw json.RawMessage) error {
		if inJSON {
			return a.printJSON(raw)
		}
		var line operations.CorrectionLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading a correction: %w", err)
		}
		_, err := fmt.Fprintf(table, "%s\t%g\twas %g\t%d providers\n", line.Fixing, line.Median, line.Was, line.Providers)
		return err
	})
	return errors.Join(err, table.Flush())
}
