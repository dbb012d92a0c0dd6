package poll_test

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
)

// BenchmarkSources_FullCycle asks what a round of every feed of every source costs on one core, against the simulator in the
// same process and without the budgets, which in an instance spread it over half a minute and more. The limit is fetching the
// same answers and reading none.
func BenchmarkSources_FullCycle(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cycle := func(at map[string]string) (made []sourceRequest, rows int) {
		for _, source := range sources.List() {
			known := poll.Known{Now: time.Now(), Read: map[string]time.Time{}}
			ranks := map[string]uint32{}
			for _, feed := range source.Feeds {
				known.Ranked = known.Ranked[:0]
				for id := range ranks {
					known.Ranked = append(known.Ranked, id)
				}
				slices.SortFunc(known.Ranked, func(a, b string) int { return cmp.Or(cmp.Compare(ranks[a]-1, ranks[b]-1), strings.Compare(a, b)) })
				for _, r := range feed.Requests(known) {
					made = append(made, sourceRequest{source.Slug, r})
					var readings poll.Readings
					if err := source.Decode(r.Path, simulatedAnswer(b, at[source.Slug], r), &readings); err != nil {
						b.Fatalf("%s: %v", r.Path, err)
					}
					rows += len(readings.Fixings) + len(readings.Records)
					for _, rec := range readings.Records {
						if m := rec.GetCoinMarket(); m != nil {
							ranks[m.SourceId] = max(ranks[m.SourceId], m.Rank)
						}
					}
				}
			}
		}
		return made, rows
	}
	for b.Loop() {
		at := simulatedSources(b, producers.WallClock{}).SourceURLs()
		began := time.Now()
		made, rows := cycle(at)
		took := time.Since(began)
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		at = simulatedSources(b, producers.WallClock{}).SourceURLs() // the limits of the first are used up
		began = time.Now()
		for _, m := range made {
			simulatedAnswer(b, at[m.source], m.request)
		}
		b.ReportMetric(float64(took.Microseconds())/1000, "ms/cycle")
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "fetch-only-ms/cycle")
		b.ReportMetric(float64(len(made)), "requests")
		b.ReportMetric(float64(rows), "rows")
		b.ReportMetric(float64(memory.HeapInuse)/(1<<20), "heap-MB")
	}
}

// sourceRequest is a request that was made of a source.
type sourceRequest struct {
	source  string
	request poll.Request
}
