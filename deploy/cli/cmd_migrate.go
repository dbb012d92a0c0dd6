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

func migrateCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Create missing topics and bring the tables up to date", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err := rt.Output(cmd)
		if err != nil {
			return err
		}
		cfg, _, err := rt.Load(cmd)
		if err != nil {
			return err
		}
		info, ok, err := command.RunningInstance(cmd.Context(), cfg.DataDir)
		if err != nil {
			return err
		}
		made := 0
		printLine := func(raw json.RawMessage) error {
			made++
			if out.Objects() {
				return out.Object(raw)
			}
			var line operations.MigrationLine
			if err := json.Unmarshal(raw, &line); err != nil {
				return err
			}
			fmt.Fprintf(rt.Stdout, "%d %s\n", line.Version, line.Name)
			return nil
		}
		if ok {
			err = admin.CallRunning(cmd.Context(), info.Admin, admin.Command{Name: "migrate"}, admin.Start, nil, printLine)
		} else { // it creates whatever is missing, also a whole instance
			err = rt.CallOpened(cmd.Context(), cfg, admin.Command{Name: "migrate"}, admin.Start, nil, printLine)
		}
		if err == nil && made == 0 && !out.Objects() {
			fmt.Fprintln(rt.Stdout, "topics and tables are up to date")
		}
		return err
	}
	config.AddInstanceFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}
