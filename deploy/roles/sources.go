package roles

import (
	"context"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// sourceRoles poll reference values into the log. Their public interfaces are asked with the live feeds
// only: with the simulator, only at a URL that was configured.
func sourceRoles(in *instance.Instance) []supervise.Role {
	in.Sources.Now = in.Clock.Now
	in.Metrics.MustRegister(&in.Sources)
	run := func(ctx context.Context) error {
		return in.Disk.While(ctx, diskguard.Sources, func(ctx context.Context) error { return RunSources(ctx, in) })
	}
	return []supervise.Role{{Name: "sources", Run: run}}
}

// RunSources reads the sources that are enabled, starts and ends them as they are switched, and writes a notice of each
// to the log.
func RunSources(ctx context.Context, in *instance.Instance) error {
	log, err := poll.NewSourceLog(in.Stream, in.Clock, in.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return log.Run(ctx) })
	listings := listingsOf(in, log)
	g.Go(func() error { return recordListings(ctx, in, listings) })
	// What a source is, simulated or not, is in the log before what it reports.
	declared := make(chan struct{})
	g.Go(func() error { return declareSources(ctx, in, log, declared) })
	g.Go(func() error {
		select {
		case <-declared:
			return superviseSources(ctx, in, log)
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

// declareSources writes a notice of each source and venue at the start, when it changes, and once a day. It closes declared
// after the first of all.
func declareSources(ctx context.Context, in *instance.Instance, log *poll.SourceLog, declared chan<- struct{}) error {
	notices := map[string]*eventsv1.SourceNotice{}
	for first := true; ; first = false {
		switched, day := in.Switches.Change(), in.Clock.After(instance.NoticeInterval)
		for _, notice := range in.Notices() {
			if proto.Equal(notices[notice.Source], notice) {
				continue
			}
			notices[notice.Source] = proto.Clone(notice).(*eventsv1.SourceNotice)
			record := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: notice}}
			if err := log.Source(notice.Source).Append(ctx, record); err != nil {
				return supervise.Stopped(ctx, err)
			}
		}
		if first {
			close(declared)
		}
		select {
		case <-switched:
		case <-day:
			clear(notices)
		case <-ctx.Done():
			return nil
		}
	}
}

// superviseSources keeps a poller for each source that is enabled, until ctx ends or one cannot go on.
func superviseSources(ctx context.Context, in *instance.Instance, log *poll.SourceLog) error {
	g, ctx := errgroup.WithContext(ctx)
	running := map[string]context.CancelFunc{}
	ended := map[string]chan struct{}{}
	for {
		switched := in.Switches.Change()
		for _, declared := range sources.List() {
			s := in.SourceState(declared)
			stop, runs := running[s.Slug]
			switch {
			case s.Enabled && !runs:
				p, err := newSourcePoller(in, s, log)
				if err != nil {
					in.Log.Error("source cannot be polled", "source", s.Slug, "error", err)
					continue
				}
				polling, cancel := context.WithCancel(ctx)
				done := make(chan struct{})
				running[s.Slug], ended[s.Slug] = cancel, done
				in.Sources.Add(s.Slug, p)
				g.Go(func() error {
					defer close(done)
					return p.Poller.Run(polling)
				})
			case !s.Enabled && runs:
				stop()
				<-ended[s.Slug]
				delete(running, s.Slug)
				in.Sources.Remove(s.Slug)
				in.Log.Info("source is no longer polled", "source", s.Slug, "reason", s.Why)
			}
		}
		select {
		case <-switched:
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			err := g.Wait()
			in.Sources.Clear()
			return err
		}
	}
}

// newSourcePoller prepares to ask a source with its key and within its budget.
func newSourcePoller(in *instance.Instance, s instance.SourceState, log *poll.SourceLog) (instance.SourcePoller, error) {
	client, err := in.SourceClient(s)
	if err != nil {
		return instance.SourcePoller{}, err
	}
	poller := poll.NewPoller(s.Source, in.Config.Sources[s.Slug].URL, client, log.Source(s.Slug), in.Clock, in.Log)
	return instance.SourcePoller{Poller: poller, Client: client, Since: in.Clock.Now()}, nil
}
