package producers_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// haltedBy is by what each simulated venue's list says that a market is halted. The others' lists have only what trades.
var haltedBy = map[string]string{
	"binance": "status=BREAK", "bitget": "status=halt", "bitstamp": "trading=Disabled", "bybit": "status=Closed", "coinbase": "trading_disabled=true",
	"cryptocom": "tradable=false", "gate": "trade_status=untradable", "htx": "state=suspend", "kraken": "status=cancel_only", "kucoin": "enableTrading=false",
	"mexc": "status=2", "okx": "state=suspend", "poloniex": "state=PAUSE",
}

// Of a venue that halts markets its adapter reads which, in the venue's words, and gets no ticker of them when it asks; of a venue whose list has only
// what trades they are gone.
func TestAdaptersReadWhatIsHalted(t *testing.T) {
	sim := simulated(t)
	for _, slug := range sim.Slugs() {
		t.Run(slug, func(t *testing.T) {
			venue, ok := exchanges.Find(slug)
			if !ok {
				t.Fatal("no such adapter")
			}
			readHalted(t, venue, sim)
		})
	}
}

func readHalted(t *testing.T, venue adapter.Venue, sim *simulator.Simulator) {
	set := func(faults provider.Faults) {
		t.Helper()
		if err := sim.SetFaults(venue.Slug, faults); err != nil {
			t.Fatal(err)
		}
	}
	address := sim.URLs()[venue.Slug].REST
	before, halted := listed(t, venue, address)
	if len(before) < 20 || len(halted) > 0 {
		t.Fatalf("%d markets trade and %d are halted, before any is", len(before), len(halted))
	}
	set(provider.Faults{Halted: true})
	during, halted := listed(t, venue, address)
	var leaving, staying adapter.Instrument
	for symbol, in := range before {
		if _, stays := during[symbol]; stays {
			staying = in
			continue
		}
		leaving = in
		if want := haltedBy[venue.Slug]; halted[symbol].Status != want || want != "" && (halted[symbol].Base != in.Base || halted[symbol].Quote != in.Quote) {
			t.Errorf("%+v is halted: read as %+v, want %q", in, halted[symbol], want)
		}
	}
	left := len(before) - len(during)
	if want := len(before) / 10; left < want-1 || left > want+1 {
		t.Errorf("of %d markets %d trade no more, want a tenth", len(before), left)
	}
	if _, says := haltedBy[venue.Slug]; says != (venue.Halted != nil) || says && len(halted) != left {
		t.Errorf("the list names %d halted markets, want %d", len(halted), left)
	}
	quoted := func() (ofStaying, ofLeaving bool) {
		symbols := tickers(t, venue, address, before, staying, leaving)
		return symbols[staying.Symbol], symbols[leaving.Symbol]
	}
	if stays, leaves := quoted(); !stays || leaves {
		t.Errorf("there is a ticker of %s, which trades: %t, and of %s, which is halted: %t", staying.Symbol, stays, leaving.Symbol, leaves)
	}
	set(provider.Faults{})
	after, halted := listed(t, venue, address)
	if len(after) != len(before) || len(halted) > 0 {
		t.Errorf("%d markets trade and %d are halted afterwards, want %d and none", len(after), len(halted), len(before))
	}
	if stays, leaves := quoted(); !stays || !leaves {
		t.Errorf("there is a ticker of %s: %t, and of %s: %t, afterwards", staying.Symbol, stays, leaving.Symbol, leaves)
	}
}

// listed reads the markets that trade and those that are halted, by symbol.
func listed(t *testing.T, venue adapter.Venue, address string) (trading, halted map[string]adapter.Instrument) {
	t.Helper()
	trading, halted = map[string]adapter.Instrument{}, map[string]adapter.Instrument{}
	for _, path := range venue.Listing {
		body, status := requested(t, address+path)
		if status != http.StatusOK {
			t.Fatalf("%s: status %d", path, status)
		}
		list, err := venue.Instruments(path, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range list {
			trading[in.Symbol] = in
		}
		if venue.Halted == nil {
			continue
		}
		if list, err = venue.Halted(path, body); err != nil {
			t.Fatal(err)
		}
		for _, in := range list {
			halted[in.Symbol] = in
		}
	}
	return trading, halted
}

// tickers asks for those of two markets as the engine of adapters does, and returns of which symbols it got one.
func tickers(t *testing.T, venue adapter.Venue, address string, all map[string]adapter.Instrument, of ...adapter.Instrument) map[string]bool {
	t.Helper()
	var list []adapter.Instrument
	for _, in := range all {
		list = append(list, in)
	}
	index, symbols := adapter.Index(list), map[string]bool{}
	for _, query := range venue.Tickers(of) {
		body, status := requested(t, address+query.Path)
		if status != http.StatusOK {
			continue
		}
		var out adapter.Out
		if err := venue.DecodeREST(query.Path, body, &out); err != nil || len(out.Refused) > 0 {
			t.Fatalf("%s: %v, %v", query.Path, err, out.Refused)
		}
		for _, event := range out.Events {
			if event.Symbol == "" {
				event.Symbol = query.Symbol
			}
			symbols[index[event.Symbol].Symbol] = true
		}
	}
	return symbols
}

func requested(t *testing.T, address string) (body []byte, status int) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	body, err = io.ReadAll(answer.Body)
	if err != nil || answer.Body.Close() != nil {
		t.Fatal(err)
	}
	return body, answer.StatusCode
}
