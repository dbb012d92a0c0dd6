package cli

import (
	"encoding/json"
	"fmt"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/spf13/cobra"
)

func (a *App) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Create missing topics and bring the tables up to date", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		inJSON, err := asJSON(cmd)
		if err != nil {
			return err
		}
		cfg, _, err := a.load(cmd)
		if err != nil {
			return err
		}
		info, ok, err := runningInstance(cmd.Context(), cfg.DataDir)
		if err != nil {
			return err
		}
		made := 0
		printLine := func(raw json.RawMessage) error {
			made++
			if inJSON {
				_, err := fmt.Fprintf(a.Stdout, "%s\n", raw)
				return err
			}
			var line operations.MigrationLine
			if err := json.Unmarshal(raw, &line); err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%d %s\n", line.Version, line.Name)
			return nil
		}
		if ok {
			err = admin.CallRunning(cmd.Context(), info.Admin, admin.Command{Name: "migrate"}, admin.Start, nil, printLine)
		} else { // it makes what is missing, and be it all
			err = a.callOpened(cmd.Context(), cfg, admin.Command{Name: "migrate"}, admin.Start, nil, printLine)
		}
		if err == nil && made == 0 && !inJSON {
			fmt.Fprintln(a.Stdout, "topics and tables are up to date")
		}
		return err
	}
	config.AddInstanceFlags(cmd.Flags())
	addOutputFlag(cmd.Flags())
	return cmd
}
