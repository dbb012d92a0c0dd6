package explain_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// detailed is what a source reports of a coin, in the log and in the catalog.
func (w *fixture) detailed(of *eventsv1.Coin) {
	w.append(schemas.TopicReferenceRaw, 0, of.Source, of.IngestTime, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: of}})
	w.flush()
	w.cataloged(of)
}

// cataloged is what the catalog alone has of a coin.
func (w *fixture) cataloged(of *eventsv1.Coin) {
	w.Said(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: of}})
	w.Minute(w.Now)
}

// categorized has coins with some of a few categories each, and counts of their source code.
func (w *fixture) categorized() []*eventsv1.Coin {
	random := streamtest.Rand(w.T)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var all []*eventsv1.Coin
	for i, of := range [][2]string{{"bitcoin", "BTC"}, {"ethereum", "ETH"}, {"tether", "USDT"}} {
		categories := []string{"Layer 1 (L1)", "Layer-1 L1"} // two names of one
		for n := range 6 {
			if random.IntN(2) == 0 {
				categories = append(categories, fmt.Sprint("Category ", n))
			}
		}
		coin := &eventsv1.Coin{Source: "coingecko", SourceId: of[0], Part: "detail", Symbol: of[1], Name: of[0], Categories: categories, IngestTime: w.Now.UnixNano() + int64(i),
			Developer: []*eventsv1.Statistic{{Name: "forks", Value: float64(random.IntN(10_000))}, {Name: "stars", Value: float64(random.IntN(10_000))}}}
		w.detailed(coin)
		all = append(all, coin)
	}
	return all
}

// What a source counts of source code is that of the record in which it has it. It is not said to be computed again, and shows where the log has another.
func TestCountsOfSourceCodeAreThoseOfTheirRecord(t *testing.T) {
	w := newFixture(t)
	for _, coin := range w.categorized() {
		for _, of := range coin.Developer {
			n := w.ask("developer/"+coin.SourceId+"/"+of.Name, "")
			if *n.Value != of.Value || n.Reproduced != nil || n.Note == "" || len(n.Records) != 1 || n.Records[0].Topic != schemas.TopicReferenceRaw {
				t.Errorf("got %+v, want %g, its record, and that it is stated", n, of.Value)
			}
		}
	}
	changed := proto.CloneOf(w.Catalog.Snapshot().ByID("bitcoin").Detailed)
	stars := changed.Developer[1].Value
	changed.Developer[1].Value++
	w.cataloged(changed)
	if n := w.reproduced("developer/bitcoin/stars", "", false); *n.Recomputed != stars {
		t.Errorf("got %+v, want the %g of the log", n, stars)
	}
	changed = proto.CloneOf(changed)
	changed.IngestTime += 42
	w.cataloged(changed)
	if n := w.ask("developer/bitcoin/stars", ""); n.Reproduced != nil || n.Note == "" || len(n.Records) > 0 {
		t.Errorf("got %+v, want that the log has no such record", n)
	}
	w.answered(map[string]int{
		"developer/BTC/forks":                               http.StatusOK,
		"developer/bitcoin/fork":                            http.StatusNotFound,
		"developer/euro-coin/forks":                         http.StatusNotFound,
		"developer/nobody/forks":                            http.StatusNotFound,
		"developer/bitcoin":                                 http.StatusNotFound,
		"developer/bitcoin/forks?asOf=2026-11-20T09:00:00Z": http.StatusGone,
	})
}

// What comes with the market of a coin names categories too, where nothing else of it does.
func TestSimilaritiesByWhatComesWithMarketsAreReproduced(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for i, id := range []string{"bitcoin", "ethereum"} {
		w.detailed(&eventsv1.Coin{Source: "coingecko", SourceId: id, Part: []string{"market", "detail"}[i], Symbol: id, Name: id, Categories: []string{"Layer 1 (L1)"}, IngestTime: w.Now.UnixNano()})
	}
	if n := w.reproduced("similarity/bitcoin/ethereum", "", true); *n.Value != 1 || len(n.Inputs[0].Records) != 1 || n.Time != query.FormatTime(w.Now.UnixNano()) {
		t.Errorf("got %+v, want that both are alike, by their records", n)
	}
}

// How alike two coins are follows from the categories that the log has of each.
func TestSimilaritiesAreReproduced(t *testing.T) {
	w := newFixture(t)
	all := w.categorized()
	for _, coin := range all {
		var body coins.SimilarBody
		w.read("/api/v1/coins/"+coin.SourceId+"/similar", &body)
		if len(body.Coins) != len(all)-1 {
			t.Errorf("got %d coins like %s, want the %d others", len(body.Coins), coin.SourceId, len(all)-1)
		}
		for _, similar := range body.Coins {
			other := all[slices.IndexFunc(all, func(c *eventsv1.Coin) bool { return c.SourceId == similar.ID })]
			n := w.reproduced("similarity/"+coin.SourceId+"/"+similar.ID, "", true)
			if *n.Value != similar.Similarity || len(n.Inputs) != 2 || *n.Inputs[0].Value != float64(len(coin.Categories)-1) || *n.Inputs[1].Value != float64(len(other.Categories)-1) || len(n.Inputs[1].Records) != 1 {
				t.Errorf("got %+v, want %g of both with their records", n, similar.Similarity)
			}
		}
	}
	changed := proto.CloneOf(all[1])
	changed.Categories = append(changed.Categories, "Unheard Of")
	w.cataloged(changed)
	if n := w.reproduced("similarity/bitcoin/ethereum", "", false); *n.Recomputed <= *n.Value {
		t.Errorf("got %+v, want that they are more alike by the log", n)
	}
	changed = proto.CloneOf(changed)
	changed.IngestTime += 42
	w.cataloged(changed)
	if n := w.ask("similarity/bitcoin/ethereum", ""); n.Reproduced != nil || n.Note == "" || n.Inputs[1].Note == "" {
		t.Errorf("got %+v, want that the log has no such record", n)
	}
	w.answered(map[string]int{
		"similarity/BTC/USDT":                                 http.StatusOK,
		"similarity/bitcoin/bitcoin":                          http.StatusNotFound,
		"similarity/bitcoin/euro-coin":                        http.StatusNotFound,
		"similarity/bitcoin/nobody":                           http.StatusNotFound,
		"similarity/bitcoin":                                  http.StatusNotFound,
		"similarity/bitcoin/tether?asOf=2026-11-20T09:00:00Z": http.StatusGone,
	})
}
