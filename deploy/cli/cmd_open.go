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

func openCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Print a link that opens the pages of a running instance, signed in; it works once, within ten minutes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := rt.Output(cmd)
			if err != nil {
				return err
			}
			return rt.CallRunning(cmd, admin.Command{Name: "open"}, struct{}{}, func(raw json.RawMessage) error {
				var line operations.OpenLine
				if err := json.Unmarshal(raw, &line); err != nil {
					return fmt.Errorf("reading the answer: %w", err)
				}
				if out.Objects() {
					return out.Object(line)
				}
				out.Text("%s", line.URL)
				return out.Flush()
			})
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}
