package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
)

func configCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show or check the configuration"}
	sub := func(name, short string, show bool) {
		c := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return showConfig(rt, cmd, show)
		}}
		config.AddConfigFlags(c.Flags())
		command.AddDocumentsFlag(c.Flags())
		cmd.AddCommand(c)
	}
	sub("print", "Print every setting and where it comes from; also if some are wrong", true)
	sub("check", "Name every wrong setting; exit 1 if there is one", false)
	return cmd
}

func showConfig(rt *command.Runtime, cmd *cobra.Command, show bool) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	_, settings, err := rt.Load(cmd)
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	switch {
	case out.Objects() && show:
		if err := out.Object(map[string]any{"settings": settings, "faults": append(config.Faults{}, faults...)}); err != nil {
			return err
		}
		return reported(faults)
	case out.Objects():
		if err := out.Object(map[string]any{"faults": append(config.Faults{}, faults...)}); err != nil {
			return err
		}
		return reported(faults)
	case show:
		for _, s := range settings {
			out.Row(fmt.Sprintf("%s: %v", s.Key, s.Value), "# "+s.Origin)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	case len(faults) == 0:
		fmt.Fprintln(rt.Stdout, "the configuration is valid")
	}
	return faults.Err()
}

// reported is for commands whose answer holds the faults already.
func reported(faults config.Faults) error {
	if len(faults) > 0 {
		return command.ErrReported
	}
	return nil
}
