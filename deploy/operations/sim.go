package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// FaultKinds are what a simulated venue does wrong on demand: it sends nothing, half of what it sends cannot be decoded, it
// sends everything fifty times, it takes no connection and closes those it has, or it delists or halts a tenth of its markets.
var FaultKinds = map[string]provider.Faults{
	"silence":    {Silence: true},
	"garbage":    {Garbage: 0.5},
	"flood":      {Flood: 49},
	"disconnect": {Refuse: true},
	Frozen:       {Frozen: true},
	Delisting:    {Delisted: true},
	Halted:       {Halted: true},
}

// Frozen is the fault that only what is polled can have.
const Frozen = "frozen"

// Delisting and Halted are the faults that only venues can have.
const (
	Delisting = "delisting"
	Halted    = "halted"
)

// noFault ends what is in force.
const noFault = "none"

// FaultNames lists the faults that the simulator can play, in words.
func FaultNames() string {
	return strings.Join(slices.Sorted(maps.Keys(FaultKinds)), ", ") + " or " + noFault
}

// longestFault keeps a fault that was forgotten from spoiling the demo for good.
const longestFault = 24 * time.Hour

// FaultInput is what the verb takes: nothing lists what is in force.
type FaultInput struct {
	Venue string        `json:"venue,omitempty"`
	Fault string        `json:"fault,omitempty"`
	For   time.Duration `json:"for,omitempty"`
}

// FaultLine is one venue that does something wrong.
type FaultLine struct {
	Venue string    `json:"venue"`
	Fault string    `json:"fault"`
	Until time.Time `json:"until"`
}

// SimFaultsVerb makes a venue of the simulator that runs here misbehave, and returns what is in force then.
func SimFaultsVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "sim.faults", Run: func(_ context.Context, raw json.RawMessage, emit func(any) error) error {
		var input FaultInput
		if err := json.Unmarshal(raw, &input); err != nil {
			return fmt.Errorf("reading the input: %w", err)
		}
		sim := in.Sim.Load()
		if sim == nil {
			return fmt.Errorf("there is no simulator in this process, whose feeds is %s: faults can be injected only with `marketlog run --feeds sim`", in.Config.Feeds)
		}
		if input != (FaultInput{}) {
			if err := inflict(sim, input, in.Clock.Now()); err != nil {
				return err
			}
			in.Log.Info("simulated fault", "venue", input.Venue, "fault", input.Fault, "for", input.For)
		}
		faults := sim.Faults()
		for _, venue := range slices.Sorted(maps.Keys(faults)) {
			if err := emit(FaultLine{venue, FaultName(faults[venue]), faults[venue].Until.UTC()}); err != nil {
				return err
			}
		}
		return nil
	}}
}

// FaultName is the name of a fault, as commands take it.
func FaultName(f provider.Faults) string {
	f.Until = time.Time{}
	for name, kind := range FaultKinds {
		if kind == f {
			return name
		}
	}
	return "other"
}

// inflict makes a venue, or a polled source, do wrong from now on, in its own time.
func inflict(sim *simulator.Simulator, input FaultInput, now time.Time) error {
	if slugs := slices.Concat(sim.Slugs(), sim.SourceSlugs()); !slices.Contains(slugs, input.Venue) {
		return fmt.Errorf("--venue %q is not simulated: use %s", input.Venue, strings.Join(slugs, ", "))
	}
	if input.Fault == noFault {
		return sim.SetFaults(input.Venue, provider.Faults{})
	}
	faults, ok := FaultKinds[input.Fault]
	if !ok {
		return fmt.Errorf("--fault %q is unknown: use %s", input.Fault, FaultNames())
	}
	if input.Fault == Frozen && !slices.Contains(sim.SourceSlugs(), input.Venue) {
		return fmt.Errorf("--fault %s: %s is not polled: use one of %s", Frozen, input.Venue, strings.Join(sim.SourceSlugs(), ", "))
	}
	if (input.Fault == Delisting || input.Fault == Halted) && !slices.Contains(sim.Slugs(), input.Venue) {
		return fmt.Errorf("--fault %s: %s is not a venue: use one of %s", input.Fault, input.Venue, strings.Join(sim.Slugs(), ", "))
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
