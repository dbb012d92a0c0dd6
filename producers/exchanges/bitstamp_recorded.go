package exchanges

import (
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// bitstampTransaction is a trade of the HTTP interface, which the engine does not ask for.
type bitstampTransaction struct {
	ID     producers.Num `json:"tid"`
	Price  producers.Num `json:"price"`
	Amount producers.Num `json:"amount"`
	Kind   producers.Num `json:"type"`
	Time   producers.Num `json:"date"`
}

func (t *bitstampTransaction) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Channel: "trades", Time: producers.Unix(t.Time, time.Second),
		ID: t.ID, Price: t.Price, Size: t.Amount, Side: bitstampSide(t.Kind),
	}
}
