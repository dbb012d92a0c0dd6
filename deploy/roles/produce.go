package roles

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/producers/poll"
)

// ProducerRoles read the feeds into the log. Those of exchanges share one writer, and end before it does.
func ProducerRoles(ctx context.Context, in *instance.Instance) ([]supervise.Role, error) {
	if in.Config.Feeds == "none" {
		return nil, nil
	}
	var roles []supervise.Role
	var simulated map[string]bool
	if in.Config.Feeds == "sim" {
		var err error
		if roles, simulated, err = SimulatorRoles(ctx, in); err != nil {
			return nil, err
		}
		in.Simulated = simulated
	}
	run := func(ctx context.Context) error {
		return in.Disk.While(ctx, diskguard.Feeds, func(ctx context.Context) error { return RunProducers(ctx, in, simulated) })
	}
	return append(append(roles, supervise.Role{Name: "producers", Run: run}), sourceRoles(in)...), nil
}

// RunProducers reads all venues that are enabled. Without any it writes a clock all the same: minutes of markets and rates
// end when the log's time in the topics of ticks has passed them.
func RunProducers(ctx context.Context, in *instance.Instance, simulated map[string]bool) error {
	cfg := outbox.DefaultWriterConfig()
	cfg.Log, cfg.SpoolDir, cfg.Clock, cfg.Logger = in.Stream, in.Dir.Path("spool"), in.Clock, in.Log
	writer, err := outbox.NewWriter(cfg)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	g := &errgroup.Group{}
	g.Go(func() error { return writer.Run(writing) })
	feeds, ctx := errgroup.WithContext(ctx)
	dialer := venueDialer(in)
	asked, reading := []string(nil), map[string]*adapter.Exchange{}
	for _, venue := range exchanges.List() {
		v, ok := in.Config.Venues[venue.Slug]
		if !in.Asks(venue, v, ok) {
			continue
		}
		client, err := fetch.New(instance.RequestBudget(venue.Limits), in.Clock, nil)
		if err != nil {
			stop()
			return fmt.Errorf("preparing %s: %w", venue.Slug, err)
		}
		exchange := adapter.NewExchange(venue, adapter.ExchangeConfig{
			URLs:   adapter.URLs{Stream: v.WSURL, REST: v.RESTURL},
			Select: instance.SelectMarkets(venue.Slug, v.Symbols), Simulated: simulated[venue.Slug],
			Listed: func(list []adapter.Instrument) { in.Listings.Set(venue.Slug, list) },
		}, client, writer.Source(venue.Slug), in.Clock, dialer, in.Log)
		feeds.Go(func() error { return exchange.Run(ctx) })
		asked, reading[venue.Slug] = append(asked, venue.Slug), exchange
	}
	in.Feeds.Reading(reading, writer, cfg)
	var out producers.Outbox
	if len(asked) == 0 {
		out = writer.Source(poll.SourcesProducer)
		feeds.Go(func() error { <-ctx.Done(); return nil })
	} else {
		out = writer.Source(asked[0])
	}
	in.Resume(out, asked...)
	feeds.Go(func() error { in.FollowSourcePauses(ctx, out); return nil })
	err = feeds.Wait()
	if level, _ := in.Disk.Level(); level >= diskguard.Feeds {
		in.Pause(out, asked...)
	}
	stop()
	if writeErr := g.Wait(); err == nil {
		err = writeErr
	}
	return err
}
