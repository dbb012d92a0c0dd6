package poll_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// listingLog is the log of a venue, for processes that follow one another.
type listingLog struct {
	poll.SourceOutbox
	now     time.Time
	records []*eventsv1.ReferenceRecord
}

func (l *listingLog) Now() time.Time { return l.now }

func (l *listingLog) After(time.Duration) <-chan time.Time { return nil }

func (l *listingLog) Known(_ context.Context, visit func(*eventsv1.ReferenceRecord)) error {
	for _, rec := range l.records {
		visit(proto.Clone(rec).(*eventsv1.ReferenceRecord))
	}
	return nil
}

func (l *listingLog) Append(_ context.Context, records ...*eventsv1.ReferenceRecord) error {
	for _, rec := range records {
		rec.GetListing().IngestTime = l.now.UnixNano()
		l.records = append(l.records, proto.Clone(rec).(*eventsv1.ReferenceRecord))
	}
	return nil
}

// Only what changed is written, by whichever process: new markets, markets with another base, markets that are gone or back, and all others before the
// log forgets them. A list that has lost most of its markets is believed at the second time.
func TestOnlyChangesOfAListAreRecorded(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	log := &listingLog{now: begin}
	listings := poll.NewListings(log, log)
	list := func(markets ...string) (all []*eventsv1.Listing) {
		for _, market := range markets {
			in := &eventsv1.Listing{Venue: "okx", Quote: "USDT"}
			if _, err := fmt.Sscanf(market, "%s is %s", &in.Symbol, &in.Base); err != nil {
				t.Fatal(err)
			}
			_, in.Status, _ = strings.Cut(market, ", ")
			in.Base = strings.TrimSuffix(in.Base, ",")
			all = append(all, in)
		}
		return all
	}
	usual := list("B is BTC", "A is ADA", "C is CRO", "A is ADA")
	for _, step := range []struct {
		name    string
		after   time.Duration
		restart bool
		list    []*eventsv1.Listing
		want    []string
	}{
		{"the first list", 0, false, usual, []string{"A ADA false 0", "B BTC false 0", "C CRO false 0"}},
		{"the same", time.Hour, false, usual, nil},
		{"the same after a restart", time.Hour, true, usual, nil},
		{"one more and one gone", time.Hour, false, list("A is ADA", "B is BTC", "D is DOT"), []string{"C CRO true 0", "D DOT false 3"}},
		{"another base, after a restart", time.Hour, true, list("A is AGIX", "B is BTC", "D is DOT"), []string{"A AGIX false 0"}},
		{"back again", time.Hour, false, list("A is AGIX", "B is BTC", "C is CRO", "D is DOT"), []string{"C CRO false 0"}},
		{"most are gone", time.Hour, false, list("B is BTC"), nil},
		{"they were not", time.Hour, false, list("A is AGIX", "B is BTC", "C is CRO", "D is DOT"), nil},
		{"most are gone again", time.Hour, false, list("B is BTC"), nil},
		{"and stay so", time.Hour, false, list("B is BTC"), []string{"A AGIX true 0", "C CRO true 0", "D DOT true 3"}},
		{"before it is forgotten", 6 * 24 * time.Hour, true, list("B is BTC"), []string{"B BTC false 0"}},
		{"halted, beside one that never traded here", time.Hour, false, list("E is ETH", "B is BTC, state=suspend", "F is FIL, state=preopen"), []string{"B BTC true 0 state=suspend", "E ETH false 154"}},
		{"still halted, after a restart", time.Hour, true, list("E is ETH", "B is BTC, state=suspend"), nil},
		{"halted for another reason", time.Hour, false, list("E is ETH", "B is BTC, state=test"), []string{"B BTC true 0 state=test"}},
		{"trading again", time.Hour, false, list("E is ETH", "B is BTC"), []string{"B BTC false 0"}},
		{"both halted at once", time.Hour, false, list("E is ETH, state=suspend", "B is BTC, state=suspend"), []string{"B BTC true 0 state=suspend", "E ETH true 154 state=suspend"}},
		{"one of them is off the list", time.Hour, false, list("B is BTC, state=suspend"), []string{"E ETH true 154"}},
		{"and stays off", time.Hour, true, list("B is BTC, state=suspend"), nil},
	} {
		log.now = log.now.Add(step.after)
		if step.restart {
			listings = poll.NewListings(log, log)
		}
		before := len(log.records)
		n, err := listings.Record(t.Context(), step.list)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rec := range log.records[before:] {
			l := rec.GetListing()
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %t %g %s", l.Symbol, l.Base, l.Gone, time.Unix(0, l.FirstSeen).Sub(begin).Hours(), l.Status)))
		}
		if !slices.Equal(got, step.want) || n != len(got) {
			t.Errorf("%s: got %d and %v, want %v", step.name, n, got, step.want)
		}
	}
}
