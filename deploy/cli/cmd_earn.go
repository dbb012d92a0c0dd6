package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
)

func earnCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "earn", Short: "Correct the benchmark of earn products"}
	var input operations.CorrectInput
	correct := &cobra.Command{
		Use:   "correct DATE --without PROVIDER --reason TEXT",
		Short: "Recompute the fixings of a day without providers that reported wrong rates; the old fixings are kept, superseded",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Date = args[0]
			return correctEarn(rt, cmd, input)
		},
	}
	flags := correct.Flags()
	flags.StringSliceVar(&input.Without, "without", nil, "slugs of the providers to exclude")
	flags.StringVar(&input.Reason, "reason", "", "reason; published with the correction")
	config.AddInstanceFlags(flags)
	command.AddOutputFlag(flags)
	cmd.AddCommand(correct)
	return cmd
}

func correctEarn(rt *command.Runtime, cmd *cobra.Command, input operations.CorrectInput) error {
	_, err := command.Lines(rt, cmd, "earn.correct", input, func(out *command.Output, line operations.CorrectionLine) error {
		out.Row(line.Fixing, line.Median, fmt.Sprintf("was %g", line.Was), fmt.Sprintf("%d providers", line.Providers))
		return nil
	})
	return err
}
