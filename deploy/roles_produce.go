package deploy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/schemas"
)

// subscribedRank is the last rank of the coin table whose markets are subscribed to by default.
const subscribedRank = 300

// producerRoles read the feeds into the log. Those of exchanges share one writer, and end before it does.
func producerRoles(ctx context.Context, in *Instance) ([]Role, error) {
	if in.Config.Feeds == "none" {
		return nil, nil
	}
	var roles []Role
	var simulated map[string]bool
	if in.Config.Feeds == "sim" {
		var err error
		if roles, simulated, err = in.simulatorRoles(ctx); err != nil {
			return nil, err
		}
		in.Simulated = simulated
	}
	run := func(ctx context.Context) error {
		return in.disk.While(ctx, diskguard.Feeds, func(ctx context.Context) error { return in.runProducers(ctx, simulated) })
	}
	return append(append(roles, Role{Name: "producers", Run: run}), sourceRoles(in)...), nil
}

// runProducers reads all venues that are enabled. Without any it writes a clock all the same: minutes of markets and rates
// end when the log's time in the topics of ticks has passed them.
func (in *Instance) runProducers(ctx context.Context, simulated map[string]bool) error {
	cfg := producers.DefaultWriterConfig()
	cfg.Log, cfg.SpoolDir, cfg.Clock, cfg.Logger = in.Stream, in.Dir.Path("spool"), in.Clock, in.Log
	writer, err := producers.NewWriter(cfg)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	g := &errgroup.Group{}
	g.Go(func() error { return writer.Run(writing) })
	feeds, ctx := errgroup.WithContext(ctx)
	asked, reading := []string(nil), map[string]*producers.Exchange{}
	for _, venue := range exchanges.List() {
		v, ok := in.Config.Venues[venue.Slug]
		if !in.asks(venue, v, ok) {
			continue
		}
		client, err := fetch.New(requestBudget(venue.Limits), in.Clock, nil)
		if err != nil {
			stop()
			return fmt.Errorf("preparing %s: %w", venue.Slug, err)
		}
		exchange := producers.NewExchange(venue, producers.ExchangeConfig{
			URLs:   producers.URLs{Stream: v.WSURL, REST: v.RESTURL},
			Select: selectMarkets(venue.Slug, v.Symbols), Simulated: simulated[venue.Slug],
		}, client, writer.Source(venue.Slug), in.Clock, nil, in.Log)
		feeds.Go(func() error { return exchange.Run(ctx) })
		asked, reading[venue.Slug] = append(asked, venue.Slug), exchange
	}
	in.feeds.reading(reading, writer, cfg)
	var out producers.Outbox
	if len(asked) == 0 {
		out = writer.Source(producers.SourcesProducer)
		feeds.Go(func() error { <-ctx.Done(); return nil })
	} else {
		out = writer.Source(asked[0])
	}
	in.resume(out, asked...)
	feeds.Go(func() error { in.followSourcePauses(ctx, out); return nil })
	err = feeds.Wait()
	if level, _ := in.disk.Level(); level >= diskguard.Feeds {
		in.pause(out, asked...)
	}
	stop()
	if writeErr := g.Wait(); err == nil {
		err = writeErr
	}
	return err
}

// requestBudget allows a venue's HTTP interface what the venue documents.
func requestBudget(l producers.Limits) fetch.Config {
	if l.Requests < 1 {
		return fetch.DefaultConfig(1, time.Duration(float64(time.Second)/l.Requests))
	}
	return fetch.DefaultConfig(int(l.Requests), time.Second)
}

// selectMarkets picks the configured symbols, else the markets of well-known coins whose quote can
// be converted to USD, and those of quote assets themselves.
func selectMarkets(venue string, symbols []string) func(producers.Instrument) bool {
	wanted := map[string]bool{}
	for _, s := range symbols {
		wanted[strings.ToUpper(s)] = true
	}
	coins := schemas.Coins()
	return func(in producers.Instrument) bool {
		if len(wanted) > 0 {
			return wanted[strings.ToUpper(in.Symbol)]
		}
		quote, ok := coins.ResolveQuote(venue, in.Quote)
		if !ok || !schemas.Convertible(coins, quote) {
			return false
		}
		if base, ok := coins.ResolveQuote(venue, in.Base); ok && base.Fiat {
			return quote.ID == schemas.USD
		}
		coin, _, ok := coins.Resolve(venue, in.Base)
		return ok && coin.Rank <= subscribedRank
	}
}
