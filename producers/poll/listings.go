package poll

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/producers"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Listings records the list of markets of one venue: what is new in it, differs, or is gone, and what is unchanged before the end of the log
// has forgotten it. What the log has already is not written again, also not by the process that follows a killed one. For one goroutine.
type Listings struct {
	out   SourceOutbox
	clock producers.Clock
	// known are the last records of the markets, by symbol; nil before the log was read.
	known map[string]*eventsv1.Listing
	// doubted: the last list had lost more than half of the markets.
	doubted bool
}

// NewListings prepares to record the list of the venue that out is of.
func NewListings(out SourceOutbox, clock producers.Clock) *Listings {
	return &Listings{out: out, clock: clock}
}

// Record takes a whole list, whose entries need no times, and returns how many records it wrote once the log has them. A list without more than
// half of the markets that were there is believed when the next one says the same: venues under maintenance send a few. A market with a status, which
// is listed and does not trade, is recorded if it did before: some venues list for ever what they have ended.
func (l *Listings) Record(ctx context.Context, list []*eventsv1.Listing) (written int, err error) {
	if l.known == nil {
		known := map[string]*eventsv1.Listing{}
		err := l.out.Known(ctx, func(rec *eventsv1.ReferenceRecord) {
			if listing := rec.GetListing(); listing != nil {
				known[listing.Symbol] = listing
			}
		})
		if err != nil {
			return 0, fmt.Errorf("reading the known listings: %w", err)
		}
		l.known = known
	}
	now := l.clock.Now().UnixNano()
	listed, halted := map[string]bool{}, map[string]string{}
	var changes []*eventsv1.Listing
	for _, in := range list {
		if in.Status != "" {
			halted[in.Symbol] = in.Status
			continue
		}
		if listed[in.Symbol] {
			continue // twice in one list
		}
		listed[in.Symbol] = true
		next := proto.Clone(in).(*eventsv1.Listing)
		next.Gone, next.FirstSeen = false, now
		if last := l.known[in.Symbol]; last != nil {
			next.FirstSeen = last.FirstSeen
			if sameListing(last, next) && now-last.IngestTime < int64(repeatAfter) {
				continue
			}
		}
		changes = append(changes, next)
	}
	var gone []*eventsv1.Listing
	before := 0
	for symbol, last := range l.known {
		status := halted[symbol]
		if !last.Gone || last.Status != "" {
			before++
		}
		if listed[symbol] || last.Gone && last.Status == status {
			continue
		}
		next := proto.Clone(last).(*eventsv1.Listing)
		next.Gone, next.Status = true, status
		if status != "" {
			changes = append(changes, next)
		} else {
			gone = append(gone, next)
		}
	}
	if l.doubted = 2*len(gone) > before && !l.doubted; !l.doubted {
		changes = append(changes, gone...)
	}
	slices.SortFunc(changes, func(a, b *eventsv1.Listing) int { return strings.Compare(a.Symbol, b.Symbol) })
	records := make([]*eventsv1.ReferenceRecord, len(changes))
	for i, change := range changes {
		records[i] = &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Listing{Listing: change}}
	}
	if err := l.out.Append(ctx, records...); err != nil {
		return 0, err
	}
	for _, change := range changes {
		l.known[change.Symbol] = change
	}
	return len(changes), nil
}

// sameListing compares without times.
func sameListing(a, b *eventsv1.Listing) bool {
	return a.Base == b.Base && a.Quote == b.Quote && a.Gone == b.Gone && a.Status == b.Status && a.Simulated == b.Simulated
}
