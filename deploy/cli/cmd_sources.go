package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/spf13/cobra"
)

func (a *App) sourcesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sources", Short: "List the sources of reference values, switch them on and off, and check them"}
	add := func(use, short, long string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) {
		c := &cobra.Command{Use: use, Short: short, Long: long, Args: args, RunE: run}
		config.AddInstanceFlags(c.Flags())
		addOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	list := func(verb string, input func(args []string) operations.SourceInput) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error { return a.listSources(cmd, verb, input(args)) }
	}
	add("list", "List the sources: whether each is asked, why not, how often, and under which terms", "", cobra.NoArgs,
		list("sources.list", func([]string) operations.SourceInput { return operations.SourceInput{} }))
	add("enable NAME", "Ask a source from now on", "Ask a source from now on, also after the next start. Read its terms first: `marketlog sources list` names them.", cobra.ExactArgs(1),
		list("sources.switch", func(args []string) operations.SourceInput { return operations.SourceInput{Name: args[0], On: true} }))
	add("disable NAME", "Do not ask a source any more", "Do not ask a source any more, also not after the next start. What it said stays.", cobra.ExactArgs(1),
		list("sources.switch", func(args []string) operations.SourceInput { return operations.SourceInput{Name: args[0]} }))
	add("check [NAME]", "Ask each feed once, and name what changed in the format of its answers; exit 1 if something did",
		"Ask each feed of all sources that are on, or of one source, once, and name the fields that are gone or have another type than the adapter was written for; exit 1 if there are any, or if a source cannot be read.",
		cobra.MaximumNArgs(1), a.checkCommand)
	return cmd
}

// sourcesCall asks the running instance, or reads what the data directory says.
func (a *App) sourcesCall(cmd *cobra.Command, verb string, input operations.SourceInput, onLine func(json.RawMessage) error) error {
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	info, ok, err := runningInstance(cmd.Context(), cfg.DataDir)
	if err != nil {
		return err
	}
	if ok {
		return admin.CallRunning(cmd.Context(), info.Admin, admin.Command{Name: verb}, admin.Start, input, onLine)
	}
	if verb != "sources.switch" { // which is for the first start too
		if err := findInstance(cfg, "."); err != nil {
			return err
		}
	}
	in, err := instance.HoldInstance(cfg, a.quietLogger(cfg)) // neither log nor engine is needed
	if err != nil {
		return err
	}
	return errors.Join(admin.CallHere(cmd.Context(), admin.NewVerbs(operations.SourceVerbs(in)...)[verb], admin.Start, input, onLine), in.Close())
}

func (a *App) listSources(cmd *cobra.Command, verb string, input operations.SourceInput) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	if !inJSON {
		fmt.Fprintln(table, "SOURCE\tASKED\tEVERY\tREQUESTS\tKEY\tURL\tLICENCE\tATTRIBUTION\tWHY")
	}
	err = a.sourcesCall(cmd, verb, input, func(raw json.RawMessage) error {
		if inJSON {
			_, err := fmt.Fprintf(a.Stdout, "%s\n", raw)
			return err
		}
		var line operations.SourceLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading a source: %w", err)
		}
		asked := map[bool]string{true: "yes", false: "no"}[line.Enabled]
		if line.Simulated {
			asked += ", simulated"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d in %s\t%s\t%s\t%s\t%s\t%s\n", line.Source, asked, line.Interval, line.Requests, line.Per, line.Key, line.URL, line.License, line.Attribution, line.Why)
		return nil
	})
	if err != nil {
		return err
	}
	return table.Flush()
}

func (a *App) checkCommand(cmd *cobra.Command, args []string) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	var input operations.SourceInput
	if len(args) > 0 {
		input.Name = args[0]
	}
	wrong := false
	err = a.sourcesCall(cmd, "sources.check", input, func(raw json.RawMessage) error {
		var line operations.CheckLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading a line of the check: %w", err)
		}
		wrong = wrong || line.Wrong()
		if inJSON {
			_, err := fmt.Fprintf(a.Stdout, "%s\n", raw)
			return err
		}
		return a.printCheck(line)
	})
	if err == nil && wrong {
		return errReported
	}
	return err
}

func (a *App) printCheck(line operations.CheckLine) error {
	verdict := "ok"
	switch {
	case line.Skipped:
		_, err := fmt.Fprintf(a.Stdout, "%-7s %-13s %-12s nothing to ask for\n", "skipped", line.Source, line.Feed)
		return err
	case line.Error != "":
		verdict = "failed"
	case line.Wrong():
		verdict = "drift"
	}
	_, err := fmt.Fprintf(a.Stdout, "%-7s %-13s %-12s status %d, %d bytes, %d rows, %d refused\n", verdict, line.Source, line.Feed, line.Status, line.Bytes, line.Rows, line.Refused)
	for _, d := range slices.Concat(line.Reasons, line.Drift) {
		_, e := fmt.Fprintf(a.Stdout, "        %s\n", d)
		err = errors.Join(err, e)
	}
	if line.Error != "" {
		_, e := fmt.Fprintf(a.Stdout, "        %s\n", line.Error)
		err = errors.Join(err, e)
	}
	return err
}
