package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
)

func sourcesCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "sources", Short: "List the sources of reference values, switch them on and off, and check them"}
	add := func(use, short, long string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) {
		c := &cobra.Command{Use: use, Short: short, Long: long, Args: args, RunE: run}
		config.AddInstanceFlags(c.Flags())
		command.AddOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	list := func(name string, input func(args []string) operations.SourceInput) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error { return listSources(rt, cmd, name, input(args)) }
	}
	add("list", "List the sources: whether each is polled, how often, and its terms", "", cobra.NoArgs,
		list("sources.list", func([]string) operations.SourceInput { return operations.SourceInput{} }))
	add("enable NAME", "Enable polling of a source", "Enable polling of a source, now and after restarts. Read its terms first: `marketlog sources list` shows them.", cobra.ExactArgs(1),
		list("sources.switch", func(args []string) operations.SourceInput { return operations.SourceInput{Name: args[0], On: true} }))
	add("disable NAME", "Disable polling of a source", "Disable polling of a source, now and after restarts. Its recorded values are kept.", cobra.ExactArgs(1),
		list("sources.switch", func(args []string) operations.SourceInput { return operations.SourceInput{Name: args[0]} }))
	add("check [NAME]", "Poll each feed once, and report changes in the format of its responses; exit 1 if there are any",
		"Poll each feed of all enabled sources, or of one source, once, and report fields that are missing or have another type than the adapter expects; exit 1 if there are any, or if a source cannot be read.",
		cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error { return checkCommand(rt, cmd, args) })
	return cmd
}

// sourcesCall calls the running instance, or reads the state in the data directory.
func sourcesCall(rt *command.Runtime, cmd *cobra.Command, name string, input operations.SourceInput, onLine func(json.RawMessage) error) error {
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return err
	}
	info, ok, err := command.RunningInstance(cmd.Context(), cfg.DataDir)
	if err != nil {
		return err
	}
	if ok {
		return admin.CallRunning(cmd.Context(), info.Admin, admin.Command{Name: name}, admin.Start, input, onLine)
	}
	if name != "sources.switch" { // which is allowed before the first start
		if err := command.FindInstance(cfg, "."); err != nil {
			return err
		}
	}
	in, err := instance.HoldInstance(cfg, rt.QuietLogger(cfg)) // neither log nor engine is needed
	if err != nil {
		return err
	}
	return errors.Join(admin.CallHere(cmd.Context(), admin.NewVerbs(operations.SourceVerbs(in)...)[name], admin.Start, input, onLine), in.Close())
}

func listSources(rt *command.Runtime, cmd *cobra.Command, name string, input operations.SourceInput) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	if !out.Objects() {
		out.Row("SOURCE", "ASKED", "EVERY", "REQUESTS", "KEY", "URL", "LICENCE", "ATTRIBUTION", "WHY")
	}
	err = sourcesCall(rt, cmd, name, input, func(raw json.RawMessage) error {
		if out.Objects() {
			return out.Object(raw)
		}
		var line operations.SourceLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading a source: %w", err)
		}
		asked := map[bool]string{true: "yes", false: "no"}[line.Enabled]
		if line.Simulated {
			asked += ", simulated"
		}
		requests := fmt.Sprintf("%d in %s", line.Requests, line.Per)
		out.Row(line.Source, asked, line.Interval, requests, line.Key, line.URL, line.License, line.Attribution, line.Why)
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func checkCommand(rt *command.Runtime, cmd *cobra.Command, args []string) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	var input operations.SourceInput
	if len(args) > 0 {
		input.Name = args[0]
	}
	wrong := false
	err = sourcesCall(rt, cmd, "sources.check", input, func(raw json.RawMessage) error {
		var line operations.CheckLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading a line of the check: %w", err)
		}
		wrong = wrong || line.Wrong()
		if out.Objects() {
			return out.Object(raw)
		}
		return printCheck(rt, line)
	})
	if err == nil && wrong {
		return command.ErrReported
	}
	return err
}

func printCheck(rt *command.Runtime, line operations.CheckLine) error {
	verdict := "ok"
	switch {
	case line.Skipped:
		_, err := fmt.Fprintf(rt.Stdout, "%-7s %-13s %-12s nothing to request\n", "skipped", line.Source, line.Feed)
		return err
	case line.Error != "":
		verdict = "failed"
	case line.Wrong():
		verdict = "drift"
	}
	_, err := fmt.Fprintf(rt.Stdout, "%-7s %-13s %-12s status %d, %d bytes, %d rows, %d rejected\n", verdict, line.Source, line.Feed, line.Status, line.Bytes, line.Rows, line.Refused)
	for _, d := range slices.Concat(line.Reasons, line.Drift) {
		_, e := fmt.Fprintf(rt.Stdout, "        %s\n", d)
		err = errors.Join(err, e)
	}
	if line.Error != "" {
		_, e := fmt.Fprintf(rt.Stdout, "        %s\n", line.Error)
		err = errors.Join(err, e)
	}
	return err
}
