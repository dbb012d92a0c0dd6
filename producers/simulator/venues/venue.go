// Package venues serves the interfaces of exchanges, HTTP and WebSocket, each as the exchange documents it: one file a venue. It
// imports nothing of the adapters that read them, so that neither hides the other's mistakes.
package venues

import (
	"net/http"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
)

// Venue declares the simulated side of an exchange: which markets it lists, and how it spells what it
// says, on HTTP and on WebSocket. It is the whole of a venue's side, together with its encoders, and
// knows nothing of the adapter that will read it: both follow the venue's documentation.
type Venue struct {
	// Slug is the venue's name in the adapters' list.
	Slug string
	// Share of what is traded everywhere, and of all messages. 1 is a venue of middle size.
	Share float64
	// Quotes are what markets are quoted in, and down to which rank of the coin table each is.
	Quotes []QuoteAsset
	// Fiats are currencies that are traded like coins, against the first quote.
	Fiats []string
	// Beyond are symbols of coins that the venue lists although their rank is beyond that of its quotes, against the first quote.
	Beyond []string
	// Assets are the venue's own codes, by the symbol of the coin table, where they differ.
	Assets map[string]string
	// Symbol names a pair in the feed.
	Symbol func(base, quote string) string
	// PriceDecimals is how many a price may have; 0 is 12. A coin too cheap for them is not listed.
	PriceDecimals int
	// ListsTrading means that its list has only what trades: a market that is halted is off it.
	ListsTrading bool
	Limits       Limits

	// Routes are the HTTP interface: handlers by patterns of http.ServeMux, below the venue's base URL.
	Routes func(x *Exchange) map[string]http.HandlerFunc
	// Throttled answers a request beyond the limit; nil is a bare 429.
	Throttled http.HandlerFunc
	// Weight is how much of the limit a request takes; nil is one for each.
	Weight func(r *http.Request) int

	// Feed is the path of the WebSocket endpoint, below the venue's base URL; empty is /ws, where it is in any case.
	Feed string
	// Open greets a new connection; nil sends nothing.
	Open func(c *Conn)
	// Receive takes a client's message: it answers, subscribes, closes. No frame is sent meanwhile, so
	// that a snapshot and the subscription after it leave no gap.
	Receive func(c *Conn, message []byte)
	// Heartbeat is sent to each connection every HeartbeatEvery; 0 is never.
	HeartbeatEvery time.Duration
	Heartbeat      func(c *Conn)
	// A ping of the WebSocket protocol is sent every PingEvery, 0 is never; a client that gives no pong within
	// PongWithin, in the network's time, is cut off.
	PingEvery, PongWithin time.Duration
	// Channels are what can be subscribed to, by a name that only this file uses.
	Channels map[string]Channel
}

// QuoteAsset is an asset that markets are quoted in, by the venue's code.
type QuoteAsset struct {
	Asset string
	// ToRank is the last rank of the coins that are quoted in it.
	ToRank int
}

// Channel is one kind of frame about one market. Exactly one of the encoders is set; it appends the frame to b.
type Channel struct {
	Trade func(b []byte, m *market.Market, t market.Trade) []byte
	State func(b []byte, m *market.Market, s market.State) []byte
	// Binary frames have that opcode.
	Binary bool
	// Personal turns the frame, which all connections share, into a connection's own; nil leaves it.
	Personal func(c *Conn, m *market.Market, frame []byte) []byte
}

// Limits are what the venue's documentation allows a client; beyond them it is refused (429) or
// disconnected, as Excess says. A zero means no limit.
type Limits struct {
	// Connects may be made within ConnectsPer.
	Connects    int
	ConnectsPer time.Duration
	// Messages may be sent within MessagesPer, on one connection.
	Messages    int
	MessagesPer time.Duration
	// Topics bounds the subscriptions of a connection.
	Topics int
	// Requests may be made within RequestsPer, to the HTTP interface; of each its Weight counts.
	Requests    int
	RequestsPer time.Duration
	// Idle is how long a client may send nothing, pings included.
	Idle time.Duration
	// Mute is how long nothing may have been sent to a client: one that hears nothing has to ask.
	Mute time.Duration
	// Unsubscribed is how long it may stay without a subscription.
	Unsubscribed time.Duration
	// Life is when every connection ends.
	Life time.Duration
}
