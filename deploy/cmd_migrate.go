package deploy

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// migrationLine is one migration as `marketlog migrate` prints it.
type migrationLine struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

// migrateVerb creates missing topics and brings the tables up to date. Roles do so when they start; on a cluster it can
// be done before.
func migrateVerb(in *Instance) Verb {
	return Verb{Name: "migrate", Run: func(ctx context.Context, _ json.RawMessage, emit func(any) error) error {
		made, err := migrate(ctx, in)
		for _, m := range made {
			if err := emit(migrationLine(m)); err != nil {
				return err
			}
		}
		return err
	}}
}

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
			var line migrationLine
			if err := json.Unmarshal(raw, &line); err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%d %s\n", line.Version, line.Name)
			return nil
		}
		if ok {
			err = callRunning(cmd.Context(), info.Admin, Verb{Name: "migrate"}, jobStart, nil, printLine)
		} else { // it makes what is missing, and be it all
			err = a.callOpened(cmd.Context(), cfg, Verb{Name: "migrate"}, jobStart, nil, printLine)
		}
		if err == nil && made == 0 && !inJSON {
			fmt.Fprintln(a.Stdout, "topics and tables are up to date")
		}
		return err
	}
	addInstanceFlags(cmd.Flags())
	addOutputFlag(cmd.Flags())
	return cmd
}
