package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
)

func rebuildCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Restore the rows of all views from the log after files were damaged",
		Long: `Restore the rows of all views from the log, and acknowledge the damages of the log that /readyz names.

Existing rows stay unchanged. Records lost from the log itself cannot be restored: they are listed, and recorded in v_gaps
with venue log and reason damage. To compare existing rows with the log, use ` + "`marketlog replay --verify`" + `.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := rt.Output(cmd)
			if err != nil {
				return err
			}
			cfg, err := rt.LoadInstance(cmd)
			if err != nil {
				return err
			}
			return rt.Call(cmd.Context(), cfg, admin.Command{Name: "rebuild", Long: true}, admin.Start, struct{}{}, func(raw json.RawMessage) error {
				if out.Objects() {
					return out.Object(raw)
				}
				var line operations.RebuildLine
				if err := json.Unmarshal(raw, &line); err != nil {
					return fmt.Errorf("reading a line of the rebuild: %w", err)
				}
				if line.Lost != "" {
					_, err = fmt.Fprintln(rt.Stdout, "permanently lost:", line.Lost)
				} else {
					_, err = fmt.Fprintf(rt.Stdout, "%s: %d records\n", line.Topic, line.Records)
				}
				return err
			})
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	command.AddDocumentsFlag(cmd.Flags())
	return cmd
}
