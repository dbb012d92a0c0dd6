package roles

import (
	"context"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// listingsOf prepares to record the lists of all venues, so that what the log has of them is read with what it has of the sources, once.
func listingsOf(in *instance.Instance, log *poll.SourceLog) map[string]*poll.Listings {
	all := map[string]*poll.Listings{}
	for _, venue := range exchanges.List() {
		all[venue.Slug] = poll.NewListings(log.Source(venue.Slug), in.Clock)
	}
	return all
}

// recordListings writes what changes in the lists of markets that venues send, until ctx ends.
func recordListings(ctx context.Context, in *instance.Instance, listings map[string]*poll.Listings) error {
	for {
		lists, more := in.Listings.Take()
		for venue, list := range lists {
			written, err := listings[venue].Record(ctx, listingsFrom(venue, list, in.Simulated[venue]))
			if err != nil {
				return supervise.Stopped(ctx, err)
			}
			if written > 0 {
				in.Log.Info("listings recorded", "venue", venue, "markets", len(list), "changes", written)
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

func listingsFrom(venue string, list []adapter.Instrument, simulated bool) []*eventsv1.Listing {
	all := make([]*eventsv1.Listing, len(list))
	for i, market := range list {
		all[i] = &eventsv1.Listing{Venue: venue, Symbol: market.Symbol, Base: market.Base, Quote: market.Quote, Status: market.Status, Simulated: simulated}
	}
	return all
}
