package adapter

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/producers"
)

// Venue declares an exchange: what the engine needs to read its public feeds. It is the whole
// of an adapter, together with its codec. The zero value of a field has the meaning in its comment.
type Venue struct {
	// Slug is the venue's name in topics, tables and commands; Name is for people.
	Slug, Name string
	// Version goes into dead letters. Raise it with every change of what the codec reads.
	Version uint32
	// URLs are the public defaults; configuration may replace them.
	URLs      URLs
	Countries Countries
	Limits    Limits
	Evidence  producers.VenueEvidence
	// Silence is how long a connection may send nothing at all before it counts as dead. With
	// heartbeats, a few of them; without, what the quietest hour of its busiest market allows.
	Silence time.Duration

	// Listing are the paths below URLs.REST that hold the list of instruments; Instruments reads
	// one answer. It returns the spot markets that trade now and skips all others.
	Listing     []string
	Instruments func(path string, body []byte) ([]Instrument, error)
	// Halted reads of the same answer the spot markets that are listed and do not trade now, each with its Status. Nil if the list has none: what
	// does not trade is then only missing from it.
	Halted func(path string, body []byte) ([]Instrument, error)
	// Split reads base and quote off a symbol without the list; nil is SplitSymbol.
	Split func(symbol string) (base, quote string, ok bool)

	// Endpoint requests the address to connect to from the venue; nil is URLs.Stream as it is.
	Endpoint func(ctx context.Context, f Fetcher, urls URLs) (string, error)
	// Subscribe gives the messages that ask for trades and tickers of the markets, batched as
	// the venue allows. Unsubscribe takes it back; nil lets a market go silent by itself.
	Subscribe, Unsubscribe func(markets []Instrument) [][]byte
	// Replaces means that a subscription ends the ones before it: it has to name all markets.
	Replaces  bool
	Heartbeat Heartbeat
	// NewCodec makes the reader of one connection.
	NewCodec func() Codec
	// NewRecorded makes the reader of a recorded connection, where recordings have what the engine never asks for: another feed of
	// the venue, or another form of the same messages. It also reads what NewCodec's does; nil is NewCodec.
	NewRecorded func() Codec

	// Tickers gives what to ask URLs.REST for the state of these markets; nil if the venue has no
	// such endpoint. It is asked for markets that the feed has been silent on.
	Tickers func(markets []Instrument) []Query
	// Polled is how often it is asked for all markets, because the feed has no tickers; 0: the feed has.
	Polled time.Duration
	// DecodeREST adds to out the contents of a response of the HTTP interface: tickers, trades, candles.
	// target is the URL, or its end; a market that only the URL names stays without Symbol.
	DecodeREST func(target string, body []byte, out *Out) error
	// RecordedREST also reads the answers that recordings have of endpoints that the engine never asks; nil is DecodeREST.
	RecordedREST func(target string, body []byte, out *Out) error
	// RecordedInstruments also reads the lists that recordings have and the engine never asks for; nil is Instruments.
	RecordedInstruments func(path string, body []byte) ([]Instrument, error)
	// History is how past candles are requested; nil if the venue does not offer them.
	History *History
}

// Recorded is the venue for whoever reads recordings: it also reads what the engine never asks for.
func (v Venue) Recorded() Venue {
	if v.NewRecorded != nil {
		v.NewCodec = v.NewRecorded
	}
	if v.RecordedREST != nil {
		v.DecodeREST = v.RecordedREST
	}
	if v.RecordedInstruments != nil {
		v.Instruments = v.RecordedInstruments
	}
	return v
}

// History is how past candles of a venue are requested.
type History struct {
	// Query is the request to URLs.REST for the candles of a market that start in [from, to): at most Rows of
	// them. interval is a minute, an hour or a day, and days begin at midnight UTC. DecodeREST reads
	// the answer, which may hold others too, in any order.
	Query func(market Instrument, interval time.Duration, from, to time.Time) Query
	// Rows is how many candles one answer holds at most.
	Rows int
	// Newest is how many candles of each interval, counted back from now, the venue still offers;
	// 0: all since the market's first.
	Newest int
}

// URLs are where a venue is reached, without a slash at the end.
type URLs struct {
	Stream string // ws:// or wss://
	REST   string // http:// or https://
}

// Countries reports where a venue serves users, by ISO 3166 two-letter codes, as its terms say.
type Countries struct {
	// Served lists the only countries served; Refused the countries left out of all others.
	// Both empty means that the terms name none, or that they are unknown.
	Served, Refused []string
	// Terms is the page that says so; "" if it is unknown what the terms say, which counts as all countries.
	Terms string
	// Quoted are the public pages that quote Terms, where Terms itself was not read; empty where it was.
	Quoted []string
	// Read is the day on which Terms, or what quotes it, was read: ISO 8601.
	Read string
}

// Limits are what the venue documents that a client may do. The adapter names the page.
type Limits struct {
	// Connects may be made within ConnectsPer, from one address.
	Connects    int
	ConnectsPer time.Duration
	// MarketsPerSocket bounds the markets that one connection subscribes to.
	MarketsPerSocket int
	// Messages may be sent a second on one connection.
	Messages float64
	// Requests may be made a second to the HTTP interface.
	Requests float64
}

// Heartbeat is what the client has to send to keep a connection.
type Heartbeat struct {
	// Every is the interval; 0 sends none.
	Every time.Duration
	// Message is the heartbeat; nil sends a WebSocket ping.
	Message func() []byte
}

// Query is one question to the HTTP interface.
type Query struct {
	Path string
	// Symbol is the market that the answer is about, where the answer does not name it.
	Symbol string
}

// Fetcher makes requests to the HTTP interface of a venue, within its budget.
type Fetcher interface {
	// Fetch returns the body of a successful answer. An empty method is GET.
	Fetch(ctx context.Context, method, url string) ([]byte, error)
}
