package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/producers/simulator"
)

// faultKinds are what a simulated venue does wrong on demand: it says nothing, half of what it says cannot be read, it
// says everything fifty times, or it takes no connection and closes those it has.
var faultKinds = map[string]simulator.Faults{
	"silence":    {Silence: true},
	"garbage":    {Garbage: 0.5},
	"flood":      {Flood: 49},
	"disconnect": {Refuse: true},
	frozen:       {Frozen: true},
}

// frozen is the fault that only what is polled can have.
const frozen = "frozen"

// noFault ends what is in force.
const noFault = "none"

func faultNames() string {
	return strings.Join(slices.Sorted(maps.Keys(faultKinds)), ", ") + " or " + noFault
}

// longestFault keeps a fault that was forgotten from spoiling the demo for good.
const longestFault = 24 * time.Hour

// faultInput is what the verb takes: nothing lists what is in force.
type faultInput struct {
	Venue string        `json:"venue,omitempty"`
	Fault string        `json:"fault,omitempty"`
	For   time.Duration `json:"for,omitempty"`
}

// faultLine is one venue that does something wrong.
type faultLine struct {
	Venue string    `json:"venue"`
	Fault string    `json:"fault"`
	Until time.Time `json:"until"`
}

// simFaultsVerb makes a venue of the simulator that runs here misbehave, and tells what is in force then.
func simFaultsVerb(in *Instance) Verb {
	return Verb{Name: "sim.faults", Run: func(_ context.Context, raw json.RawMessage, emit func(any) error) error {
		var input faultInput
		if err := json.Unmarshal(raw, &input); err != nil {
			return fmt.Errorf("reading the input: %w", err)
		}
		sim := in.sim.Load()
		if sim == nil {
			return fmt.Errorf("no simulator runs in this process, whose feeds is %s: only venues of `marketlog run --feeds sim` can be made to misbehave", in.Config.Feeds)
		}
		if input != (faultInput{}) {
			if err := inflict(sim, input, in.Clock.Now()); err != nil {
				return err
			}
			in.Log.Info("simulated fault", "venue", input.Venue, "fault", input.Fault, "for", input.For)
		}
		faults := sim.Faults()
		for _, venue := range slices.Sorted(maps.Keys(faults)) {
			if err := emit(faultLine{venue, faultName(faults[venue]), faults[venue].Until.UTC()}); err != nil {
				return err
			}
		}
		return nil
	}}
}

func faultName(f simulator.Faults) string {
	f.Until = time.Time{}
	for name, kind := range faultKinds {
		if kind == f {
			return name
		}
	}
	return "other"
}

// inflict makes a venue, or a polled source, do wrong from now on, in its own time.
func inflict(sim *simulator.Simulator, input faultInput, now time.Time) error {
	if slugs := slices.Concat(sim.Slugs(), sim.SourceSlugs()); !slices.Contains(slugs, input.Venue) {
		return fmt.Errorf("--venue %q is not simulated: use %s", input.Venue, strings.Join(slugs, ", "))
	}
	if input.Fault == noFault {
		return sim.SetFaults(input.Venue, simulator.Faults{})
	}
	faults, ok := faultKinds[input.Fault]
	if !ok {
		return fmt.Errorf("--fault %q is unknown: use %s", input.Fault, faultNames())
	}
	if input.Fault == frozen && !slices.Contains(sim.SourceSlugs(), input.Venue) {
		return fmt.Errorf("--fault %s: %s is not polled: use one of %s", frozen, input.Venue, strings.Join(sim.SourceSlugs(), ", "))
	}
	if input.For < time.Second || input.For > longestFault {
		return fmt.Errorf("--for %s is outside 1s to %s: use a duration such as 60s", input.For, longestFault)
	}
	faults.Until = now.Add(input.For)
	if err := sim.SetFaults(input.Venue, faults); err != nil || !faults.Refuse {
		return err
	}
	return sim.Disconnect(input.Venue)
}

func (a *App) simCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sim", Short: "Steer the simulator of a running instance"}
	var input faultInput
	faults := &cobra.Command{
		Use:   "faults",
		Short: "Make a simulated venue misbehave for a while; without flags, list which do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := input
			switch {
			case !cmd.Flags().Changed("venue") && !cmd.Flags().Changed("fault") && !cmd.Flags().Changed("for"):
				given = faultInput{} // only lists
			case given.Venue == "" || given.Fault == "":
				return fmt.Errorf("--venue and --fault go together: name a venue, and as its fault %s", faultNames())
			}
			return a.simFaults(cmd, given)
		},
	}
	faults.Flags().StringVar(&input.Venue, "venue", "", "which venue or polled source")
	faults.Flags().StringVar(&input.Fault, "fault", "", faultNames())
	faults.Flags().DurationVar(&input.For, "for", time.Minute, "how long, in the simulator's time")
	addInstanceFlags(faults.Flags())
	addOutputFlag(faults.Flags())
	cmd.AddCommand(faults)
	return cmd
}

func (a *App) simFaults(cmd *cobra.Command, input faultInput) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	info, ok, err := runningInstance(cmd.Context(), cfg.DataDir)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("no instance runs in %s: start one with `marketlog run --feeds sim --data-dir %s`", cfg.DataDir, cfg.DataDir)
	}
	var lines []faultLine
	err = callRunning(cmd.Context(), info.Admin, Verb{Name: "sim.faults"}, jobStart, input, func(raw json.RawMessage) error {
		var line faultLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for i, line := range lines {
		if inJSON {
			err = errors.Join(err, a.printJSON(line))
			continue
		}
		if i == 0 {
			fmt.Fprintln(table, "VENUE\tFAULT\tUNTIL")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", line.Venue, line.Fault, line.Until.Format(time.RFC3339))
	}
	if len(lines) == 0 && !inJSON {
		fmt.Fprintln(a.Stdout, "no simulated venue does anything wrong")
	}
	return errors.Join(err, table.Flush())
}
