package instance

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// kindPrice is what venues send.
const kindPrice = "price"

// NoAnswer is why a source is not asked that neither the simulator nor a configured address replaces.
const NoAnswer = "feeds is sim, and the simulator does not answer for it"

// SourceState is a source as this instance has it.
type SourceState struct {
	poll.Source
	Enabled bool
	// Why reports who decided that; in words for people.
	Why string
	// Simulated sources are answered by the simulator.
	Simulated bool
	// Address is where it is asked.
	Address string
}

// SourceState decides whether a source is asked: an explicit configuration wins over the operator's last command, and
// that over the declaration. What the terms of the public interface forbid, the simulator may be asked for.
func (in *Instance) SourceState(declared poll.Source) SourceState {
	cfg := in.Config.Sources[declared.Slug]
	s := SourceState{Source: cfg.Configured(declared), Simulated: in.AtSimulator(cfg.URL)}
	s.Address = cmp.Or(strings.TrimRight(cfg.URL, "/"), declared.URL)
	on, switched := in.Switches.get(declared.Slug)
	switch {
	case in.Config.Feeds == "none":
		s.Why = "feeds is none"
	case cfg.Enabled == "true" || cfg.Enabled == "false":
		s.Enabled = cfg.Enabled == "true"
		s.Why = "sources." + declared.Slug + ".enabled is configured"
	case switched:
		s.Enabled = on
		s.Why = map[bool]string{true: "switched on", false: "switched off"}[on] + " by `marketlog sources`"
	case declared.Off != "" && !s.Simulated:
		s.Why = declared.Off
	default:
		s.Enabled = true
	}
	if s.Enabled && declared.Sign != nil && cfg.KeyFile == "" && !s.Simulated {
		s.Enabled, s.Why = false, "sources."+declared.Slug+".key_file is not configured: "+declared.Off
	}
	if s.Enabled && in.Config.Feeds == "sim" && cfg.URL == "" {
		s.Enabled, s.Why = false, NoAnswer
	}
	return s
}

// AtSimulator means that an address is the built-in simulator's.
func (in *Instance) AtSimulator(address string) bool {
	sim := in.Sim.Load()
	if sim == nil || address == "" {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.Host == sim.Addr()
}

// notice is what is logged of a source.
func (s SourceState) notice() *eventsv1.SourceNotice {
	return &eventsv1.SourceNotice{
		Source: s.Slug, Name: s.Name, Kinds: s.Kinds, Url: s.Address, License: s.License, Terms: s.Terms, Attribution: s.Attribution,
		Interval: int64(s.Interval()), Moves: int64(s.Moves), Enabled: s.Enabled, Simulated: s.Simulated,
	}
}

// Notices are those of all sources and venues of this process, in the order of their lists.
func (in *Instance) Notices() []*eventsv1.SourceNotice {
	var all []*eventsv1.SourceNotice
	for _, declared := range sources.List() {
		all = append(all, in.SourceState(declared).notice())
	}
	for _, v := range exchanges.List() {
		cfg, ok := in.Config.Venues[v.Slug]
		simulated := in.Simulated[v.Slug]
		all = append(all, &eventsv1.SourceNotice{
			Source: v.Slug, Name: v.Name, Kinds: []string{kindPrice}, Url: cmp.Or(cfg.RESTURL, v.URLs.REST), Terms: v.Countries.Terms,
			Enabled: in.Asks(v, cfg, ok), Simulated: simulated,
		})
	}
	return all
}

// Asks means that a venue is read. Beside the simulator, none is asked at its public address: one that is not simulated
// must have been given another.
func (in *Instance) Asks(v adapter.Venue, cfg config.VenueConfig, configured bool) bool {
	return (!configured || cfg.Enabled) && (in.Config.Feeds != "sim" || in.Simulated[v.Slug] || cfg.WSURL != "" && cfg.RESTURL != "")
}

// NoticeInterval is how often sources are declared again, so that readers of the log's last days know them.
const NoticeInterval = 24 * time.Hour
