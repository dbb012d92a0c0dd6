package venues

import (
	"strings"
	"testing"
)

// Trades and tickers of several symbols are one topic, a snapshot is of one symbol.
func TestKucoinTakesOneSymbolASnapshot(t *testing.T) {
	x := open(t, 1, kucoin()).exchanges[0]
	c := x.pretend(t)
	c.texts() // the welcome
	for _, test := range []struct{ topic, want string }{
		{"/market/match:BTC-USDT,ETH-USDT", `"type":"ack"`},
		{"/market/ticker:BTC-USDT,ETH-USDT", `"type":"ack"`},
		{"/market/snapshot:BTC-USDT", `"type":"ack"`},
		{"/market/snapshot:BTC-USDT,ETH-USDT", `topic /market/snapshot:BTC-USDT,ETH-USDT is not found`},
	} {
		c.send(`{"id":"1","type":"subscribe","topic":"` + test.topic + `","response":true}`)
		if got := c.texts(); len(got) != 1 || !strings.Contains(got[0], test.want) {
			t.Errorf("%s: got %q, want %s", test.topic, got, test.want)
		}
	}
}
