package exchanges

import (
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
)

// bitstampTransactions are trades of the HTTP interface, which the engine does not ask for.
var bitstampTransactions = object{
	Kind: adapter.Trade, Channel: "trades", Clock: clock(time.Second), Taker: sides("0", "1"),
	Time: "date", ID: "tid", Price: "price", Size: "amount", Side: "type",
}.reader()
