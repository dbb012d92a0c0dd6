package cli

import (
	"encoding/json"
	"fmt"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/spf13/cobra"
)

func (a *App) rebuildCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Write the rows of all views again from what the log has, after files were damaged",
		Long: `Write the rows of all views again from what the log has, and settle the damages of the log that /readyz names.

Rows that are there stay as they are. What the log itself has lost cannot be mended: it is listed, and is a row of v_gaps
with venue log and reason damage. Views that were made before keep their rows; ` + "`marketlog replay --verify`" + ` compares.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inJSON, err := asJSON(cmd)
			if err != nil {
				return err
			}
			cfg, _, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.call(cmd.Context(), cfg, admin.Command{Name: "rebuild", Long: true}, admin.Start, struct{}{}, func(raw json.RawMessage) error {
				if inJSON {
					return a.printJSON(raw)
				}
				var line operations.RebuildLine
				if err := json.Unmarshal(raw, &line); err != nil {
					return fmt.Errorf("reading a line of the rebuild: %w", err)
				}
				if line.Lost != "" {
					_, err = fmt.Fprintln(a.Stdout, "lost for good:", line.Lost)
				} else {
					_, err = fmt.Fprintf(a.Stdout, "%s: %d records\n", line.Topic, line.Records)
				}
				return err
			})
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	addOutputFlag(cmd.Flags())
	return cmd
}
