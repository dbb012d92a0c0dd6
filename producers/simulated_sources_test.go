package producers_test

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
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/producers/sources"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// TestSourcesReadTheSimulator has every polled source's decoder read what the simulator says to each path that the
// source asks for at its start: all of it, and of every kind that the source declares.
func TestSourcesReadTheSimulator(t *testing.T) {
	cfg := simulator.DefaultConfig()
	cfg.Clock, cfg.Venues, cfg.SourceRequests = producers.WallClock{}, []simulator.Venue{}, 100_000
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

func readSimulatedSource(t *testing.T, source producers.Source, url string) {
	known := producers.Known{Now: time.Now(), Read: map[string]time.Time{}}
	ranks, kinds, rows := map[string]uint32{}, map[string]int{}, 0
	read := func(path string) {
		t.Helper()
		var said producers.Readings
		if err := source.Decode(path, simulatedAnswer(t, url+path), &said); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if len(said.Refused) > 0 {
			t.Errorf("%s: %d rows are refused, the first: %v", path, len(said.Refused), said.Refused[0])
		}
		rows += len(said.Fixings) + len(said.Records)
		kinds[producers.KindFiat] += len(said.Fixings)
		for _, rec := range said.Records {
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
			read(path)
		}
	}
	for _, feed := range source.Feeds {
		known.Ranked = known.Ranked[:0]
		for id := range ranks {
			known.Ranked = append(known.Ranked, id)
		}
		slices.SortFunc(known.Ranked, func(a, b string) int { return cmp.Or(cmp.Compare(ranks[a]-1, ranks[b]-1), strings.Compare(a, b)) })
		paths := feed.Paths(known)
		for _, path := range paths {
			read(path)
		}
		t.Logf("%s: %d paths, %d rows so far", feed.Name, len(paths), rows)
	}
	for _, kind := range source.Kinds {
		if kinds[kind] == 0 {
			t.Errorf("it declares %s, and none was read: %v", kind, kinds)
		}
	}
}

func kindOf(rec *eventsv1.ReferenceRecord) string {
	switch rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Coin:
		return producers.KindCoin
	case *eventsv1.ReferenceRecord_CoinMarket, *eventsv1.ReferenceRecord_CoinPast:
		return producers.KindMarket
	case *eventsv1.ReferenceRecord_Stablecoin:
		return producers.KindStablecoin
	case *eventsv1.ReferenceRecord_Protocol, *eventsv1.ReferenceRecord_ChainTvl:
		return producers.KindTVL
	case *eventsv1.ReferenceRecord_FearGreed:
		return producers.KindFearGreed
	case *eventsv1.ReferenceRecord_Global:
		return producers.KindGlobal
	case *eventsv1.ReferenceRecord_Rate:
		return producers.KindRate
	}
	return "unknown"
}

func simulatedAnswer(t *testing.T, url string) []byte {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	url, posted, isPost := strings.Cut(url, " ")
	method := http.MethodGet
	if isPost {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(posted))
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
