package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/spf13/cobra"
)

func (a *App) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show or check the configuration"}
	sub := func(name, short string, show bool) {
		c := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return a.showConfig(cmd, show)
		}}
		config.AddConfigFlags(c.Flags())
		addOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	sub("print", "Print every setting and where it comes from; also if some are wrong", true)
	sub("check", "Name every wrong setting; exit 1 if there is one", false)
	return cmd
}

func (a *App) showConfig(cmd *cobra.Command, show bool) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	_, settings, err := a.load(cmd)
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	switch {
	case inJSON && show:
		if err := a.printJSON(map[string]any{"settings": settings, "faults": append(config.Faults{}, faults...)}); err != nil {
			return err
		}
		return reported(faults)
	case inJSON:
		if err := a.printJSON(map[string]any{"faults": append(config.Faults{}, faults...)}); err != nil {
			return err
		}
		return reported(faults)
	case show:
		table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
		for _, s := range settings {
			fmt.Fprintf(table, "%s: %v\t# %s\n", s.Key, s.Value, s.Origin)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	case len(faults) == 0:
		fmt.Fprintln(a.Stdout, "the configuration is right")
	}
	return faults.Err()
}

// reported is for commands whose answer holds the faults already.
func reported(faults config.Faults) error {
	if len(faults) > 0 {
		return errReported
	}
	return nil
}
