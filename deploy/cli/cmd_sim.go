package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/spf13/cobra"
)

func (a *App) simCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sim", Short: "Steer the simulator of a running instance"}
	var input operations.FaultInput
	faults := &cobra.Command{
		Use:   "faults",
		Short: "Make a simulated venue misbehave for a while; without flags, list which do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := input
			switch {
			case !cmd.Flags().Changed("venue") && !cmd.Flags().Changed("fault") && !cmd.Flags().Changed("for"):
				given = operations.FaultInput{} // only lists
			case given.Venue == "" || given.Fault == "":
				return fmt.Errorf("--venue and --fault go together: name a venue, and as its fault %s", operations.FaultNames())
			}
			return a.simFaults(cmd, given)
		},
	}
	faults.Flags().StringVar(&input.Venue, "venue", "", "which venue or polled source")
	faults.Flags().StringVar(&input.Fault, "fault", "", operations.FaultNames())
	faults.Flags().DurationVar(&input.For, "for", time.Minute, "how long, in the simulator's time")
	config.AddInstanceFlags(faults.Flags())
	addOutputFlag(faults.Flags())
	cmd.AddCommand(faults)
	return cmd
}

func (a *App) simFaults(cmd *cobra.Command, input operations.FaultInput) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	info, ok, err := runningInstance(cmd.Context(), cfg.DataDir)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("no instance runs in %s: start one with `marketlog run --feeds sim --data-dir %s`", cfg.DataDir, cfg.DataDir)
	}
	var lines []operations.FaultLine
	err = admin.CallRunning(cmd.Context(), info.Admin, admin.Command{Name: "sim.faults"}, admin.Start, input, func(raw json.RawMessage) error {
		var line operations.FaultLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for i, line := range lines {
		if inJSON {
			err = errors.Join(err, a.printJSON(line))
			continue
		}
		if i == 0 {
			fmt.Fprintln(table, "VENUE\tFAULT\tUNTIL")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", line.Venue, line.Fault, line.Until.Format(time.RFC3339))
	}
	if len(lines) == 0 && !inJSON {
		fmt.Fprintln(a.Stdout, "no simulated venue does anything wrong")
	}
	return errors.Join(err, table.Flush())
}
