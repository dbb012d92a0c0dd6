package simulator

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
	"github.com/marketlog/marketlog/schemas"
)

// open2 is a whole simulator that does not move.
func open(t *testing.T, outlier string) *Simulator {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Clock, cfg.Outlier = simulatortest.Fixed(simulatortest.Noon), outlier
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.listener.Close() })
	return s
}

func TestCoinGeckoAgreesWithTheVenues(t *testing.T) {
	s := open(t, "")
	type row struct {
		ID           string
		CurrentPrice *float64 `json:"current_price"`
		High24h      *float64 `json:"high_24h"`
		Low24h       *float64 `json:"low_24h"`
		Change24h    *float64 `json:"price_change_percentage_24h"`
	}
	rows := map[string]row{}
	for page := 1; ; page++ {
		w := httptest.NewRecorder()
		path := "/coingecko/api/v3/coins/markets?vs_currency=usd&precision=full&per_page=250&page=" + strconv.Itoa(page)
		s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var list []row
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatalf("%v in %.200s", err, w.Body)
		}
		if len(list) == 0 {
			break
		}
		for _, r := range list {
			rows[r.ID] = r
		}
	}
	compared := 0
	for _, x := range s.venues.Exchanges() {
		for _, m := range x.Markets() {
			row, ok := rows[m.BaseAsset.ID]
			if !ok || m.QuoteAsset.ID != schemas.USD && m.QuoteAsset.ID != "tether" {
				continue
			}
			compared++
			price := m.Trades(simulatortest.Noon, 1)[0].Price.Float() * m.QuoteAsset.At(simulatortest.Noon.UnixNano())
			if off := price / *row.CurrentPrice - 1; math.Abs(off) > 0.01 {
				t.Errorf("%s costs %g at %s, %g at CoinGecko: %.2f %% off", row.ID, price, x.Slug(), *row.CurrentPrice, 100*off)
			}
			// The hour in which the 24 hours began may hold their high and low, or ones that came before them.
			hours := m.Candles(simulatortest.Noon.Truncate(time.Hour).Add(-24*time.Hour), simulatortest.Noon, simulatortest.Noon, time.Hour)
			first := hours[0]
			high, low := first.Close.Float(), first.Close.Float()
			for _, c := range hours[1:] {
				high, low = max(high, c.High.Float()), min(low, c.Low.Float())
			}
			highest, lowest := max(high, first.High.Float()), min(low, first.Low.Float())
			if *row.High24h < high*0.99 || *row.High24h > highest*1.01 || *row.Low24h > low*1.01 || *row.Low24h < lowest*0.99 {
				t.Errorf("%s ran from %g to %g at %s, at most %g to %g, at CoinGecko %g to %g",
					row.ID, low, high, x.Slug(), lowest, highest, *row.Low24h, *row.High24h)
			}
			before := m.BaseAsset.At(simulatortest.Noon.Add(-24 * time.Hour).UnixNano())
			if want := 100 * (*row.CurrentPrice/before - 1); math.Abs(*row.Change24h-want) > 1 {
				t.Errorf("%s changed by %g, want %g", row.ID, *row.Change24h, want)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d markets are compared, want more", compared)
	}
}

func TestFaultsAreSetBySlug(t *testing.T) {
	s := open(t, "")
	silent, frozen := provider.Faults{Silence: true}, provider.Faults{Frozen: true}
	for slug, f := range map[string]provider.Faults{"kraken": silent, "coingecko": frozen} {
		if err := s.SetFaults(slug, f); err != nil {
			t.Fatal(err)
		}
		if err := s.Disconnect(slug); err != nil {
			t.Errorf("disconnecting %s: %v", slug, err)
		}
	}
	if got, want := s.Faults(), (map[string]provider.Faults{"kraken": silent, "coingecko": frozen}); !maps.Equal(got, want) {
		t.Errorf("in force are %+v, want %+v", got, want)
	}
	if err := s.SetFaults("mtgox", silent); err == nil {
		t.Error("an unknown venue is accepted")
	}
	if err := s.Disconnect("mtgox"); err == nil {
		t.Error("an unknown venue is disconnected")
	}
	if got := s.Stats("mtgox"); got != (provider.Stats{}) {
		t.Errorf("an unknown venue counts %+v", got)
	}
}
