package adapter_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// A letter is read as the live feed would have: by today's adapter, by the question that an answer was given to, and
// without what the feed leaves out.
func TestLettersAreReadAgain(t *testing.T) {
	kraken, ok := exchanges.Find("kraken")
	if !ok {
		t.Fatal("there is no kraken")
	}
	list := adapter.Index([]adapter.Instrument{
		{Symbol: "BTC/USD", Base: "BTC", Quote: "USD", Aliases: []string{"XXBTZUSD"}}, {Symbol: "ETH/USD", Base: "ETH", Quote: "USD"},
	})
	wanted := func(in adapter.Instrument) bool { return in.Symbol != "ETH/USD" }
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC).UnixNano()
	const trade = `{"symbol":"BTC/USD","side":"buy","price":7.5,"qty":0.5,"ord_type":"limit","trade_id":1,"timestamp":"2026-01-02T03:04:05Z"}`
	for _, test := range []struct {
		name    string
		letter  *eventsv1.DeadLetter
		ticks   int
		problem error // nil: none
	}{
		{"a frame", &eventsv1.DeadLetter{Payload: []byte(`{"channel":"trade","type":"update","data":[` + trade + `]}`)}, 1, nil},
		{"history", &eventsv1.DeadLetter{Payload: []byte(`{"channel":"trade","type":"snapshot","data":[` + trade + `]}`)}, 0, nil},
		{"an answer", &eventsv1.DeadLetter{
			Payload: []byte(`{"error":[],"result":{"XXBTZUSD":{"a":["3","1","1"],"b":["1","1","1"],"c":["2","3"],"v":["1","2"]}}}`),
			Context: []byte(`{"path":"/0/public/Ticker?pair=XXBTZUSD"}`),
		}, 1, nil},
		{"an answer without its question", &eventsv1.DeadLetter{
			Payload: []byte(`{"error":[],"result":{"XXBTZUSD":{"a":["3","1","1"],"b":["1","1","1"],"c":["2","3"],"v":["1","2"]}}}`),
		}, 0, schemas.Undecodable},
		{"a market that is not read", &eventsv1.DeadLetter{Payload: []byte(`{"channel":"ticker","type":"update","data":[{"symbol":"ETH/USD","bid":1,"ask":2,"last":1.5}]}`)}, 0, nil},
		{"one row that is bad", &eventsv1.DeadLetter{
			Payload: []byte(`{"channel":"trade","type":"update","data":[` + trade + `,{"symbol":"BTC/USD","side":"buy","price":"x","qty":1,"trade_id":2,"timestamp":"2026-01-02T03:04:05Z"}]}`),
		}, 1, schemas.NotANumber},
		{"its beginning only", &eventsv1.DeadLetter{Payload: []byte(`{"channel":"trade"`), Truncated: true}, 0, adapter.ErrNotKept},
		{"nothing", &eventsv1.DeadLetter{Payload: []byte(`{"channel":"heartbeat"}`)}, 0, schemas.Undecodable},
	} {
		test.letter.IngestTime = at
		ticks, err := adapter.Redecode(&kraken, list, wanted, test.letter)
		if len(ticks) != test.ticks || !errors.Is(err, test.problem) {
			t.Errorf("%s: got %d ticks and %v, want %d and %v", test.name, len(ticks), err, test.ticks, test.problem)
		}
		for _, tick := range ticks {
			if tick.Symbol != "BTC/USD" || tick.Base != "BTC" || tick.IngestTime != at {
				t.Errorf("%s: got %v, want a tick of BTC/USD as of its letter", test.name, tick)
			}
			id := schemas.NumberedTrade("kraken", "BTC/USD", "trade", "1")
			if tick.Kind == eventsv1.TickKind_TICK_KIND_TRADE && !bytes.Equal(tick.EventId, id[:]) {
				t.Errorf("%s: the id is %x, want that of the trade, %x", test.name, tick.EventId, id)
			}
		}
	}
}
