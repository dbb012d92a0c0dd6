package deploy

import (
	"cmp"
	"context"
	"maps"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/simulator"
)

// simulatorRole opens the simulator on a free port of loopback and leads to it every venue and source
// that it simulates and that was given no address of its own. It returns the venues that it leads there.
func (in *Instance) simulatorRole() (Role, map[string]bool, error) {
	cfg := simulator.DefaultConfig()
	cfg.Seed, cfg.Clock = in.Config.Sim.Seed, producers.WallClock{}
	sim, err := simulator.New(cfg)
	if err != nil {
		return Role{}, nil, err
	}
	venues, sources := maps.Clone(in.Config.Venues), maps.Clone(in.Config.Sources)
	simulated := map[string]bool{}
	for slug, urls := range sim.URLs() {
		v := venues[slug]
		if v.WSURL != "" || v.RESTURL != "" {
			continue
		}
		v.WSURL, v.RESTURL = urls.Stream, urls.REST
		venues[slug], simulated[slug] = v, true
	}
	bank := sources["ecb"]
	bank.URL = cmp.Or(bank.URL, sim.CentralBankURL())
	sources["ecb"] = bank
	in.Config.Venues, in.Config.Sources = venues, sources
	cfg.Listen = sim.Addr()
	return Role{Name: "simulator", Run: func(ctx context.Context) error {
		if sim == nil { // it failed before, and is started again
			if sim, err = simulator.New(cfg); err != nil {
				return err
			}
		}
		running := sim
		sim = nil
		return running.Run(ctx)
	}}, simulated, nil
}
