package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
)

func simCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "sim", Short: "Control the simulator of a running instance"}
	var input operations.FaultInput
	faults := &cobra.Command{
		Use:   "faults",
		Short: "Inject a fault into a simulated venue; without flags, list active faults",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := input
			switch {
			case !cmd.Flags().Changed("venue") && !cmd.Flags().Changed("fault") && !cmd.Flags().Changed("for"):
				given = operations.FaultInput{} // only lists
			case given.Venue == "" || given.Fault == "":
				return fmt.Errorf("--venue and --fault go together: name a venue, and as its fault %s", operations.FaultNames())
			}
			return simFaults(rt, cmd, given)
		},
	}
	faults.Flags().StringVar(&input.Venue, "venue", "", "venue or polled source")
	faults.Flags().StringVar(&input.Fault, "fault", "", operations.FaultNames())
	faults.Flags().DurationVar(&input.For, "for", time.Minute, "duration, in simulated time")
	config.AddInstanceFlags(faults.Flags())
	command.AddOutputFlag(faults.Flags())
	cmd.AddCommand(faults)
	return cmd
}

func simFaults(rt *command.Runtime, cmd *cobra.Command, input operations.FaultInput) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	var lines []operations.FaultLine
	err = rt.CallRunning(cmd, admin.Command{Name: "sim.faults"}, input, func(raw json.RawMessage) error {
		var line operations.FaultLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		lines = append(lines, line)
		return nil
	}, "--feeds sim")
	if err != nil {
		return err
	}
	if len(lines) == 0 && !out.Objects() {
		out.Text("no faults are active")
		return out.Flush()
	}
	return command.Print(out, []any{"VENUE", "FAULT", "UNTIL"}, lines, func(line operations.FaultLine) []any {
		return []any{line.Venue, line.Fault, line.Until.Format(time.RFC3339)}
	})
}
