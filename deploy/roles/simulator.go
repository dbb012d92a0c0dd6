package roles

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/near"
)

// SimulatorRoles open the simulator on a free port of loopback and lead to it every venue and source
// that it simulates and that was given no address of its own. They return the venues that they lead there.
func SimulatorRoles(ctx context.Context, in *instance.Instance) ([]supervise.Role, map[string]bool, error) {
	cfg := simulator.DefaultConfig()
	cfg.Seed, cfg.Rate, cfg.Clock, cfg.SourceRequests = in.Config.Sim.Seed, float64(in.Config.Sim.Rate), in.Clock, DemoRequests
	cfg.Accept = func(far net.Listener) net.Listener {
		listener := near.Listen(far)
		in.SimNear.Store(listener)
		return listener
	}
	virtual, accelerated := in.Clock.(*producers.VirtualClock)
	if accelerated {
		if err := RefuseNewerLog(ctx, in, virtual.Now()); err != nil {
			return nil, nil, err
		}
		cfg.Delivered = func(venue string, t time.Time) { virtual.Finished("simulated "+venue, t) }
	}
	sim, err := simulator.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	venues, sources := maps.Clone(in.Config.Venues), maps.Clone(in.Config.Sources)
	simulated := map[string]bool{}
	for slug, urls := range sim.URLs() {
		if accelerated {
			virtual.Join("simulated " + slug)
		}
		v := venues[slug]
		if v.WSURL != "" || v.RESTURL != "" {
			continue
		}
		v.WSURL, v.RESTURL = urls.Stream, urls.REST
		venues[slug], simulated[slug] = v, true
	}
	for slug, url := range sim.SourceURLs() {
		if s, ok := sources[slug]; ok && s.URL == "" {
			sources[slug] = demoSource(slug, url, s)
		}
	}
	in.Config.Venues, in.Config.Sources = venues, sources
	in.Sim.Store(sim)
	cfg.Listen = sim.Addr()
	roles := []supervise.Role{{Name: "simulator", Run: func(ctx context.Context) error {
		running := sim
		if sim = nil; running == nil { // it failed before, and is started again where the producers know it
			if running, err = simulator.New(cfg); err != nil {
				return err
			}
			in.Sim.Store(running)
		}
		return running.Run(ctx)
	}}}
	if accelerated {
		roles = append(roles, supervise.Role{Name: "clock", Run: virtual.Run})
	}
	return roles, simulated, nil
}

// venueDialer opens the connections to venues: to simulated ones of this process without the system's sockets.
func venueDialer(in *instance.Instance) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	far := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if sim := in.SimNear.Load(); sim != nil && addr == sim.Addr().String() {
			return sim.Dial(ctx)
		}
		return far(ctx, network, addr)
	}
	return &http.Client{Transport: transport}
}

// DemoRequests are what the simulated CoinGecko and CoinPaprika allow a minute: with what the real ones do, the
// demo would take hours to know its coins.
const DemoRequests = 600

// demoSource leads a source to the simulator and, unless a budget is configured, makes use of what that allows.
func demoSource(slug, url string, s config.SourceConfig) config.SourceConfig {
	s.URL = url
	if (slug == "coingecko" || slug == "coinpaprika") && s.Requests == 0 && s.Per == 0 {
		s.Requests, s.Per = DemoRequests, time.Minute
	}
	return s
}

// RefuseNewerLog keeps an accelerated run, which begins in the past, from a log that has gone on since.
func RefuseNewerLog(ctx context.Context, in *instance.Instance, start time.Time) error {
	client, err := in.Stream.NewClient()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	topics := []string{schemas.TopicTicksRaw, schemas.TopicReferenceRaw}
	from, err := stream.OffsetsFrom(ctx, client, start, topics...)
	if err != nil {
		return err
	}
	ends, err := stream.Ends(ctx, client, topics...)
	if err != nil {
		return err
	}
	newer := int64(0)
	for topic, partitions := range from {
		for partition, offset := range partitions {
			newer += max(0, ends[topic][partition]-offset)
		}
	}
	if newer > 0 {
		return fmt.Errorf("the log in %s is newer than the start of an accelerated run, %s: use another --data-dir, or --sim-speed 1",
			in.Config.DataDir, start.UTC().Format(time.RFC3339))
	}
	return nil
}
