package providers

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// noSources is a history of no polled source.
type noSources struct{}

func (noSources) SourceHealth(context.Context, time.Time) ([]views.SourceHealth, error) {
	return nil, nil
}

// A venue that falls silent is reported once as it is degraded and once as it is down, with the reason and the time since when; so
// is its return. What does not change is in the present only.
func TestStatesAreSentAsTheyChange(t *testing.T) {
	coins, err := schemas.ParseCoins("id,symbol,name,rank,kind,peg,aliases\nbitcoin,BTC,Bitcoin,1,coin,,\n", "code,name,aliases\nUSD,United States Dollar,\n")
	if err != nil {
		t.Fatal(err)
	}
	prices := views.NewPriceCache(coins)
	// Its cache has a goroutine that outlives the test's.
	unit := New(prices, views.NewCatalog(coins), views.NewYieldStore(), noSources{}, Served{}, []views.Provider{{Slug: "kraken", Name: "Kraken"}, {Slug: "okx", Name: "OKX"}})
	synctest.Test(t, func(t *testing.T) {
		offset := int64(0)
		hear := func() {
			offset++
			now := time.Now().UnixNano()
			err := prices.Apply(stream.TailRecord{Offset: offset, Marked: &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Offset: offset}, Body: &eventsv1.PriceRecord_Price{
				Price: &eventsv1.Price{CoinId: "bitcoin", Price: 1, Time: now, Inputs: []*eventsv1.PriceInput{{Provider: "kraken", LastHeard: now}}}}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		channel := unit.Channels(time.Now, slog.New(slog.DiscardHandler))[0]
		hear()
		silentSince := query.FormatTime(time.Now().UnixNano())
		var sent []StreamedState
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = channel.Follow(ctx, func(_ int32, _ int64, read query.ChannelRecord) {
				for _, e := range read.Elements {
					var s StreamedState
					if err := json.Unmarshal(e.JSON, &s); err != nil {
						t.Error(err)
					}
					sent = append(sent, s)
				}
			})
		}()
		defer func() { cancel(); <-over }()
		synctest.Wait()
		if len(sent) > 0 {
			t.Errorf("at first: got %v, want no change", sent)
		}
		if present := channel.Present(); len(present) != 2 {
			t.Errorf("got %d states, want 2", len(present))
		}
		time.Sleep(11 * time.Minute)
		hear()
		back := time.Now()
		time.Sleep(10 * time.Second)
		var got []string
		for _, s := range sent {
			got = append(got, s.Slug+" "+s.Status+" "+s.Reason+" "+s.Since)
		}
		want := []string{"kraken degraded silence " + silentSince, "kraken down silence " + silentSince}
		if len(got) != 3 || !slices.Equal(got[:2], want) {
			t.Fatalf("got %v, want %v and the return", got, want)
		}
		if since, err := time.Parse(time.RFC3339, sent[2].Since); sent[2].Status != healthy || sent[2].Reason != "" || err != nil || since.Sub(back) > lookEvery {
			t.Errorf("the return: got %+v, want healthy within %v of %v", sent[2], lookEvery, back)
		}
	})
}
