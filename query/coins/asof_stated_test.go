package coins_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// statedOf are the operations that answer what sources state of coins.
var statedOf = []string{
	"/api/v1/coins?", "/api/v1/coins?q=o&sort=name&view=tool&", "/api/v1/coins?category=layer-1&limit=2&page=2&", "/api/v1/coins?symbol=pep&", "/api/v1/coins?has_rates=true&", "/api/v1/coins?has_rates=false&",
	"/api/v1/coins/bitcoin?", "/api/v1/coins/ethereum?view=tool&", "/api/v1/coins/by-id/pepe?", "/api/v1/coins/by-id/top?", "/api/v1/coins/id:clone?",
	"/api/v1/coins/ethereum/networks?", "/api/v1/coins/id:top/networks?", "/api/v1/coins/bitcoin/similar?", "/api/v1/coins/solana/similar?limit=1&", "/api/v1/coins/categories?", "/api/v1/coins/recent?",
	"/api/v1/coins/slugs?", "/api/v1/coins/slugs?featured=true&", "/api/v1/coins/stats?", "/api/v1/coins/markets?category=defi&", "/api/v1/coins/markets?search=o&order=name&", "/api/v1/coins/with-rates?category=lending&coinCategory=Layer%201&",
}

// stated is something that a source states at random: of a coin in most cases.
func (w *replayedFixture) stated() *eventsv1.ReferenceRecord {
	source, now := []string{"coingecko", "coinpaprika"}[w.IntN(2)], w.Now.UnixNano()
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1}
	switch w.IntN(12) {
	case 0, 1:
		rec.Body = &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: source, Name: strings.ToUpper(source), Attribution: fmt.Sprint("by ", w.IntN(3)), IngestTime: now}}
		return rec
	case 2:
		rec.Body = &eventsv1.ReferenceRecord_Fetch{Fetch: &eventsv1.Fetch{Source: source, Started: now}}
		return rec
	case 3:
		rec.Body = &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: "1.1", Date: w.Now.Format(time.DateOnly), IngestTime: now}}
		return rec
	}
	// The last three are none of the table's; the id of one is a path, and the symbol of another an id.
	id := []string{"bitcoin", "bitcoin", "ethereum", "solana", "top", "clone", "dust"}[w.IntN(7)]
	ids := map[string]string{"bitcoin": "btc-bitcoin", "ethereum": "eth-ethereum", "solana": "sol-solana"}
	if source == "coinpaprika" && ids[id] == "" {
		source = "coingecko"
	}
	drawn := func(texts ...string) string { return texts[w.IntN(len(texts))] }
	coin := &eventsv1.Coin{Source: source, SourceId: id, Part: drawn("list", "detail", "market"), Symbol: drawn("pep", id[:3], "X"), Name: id + drawn("", " coin", " o"),
		ImageUrl: drawn("", "https://example.com/a.png", "https://example.com/b.png"), CreatedAt: drawn("", "2026-01-02", "2025-12-01T00:00:00Z", "no date"), Inactive: w.IntN(5) == 0, IngestTime: now + w.Offset()} // which its record is found by
	if id == "clone" {
		coin.Symbol = "bitcoin"
	}
	if source == "coinpaprika" {
		coin.SourceId = ids[id]
	}
	for _, category := range []string{"Layer 1", "layer-1", "DeFi", "Meme", "日本"} {
		if coin.Part != "market" && w.IntN(3) == 0 {
			coin.Categories = append(coin.Categories, category)
		}
	}
	if coin.Part == "detail" {
		coin.Description = drawn("", "a coin", "another coin")
		coin.Links = []*eventsv1.Link{{Kind: "homepage", Url: drawn("https://a.example", "https://b.example")}}
		coin.Developer = []*eventsv1.Statistic{{Name: "stars", Value: float64(w.IntN(100))}}
	}
	if w.IntN(2) == 0 {
		coin.Platforms = []*eventsv1.Platform{{Name: drawn("ethereum", "tron"), Address: drawn("0x1", "0x2")}}
	}
	rec.Body = &eventsv1.ReferenceRecord_Coin{Coin: coin}
	return rec
}

// write writes what a source states to the log, and returns it as a tail hands it over.
func (w *replayedFixture) write(rec *eventsv1.ReferenceRecord) views.TailRecord {
	w.T.Helper()
	value, err := rec.MarshalVT()
	w.Must(err)
	written := &kgo.Record{Topic: schemas.TopicReferenceRaw, Key: []byte(rec.GetCoin().GetSource()), Value: value, Timestamp: w.Now}
	w.Must(w.client.ProduceSync(w.T.Context(), written).FirstErr())
	return views.TailRecord{Offset: written.Offset, Value: value}
}

// clocked writes the clock of the sources.
func (w *replayedFixture) clocked() views.TailRecord {
	return w.write(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}})
}

// explains asks why numbers of an answer are what they are, as of when it was given: what a source counts, and how alike coins are. It returns how many it asked for.
func (w *replayedFixture) explains(was querytest.Answered, paths []string) (asked int) {
	w.T.Helper()
	want := map[string]float64{}
	for i, path := range paths {
		body, ok := strings.CutPrefix(was.Bodies[i], "200 ")
		switch {
		case ok && path == "/api/v1/coins/bitcoin?":
			var coin struct {
				Data struct{ Developer map[string]float64 }
			}
			w.Must(json.Unmarshal([]byte(body), &coin))
			for name, count := range coin.Data.Developer {
				want["developer/bitcoin/"+name] = count
			}
		case ok && path == "/api/v1/coins/bitcoin/similar?":
			var similar coins.SimilarBody
			w.Must(json.Unmarshal([]byte(body), &similar))
			for _, coin := range similar.Coins {
				want["similarity/bitcoin/id:"+coin.ID] = coin.Similarity
			}
		}
	}
	for number, value := range want {
		text := w.Get("/api/v1/explain/" + number + "?asOf=" + was.At.Format(time.RFC3339Nano))
		var explained struct{ Data explain.Node }
		w.Must(json.Unmarshal([]byte(text[len("200 "):]), &explained))
		if n := explained.Data; n.Value == nil || *n.Value != value || strings.HasPrefix(number, "similarity") && (n.Reproduced == nil || !*n.Reproduced) {
			w.T.Fatalf("%s as of %s is %.600s, want %v", number, was.At.Format(time.RFC3339Nano), text, value)
		}
	}
	return len(want)
}
