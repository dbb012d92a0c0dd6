package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/producers/sources"
)

// sourceInput is what the verbs of sources take; an empty name means all.
type sourceInput struct {
	Name string `json:"name,omitempty"`
	On   bool   `json:"on,omitempty"`
}

// sourceLine is a source as the command shows it. The key itself is never shown.
type sourceLine struct {
	Source    string `json:"source"`
	Name      string `json:"name"`
	Enabled   bool   `json:"enabled"`
	Simulated bool   `json:"simulated"`
	// Why says who decided whether it is asked; empty: the declaration.
	Why string `json:"why,omitempty"`
	// Key is configured, not configured, or not taken.
	Key      string   `json:"key"`
	Kinds    []string `json:"kinds"`
	Interval string   `json:"interval"`
	// Requests may be made within Per.
	Requests    int    `json:"requests"`
	Per         string `json:"per"`
	URL         string `json:"url"`
	License     string `json:"license"`
	Terms       string `json:"terms"`
	Attribution string `json:"attribution,omitempty"`
}

func (in *Instance) sourceLine(s sourceState) sourceLine {
	key := "not taken"
	if s.KeyHeader != "" {
		key = "not configured"
		if in.Config.Sources[s.Slug].KeyFile != "" {
			key = "configured"
		}
	}
	return sourceLine{
		Source: s.Slug, Name: s.Name, Enabled: s.Enabled, Simulated: s.Simulated, Why: s.Why, Key: key, Kinds: s.Kinds,
		Interval: s.Interval().String(), Requests: s.Requests, Per: s.Per.String(), URL: mask("url", s.Address),
		License: s.License, Terms: s.Terms, Attribution: s.Attribution,
	}
}

func unknownSource(name string) error {
	slugs := make([]string, 0, len(sources.List()))
	for _, s := range sources.List() {
		slugs = append(slugs, s.Slug)
	}
	return fmt.Errorf("there is no source %q; use one of %s", name, strings.Join(slugs, ", "))
}

// sourceVerbs list, switch and check the polled sources.
func sourceVerbs(in *Instance) []Verb {
	verb := func(name string, run func(ctx context.Context, input sourceInput, emit func(any) error) error) Verb {
		return Verb{Name: name, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input sourceInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input: %w", err)
			}
			return run(ctx, input, emit)
		}}
	}
	return []Verb{
		verb("sources.list", func(_ context.Context, _ sourceInput, emit func(any) error) error {
			for _, s := range sources.List() {
				if err := emit(in.sourceLine(in.sourceState(s))); err != nil {
					return err
				}
			}
			return nil
		}),
		verb("sources.switch", func(_ context.Context, input sourceInput, emit func(any) error) error {
			s, ok := sourceNamed(input.Name)
			if !ok {
				return unknownSource(input.Name)
			}
			if enabled := in.Config.Sources[s.Slug].Enabled; enabled == "true" || enabled == "false" {
				return fmt.Errorf("sources.%s.enabled is configured as %s, which wins over this command: change it there, or make it %s", s.Slug, enabled, sourceAuto)
			}
			if err := in.switches.set(s.Slug, input.On); err != nil {
				return err
			}
			in.Log.Info("source switched", "source", s.Slug, "on", input.On)
			return emit(in.sourceLine(in.sourceState(s)))
		}),
		verb("sources.check", func(ctx context.Context, input sourceInput, emit func(any) error) error {
			return in.checkSources(ctx, input.Name, emit)
		}),
	}
}

func (a *App) sourcesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sources", Short: "List the sources of reference values, switch them on and off, and check them"}
	add := func(use, short, long string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) {
		c := &cobra.Command{Use: use, Short: short, Long: long, Args: args, RunE: run}
		addInstanceFlags(c.Flags())
		addOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	list := func(verb string, input func(args []string) sourceInput) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error { return a.listSources(cmd, verb, input(args)) }
	}
	add("list", "List the sources: whether each is asked, why not, how often, and under which terms", "", cobra.NoArgs,
		list("sources.list", func([]string) sourceInput { return sourceInput{} }))
	add("enable NAME", "Ask a source from now on", "Ask a source from now on, also after the next start. Read its terms first: `marketlog sources list` names them.", cobra.ExactArgs(1),
		list("sources.switch", func(args []string) sourceInput { return sourceInput{Name: args[0], On: true} }))
	add("disable NAME", "Do not ask a source any more", "Do not ask a source any more, also not after the next start. What it said stays.", cobra.ExactArgs(1),
		list("sources.switch", func(args []string) sourceInput { return sourceInput{Name: args[0]} }))
	add("check [NAME]", "Ask each feed once, and name what changed in the format of its answers; exit 1 if something did",
		"Ask each feed of all sources that are on, or of one source, once, and name the fields that are gone or have another type than the adapter was written for; exit 1 if there are any, or if a source cannot be read.",
		cobra.MaximumNArgs(1), a.checkCommand)
	return cmd
}

// sourcesCall asks the running instance, or reads what the data directory says.
func (a *App) sourcesCall(cmd *cobra.Command, verb string, input sourceInput, onLine func(json.RawMessage) error) error {
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	info, ok, err := runningInstance(cmd.Context(), cfg.DataDir)
	if err != nil {
		return err
	}
	if ok {
		return callRunning(cmd.Context(), info.Admin, Verb{Name: verb}, jobStart, input, onLine)
	}
	if verb != "sources.switch" { // which is for the first start too
		if err := findInstance(cfg, "."); err != nil {
			return err
		}
	}
	in, err := holdInstance(cfg, a.quietLogger(cfg)) // neither log nor engine is needed
	if err != nil {
		return err
	}
	return errors.Join(callHere(cmd.Context(), NewVerbs(sourceVerbs(in)...)[verb], jobStart, input, onLine), in.Close())
}

func (a *App) listSources(cmd *cobra.Command, verb string, input sourceInput) error {
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
		var line sourceLine
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
	var input sourceInput
	if len(args) > 0 {
		input.Name = args[0]
	}
	wrong := false
	err = a.sourcesCall(cmd, "sources.check", input, func(raw json.RawMessage) error {
		var line checkLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading a line of the check: %w", err)
		}
		wrong = wrong || line.wrong()
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

func (a *App) printCheck(line checkLine) error {
	verdict := "ok"
	switch {
	case line.Skipped:
		_, err := fmt.Fprintf(a.Stdout, "%-7s %-13s %-12s nothing to ask for\n", "skipped", line.Source, line.Feed)
		return err
	case line.Error != "":
		verdict = "failed"
	case line.wrong():
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
