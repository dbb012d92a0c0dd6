package poll_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/simulator/venues"
	"github.com/marketlog/marketlog/producers/sources"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// TestSourcesReadTheSimulator has every polled source's decoder read what the simulator sends to each path that the
// source asks for at its start: all of it, and of every kind that the source declares.
func TestSourcesReadTheSimulator(t *testing.T) {
	sim := simulatedSources(t, producers.WallClock{})
	for _, source := range sources.List() {
		t.Run(source.Slug, func(t *testing.T) {
			url := sim.SourceURLs()[source.Slug]
			if url == "" {
				t.Fatalf("it is not simulated: those are %v", sim.SourceSlugs())
			}
			readSimulatedSource(t, source, url)
		})
	}
}

// simulatedSources runs the simulator of sources alone, without their limits, until the test ends.
func simulatedSources(t testing.TB, clock provider.Clock) *simulator.Simulator {
	t.Helper()
	cfg := simulator.DefaultConfig()
	cfg.Clock, cfg.Venues, cfg.SourceRequests = clock, []venues.Venue{}, 100_000
	sim, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	running.Go(func() {
		if err := sim.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return sim
}

func readSimulatedSource(t *testing.T, source poll.Source, url string) {
	known := poll.Known{Now: time.Now(), Read: map[string]time.Time{}}
	ranks, kinds, rows := map[string]uint32{}, map[string]int{}, 0
	read := func(r poll.Request) {
		t.Helper()
		var readings poll.Readings
		if err := source.Decode(r.Path, simulatedAnswer(t, url, r), &readings); err != nil {
			t.Errorf("%s: %v", r.Path, err)
		}
		if len(readings.Refused) > 0 {
			t.Errorf("%s: %d rows are rejected, the first: %v", r.Path, len(readings.Refused), readings.Refused[0])
		}
		rows += len(readings.Fixings) + len(readings.Records)
		kinds[poll.KindFiat] += len(readings.Fixings)
		for _, rec := range readings.Records {
			kinds[kindOf(rec)]++
			if c := rec.GetCoin(); c != nil {
				ranks[c.SourceId] = max(ranks[c.SourceId], c.Rank)
			}
			if m := rec.GetCoinMarket(); m != nil {
				ranks[m.SourceId] = max(ranks[m.SourceId], m.Rank)
			}
		}
	}
	if source.History != nil {
		for _, path := range source.History(known) {
			read(poll.Request{Path: path})
		}
	}
	for _, feed := range source.Feeds {
		known.Ranked = known.Ranked[:0]
		for id := range ranks {
			known.Ranked = append(known.Ranked, id)
		}
		slices.SortFunc(known.Ranked, func(a, b string) int { return cmp.Or(cmp.Compare(ranks[a]-1, ranks[b]-1), strings.Compare(a, b)) })
		requests := feed.Requests(known)
		for _, r := range requests {
			read(r)
		}
		t.Logf("%s: %d requests, %d rows so far", feed.Name, len(requests), rows)
	}
	if source.Past != nil {
		readSimulatedPast(t, source, url)
	}
	for _, kind := range source.Kinds {
		if kinds[kind] == 0 {
			t.Errorf("it declares %s, and none was read: %v", kind, kinds)
		}
	}
}

// readSimulatedPast asks for some of the newest values of the best known series, as a back-fill does: each interval that was
// asked for has its value, which is that of the series.
func readSimulatedPast(t *testing.T, source poll.Source, url string) {
	t.Helper()
	past := source.Past
	var listed poll.Readings
	for _, path := range past.Listing {
		if err := source.Decode(path, simulatedAnswer(t, url, poll.Request{Path: path}), &listed); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	series := past.Series(listed.Records)
	if len(series) == 0 {
		t.Fatal("nothing has a past")
	}
	to := time.Now().Add(-past.Settle).Truncate(past.Interval)
	from := to.Add(-5 * past.Interval)
	for _, s := range series[:min(len(series), 3)] {
		path := past.Path(s, from, to)
		records, refused, err := source.ReadPast(path, simulatedAnswer(t, url, poll.Request{Path: path}))
		if err != nil || len(refused) > 0 {
			t.Errorf("%s: %v, %d refused", path, err, len(refused))
		}
		found := map[time.Time]bool{}
		for _, rec := range records {
			if rate := rec.GetRate(); rate != nil && (rate.Pool != s.ID || rate.Symbol == "" || rate.Source != source.Slug) {
				t.Errorf("%s: %v is not of %+v", path, rate, s)
			}
			at, _ := poll.EventTime(rec)
			found[time.Unix(0, at).Truncate(past.Interval)] = true
		}
		for at := from; at.Before(to); at = at.Add(past.Interval) {
			if working := source.Slug != "ecb" || at.Weekday() != time.Saturday && at.Weekday() != time.Sunday; !found[at] && working {
				t.Errorf("%s: nothing of %s", path, at)
			}
		}
	}
	t.Logf("a past of %d series: %v", len(series), series[:min(len(series), 25)])
}

func kindOf(rec *eventsv1.ReferenceRecord) string {
	switch rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Coin:
		return poll.KindCoin
	case *eventsv1.ReferenceRecord_CoinMarket, *eventsv1.ReferenceRecord_CoinPast:
		return poll.KindMarket
	case *eventsv1.ReferenceRecord_Stablecoin:
		return poll.KindStablecoin
	case *eventsv1.ReferenceRecord_Protocol, *eventsv1.ReferenceRecord_ChainTvl, *eventsv1.ReferenceRecord_DefiPast:
		return poll.KindTVL
	case *eventsv1.ReferenceRecord_FearGreed:
		return poll.KindFearGreed
	case *eventsv1.ReferenceRecord_Global:
		return poll.KindGlobal
	case *eventsv1.ReferenceRecord_Rate:
		return poll.KindRate
	}
	return "unknown"
}

func simulatedAnswer(t testing.TB, base string, of poll.Request) []byte {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	url := base + of.Path
	r, err := http.NewRequestWithContext(ctx, of.Method(), url, strings.NewReader(of.Body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v, %.200s", url, answer.StatusCode, err, body)
	}
	return body
}
