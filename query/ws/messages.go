package ws

import (
	"github.com/fasthttp/websocket"

	"github.com/marketlog/marketlog/query"
)

// message is what a client sends. Each type takes some of the fields; others are ignored.
type message struct {
	Type       string   `json:"type" doc:"What is asked for"`
	Key        string   `json:"key,omitempty" example:"ck_live_0123456789abcdefghijklmnop" doc:"The API key"`
	Symbols    []string `json:"symbols,omitempty" example:"[\"BTC\",\"ETH\"]" doc:"Coins, by symbol or id. Absent: all that have their symbol"`
	Channels   []string `json:"channels,omitempty" example:"[\"prices\"]" doc:"What is sent from then on, and nothing else. Absent: what was sent before, at first prices"`
	IntervalMs *float64 `json:"intervalMs,omitempty" minimum:"1000" maximum:"60000" multipleOf:"1" doc:"The least time between two messages of prices, in milliseconds; 1000 with delivery all"`
	// What follows is beyond the plain stream.
	ID          string   `json:"id,omitempty" maxLength:"64" doc:"Is repeated in what answers the message"`
	Delivery    string   `json:"delivery,omitempty" enum:"latest,all" doc:"latest: the newest price of each coin; all: every price, exactly once over any number of connections, each begun with the last cursor"`
	Cursor      string   `json:"cursor,omitempty" maxLength:"512" doc:"Go on where this cursor was given: the last one whose message was processed"`
	Snapshot    *bool    `json:"snapshot,omitempty" doc:"false: no initial_prices and nothing else of before the subscription"`
	HeartbeatMs *float64 `json:"heartbeatMs,omitempty" minimum:"1000" maximum:"60000" multipleOf:"1" doc:"After how long a silence a heartbeat with a cursor is sent, in milliseconds"`
	From        string   `json:"from,omitempty" format:"date-time" doc:"Begin at this instant of the past, with everything since: a replay, that ends in the present or at to"`
	To          string   `json:"to,omitempty" format:"date-time" doc:"The instant up to which a replay goes; the connection is closed behind it. Absent: it goes on with the present"`
	Speed       *float64 `json:"speed,omitempty" minimum:"0.1" maximum:"3600" doc:"How many seconds of the log a replay sends in one. Absent: as many as are read"`
	Paused      *bool    `json:"paused,omitempty" doc:"Whether a replay rests"`
	Epoch       string   `json:"epoch,omitempty" doc:"The epoch of the last message of prices that was processed, in place of a cursor"`
	Seq         *uint64  `json:"seq,omitempty" doc:"Its seq"`
}

// declaredRequest is a type of message that clients send.
type declaredRequest struct {
	doc     string
	example message
	// fields are those that it takes beside type, needed those that it must have.
	fields, needed []string
	// answers are the types of messages that answer it.
	answers []string
}

// requests are all types of messages that clients send.
var requests = []declaredRequest{
	{"The key, as the first message of a socket whose handshake has none, within 5 seconds. Without a valid one the socket is closed with 4001.",
		message{Type: "auth", Key: "ck_live_0123456789abcdefghijklmnop"}, []string{"key"}, []string{"key"}, []string{"welcome"}},
	{"Chooses coins, channels and how prices are delivered. The first one with symbols narrows all coins to them; later ones add to them.",
		message{Type: "subscribe", ID: "a", Symbols: []string{"BTC", "ETH"}, Delivery: deliveryAll},
		[]string{"symbols", "channels", "intervalMs", "id", "delivery", "cursor", "snapshot", "heartbeatMs", "from", "to", "speed"}, nil, []string{"subscribed", "resumed", "gap", typeInitial, typeError}},
	{"Takes coins away; without symbols all of them.",
		message{Type: "unsubscribe", ID: "b", Symbols: []string{"BTC"}}, []string{"symbols", "id"}, nil, []string{"subscribed", typeError}},
	{"Asks for what was missed since a cursor or, of a process that still runs, since the message of an epoch with a number.",
		message{Type: "resume", ID: "c", Cursor: exampleCursor}, []string{"id", "cursor", "epoch", "seq"}, nil, []string{"resumed", "gap", typeError}},
	{"Changes how fast a replay goes, or lets it rest.",
		message{Type: typeReplay, ID: "e", Speed: &exampleSpeed}, []string{"id", "speed", "paused"}, nil, []string{"replaying", typeError}},
	{"Asks for a pong.", message{Type: "ping", ID: "d"}, []string{"id"}, nil, []string{"pong"}},
}

const (
	exampleCursor = "1Pm0YxZ3cB4bR0QYAAAAAAAAA"
	exampleEpoch  = "PDZJ7Q2WXK4M"
	exampleTime   = "2026-03-01T10:00:01.000Z"
)

// typeReplay is the type of messages that change a replay.
const typeReplay = "replay"

// typeError is the type of messages that say what was wrong.
const typeError = "error"

// Answering is what messages have that answer one.
type Answering struct {
	ID string `json:"id,omitempty" maxLength:"64" doc:"The id of the message that is answered"`
}

// Timed is what every message has.
type Timed struct {
	Timestamp string `json:"timestamp" format:"date-time" doc:"Log time"`
}

// Numbered is what messages have that belong to a round of prices.
type Numbered struct {
	Seq   uint64 `json:"seq" doc:"Grows with each round of prices; a new process starts over"`
	Epoch string `json:"epoch" doc:"Another one for each process"`
}

// Placed is what messages have after which a client can go on.
type Placed struct {
	Cursor string `json:"cursor,omitempty" maxLength:"512" doc:"To go on behind this message, keep it once the message is processed. Opaque; only in messages to clients that asked for something beyond the plain stream"`
}

// Channelled is what messages of channels other than prices have.
type Channelled struct {
	Channel string `json:"channel,omitempty" example:"candles:1m" doc:"The channel that it is of; absent: prices"`
}

// Streamed is the price of a coin as the stream sends it.
type Streamed struct {
	Symbol           string  `json:"symbol" example:"BTC"`
	CoinID           string  `json:"coinId" example:"bitcoin"`
	Price            float64 `json:"price" doc:"USD"`
	Volume           float64 `json:"volume" doc:"Of 24 hours, USD"`
	Timestamp        int64   `json:"timestamp" doc:"The evaluated second, Unix milliseconds. With coinId it names a price"`
	Source           string  `json:"source" example:"kraken" doc:"The accepted provider nearest to the price"`
	ChangePercent    float64 `json:"changePercent" doc:"Against previousPrice"`
	PreviousPrice    float64 `json:"previousPrice" doc:"The last one that this client was sent; with delivery all the one before it in the log"`
	ChangePercent24h float64 `json:"changePercent24h,omitempty" doc:"Against the price 24 hours ago; absent where that is not known, and with delivery all"`
	IsStale          bool    `json:"isStale,omitempty" doc:"In initial_prices: it is stale"`
}

// Aged is a coin whose price became stale, or fresh again.
type Aged struct {
	Symbol      string `json:"symbol" example:"BTC"`
	CoinID      string `json:"coinId" example:"bitcoin"`
	Reason      string `json:"reason,omitempty" enum:"no_fresh_inputs,no_consensus,log_silent" doc:"Why it is stale"`
	LastPriceAt int64  `json:"lastPriceAt" doc:"The second of the last price, Unix milliseconds"`
}

// Left names coins that are left out.
type Left struct {
	Shadowed []string `json:"shadowed" doc:"Ids of coins left out since their symbol means another coin; they can be subscribed to by id"`
}

// Fault says what was wrong.
type Fault struct {
	Code    string `json:"code" enum:"VALIDATION_ERROR,PLAN_REQUIRED,LAGGING" doc:"LAGGING: the store has not come to the cursor yet, and the connection ends; come back with it"`
	Message string `json:"message"`
	// What follows is as in the error of any operation.
	Errors     map[string][]string `json:"errors,omitempty" doc:"Faults, by field"`
	Candidates any                 `json:"candidates,omitempty" doc:"Suggestions for what was not found, likeliest first"`
	Hint       string              `json:"hint,omitempty" doc:"What to do instead"`
}

// response is a type of message that the server sends: what it means, and one of it, whose Go type declares its fields.
type response struct {
	doc, kind string
	example   any
}

// WelcomeMessage and those that follow are the messages of the server, as documents describe them.
type WelcomeMessage struct {
	Type       string   `json:"type"`
	ClientID   string   `json:"clientId"`
	ServerTime string   `json:"serverTime" format:"date-time"`
	Simulated  bool     `json:"simulated" doc:"The numbers are invented"`
	Channels   []string `json:"channels,omitempty" doc:"Those that there are; only for clients that asked for something beyond the plain stream"`
	Timed
	Numbered
	Placed
}

// InitialPrices are the prices known so far.
type InitialPrices struct {
	Type string     `json:"type"`
	Gap  bool       `json:"gap,omitempty" doc:"It follows a gap"`
	Data []Streamed `json:"data"`
	Meta *Left      `json:"meta,omitempty"`
	Timed
	Numbered
	Placed
}

// PriceUpdate is what changed, or with delivery all the prices of one second.
type PriceUpdate struct {
	Type      string     `json:"type"`
	Data      []Streamed `json:"data"`
	Seq       uint64     `json:"seq,omitempty" doc:"Absent with delivery all"`
	Epoch     string     `json:"epoch,omitempty" doc:"Absent with delivery all"`
	Conflated int        `json:"conflated,omitempty" doc:"How many rounds were merged for a slow reader, if more than one"`
	Timed
	Placed
}

// SubscribedMessage says what is sent from here on.
type SubscribedMessage struct {
	Type string `json:"type"`
	Answering
	Symbols    []string `json:"symbols" doc:"Symbols, and ids of coins whose symbol means another one. Where that is everything: the coins that have a price by now"`
	Channels   []string `json:"channels"`
	IntervalMs int64    `json:"intervalMs"`
	Delivery   string   `json:"delivery,omitempty" enum:"latest,all"`
	Timed
	Numbered
	Placed
}

// AgedMessage lists coins whose price became stale, or fresh again.
type AgedMessage struct {
	Type string `json:"type"`
	Data []Aged `json:"data"`
	Timed
	Numbered
}

// PongMessage answers a ping.
type PongMessage struct {
	Type string `json:"type"`
	Answering
	Timed
	Numbered
}

// ErrorMessage says what was wrong with a message.
type ErrorMessage struct {
	Type string `json:"type"`
	Answering
	Error Fault  `json:"error"`
	Seq   uint64 `json:"seq,omitempty"`
	Epoch string `json:"epoch,omitempty"`
	Timed
}

// ResumedMessage means that what was missed comes now.
type ResumedMessage struct {
	Type string `json:"type"`
	Channelled
	Answering
	From    string `json:"from" doc:"The cursor that was given"`
	To      string `json:"to" doc:"The present, as a cursor; empty where some part of the log has reported nothing yet"`
	Seconds int64  `json:"seconds" doc:"Between them, in log time"`
	Source  string `json:"source" enum:"memory,store" doc:"Where what was missed is read first"`
	Timed
}

// LiveMessage means that the present is reached.
type LiveMessage struct {
	Type string `json:"type"`
	Channelled
	Answering
	Prices   *int `json:"prices,omitempty" doc:"How many prices were sent since resumed"`
	Elements *int `json:"elements,omitempty" doc:"The same of another channel"`
	Timed
	Placed
}

// GapMessage says for which time nothing is sent.
type GapMessage struct {
	Type string `json:"type"`
	Channelled
	Answering
	Reason string `json:"reason" enum:"too_old,other_log" doc:"too_old: kept no longer, and what is kept follows; other_log: the cursor is of another log or of a view that was replaced, and the present follows"`
	Since  string `json:"since,omitempty" format:"date-time" doc:"Nothing after it"`
	Until  string `json:"until" format:"date-time" doc:"and up to it is sent"`
	Timed
	Placed
}

// ReplayMessage says how a replay goes on.
type ReplayMessage struct {
	Type string `json:"type"`
	Answering
	Speed  float64 `json:"speed,omitempty" doc:"Seconds of the log in one; absent: as many as are read"`
	Paused bool    `json:"paused"`
	Timed
	Placed
}

// ReplayEndMessage means that a replay has come to its end.
type ReplayEndMessage struct {
	Type string `json:"type"`
	Answering
	Elements int `json:"elements" doc:"How many were sent, of all channels"`
	Timed
	Placed
}

// HeartbeatMessage means that nothing was to be sent.
type HeartbeatMessage struct {
	Type string `json:"type"`
	Timed
	Placed
}

var (
	exampleTimed    = Timed{exampleTime}
	exampleNumbered = Numbered{331, exampleEpoch}
	examplePlaced   = Placed{exampleCursor}
	exampleCount    = 38
	exampleSpeed    = 60.0
	examplePrice    = Streamed{Symbol: "BTC", CoinID: "bitcoin", Price: 101, Volume: 5e9, Timestamp: 1772359201000, Source: "kraken", ChangePercent: 1, PreviousPrice: 100}
	exampleAged     = Aged{"BTC", "bitcoin", "no_fresh_inputs", 1772359201000}
	exampleFresh    = Aged{"BTC", "bitcoin", "", 1772359201000}
)

// responses are all types of messages of the server but those of the declared channels.
var responses = []response{
	{"The first message.", "welcome", WelcomeMessage{"welcome", "7X7UQ2WXK4MPDZJ7", exampleTime, true, []string{"prices", "candles:1m"}, exampleTimed, exampleNumbered, Placed{}}},
	{"The prices known so far, after welcome and of coins that a subscription adds; with delivery all the state at the beginning, not among those that come once.", typeInitial,
		InitialPrices{typeInitial, false, []Streamed{examplePrice}, &Left{[]string{"sol-wormhole"}}, exampleTimed, exampleNumbered, Placed{}}},
	{"What changed since the last one, at most once a second. With delivery all: every price of one second.", typeUpdate,
		PriceUpdate{Type: typeUpdate, Data: []Streamed{examplePrice}, Timed: exampleTimed, Placed: examplePlaced}},
	{"Answers subscribe and unsubscribe: what is sent from here on.", "subscribed",
		SubscribedMessage{"subscribed", Answering{"a"}, []string{"BTC", "ETH"}, []string{"prices"}, 1000, deliveryAll, exampleTimed, exampleNumbered, examplePlaced}},
	{"Coins whose price became stale.", typeStale, AgedMessage{typeStale, []Aged{exampleAged}, exampleTimed, exampleNumbered}},
	{"Coins whose price is fresh again.", typeFresh, AgedMessage{typeFresh, []Aged{exampleFresh}, exampleTimed, exampleNumbered}},
	{"Answers a ping.", "pong", PongMessage{"pong", Answering{"d"}, exampleTimed, exampleNumbered}},
	{"Answers a message that cannot be followed.", typeError, ErrorMessage{Type: typeError, Answering: Answering{"a"},
		Error: Fault{Code: query.CodeValidation, Message: "delivery must be latest or all", Errors: map[string][]string{"delivery": {"must be latest or all"}}}, Seq: 331, Epoch: exampleEpoch, Timed: exampleTimed}},
	{"What was missed comes now.", "resumed", ResumedMessage{"resumed", Channelled{}, Answering{"c"}, exampleCursor, exampleCursor, 41, "memory", exampleTimed}},
	{"The present is reached.", "live", LiveMessage{"live", Channelled{}, Answering{"c"}, &exampleCount, nil, exampleTimed, examplePlaced}},
	{"Nothing is sent of what came after since and up to until.", "gap",
		GapMessage{"gap", Channelled{}, Answering{"c"}, gapTooOld, "2026-02-28T10:00:00.000Z", exampleTime, exampleTimed, examplePlaced}},
	{"Answers replay: how a replay goes on.", "replaying", ReplayMessage{"replaying", Answering{"e"}, exampleSpeed, false, exampleTimed, examplePlaced}},
	{"A replay has come to its end; the connection is closed.", "replay_end", ReplayEndMessage{"replay_end", Answering{"c"}, exampleCount, exampleTimed, examplePlaced}},
	{"Nothing was to be sent for heartbeatMs. Its cursor includes what was not selected.", "heartbeat", HeartbeatMessage{"heartbeat", exampleTimed, examplePlaced}},
}

// closing is a code that sockets are closed with.
type closing struct {
	Code    int    `json:"code"`
	Meaning string `json:"meaning"`
}

// closings are all of them.
var closings = []closing{
	{websocket.CloseNormalClosure, "a replay has come to its end"},
	{websocket.CloseUnsupportedData, "a binary message"},
	{websocket.CloseInvalidFramePayloadData, "text that is not UTF-8"},
	{websocket.ClosePolicyViolation, "more messages than a client may send"},
	{websocket.CloseMessageTooBig, "a message above 4,096 bytes, also after decompression"},
	{websocket.CloseInternalServerErr, "an error of the server"},
	{websocket.CloseServiceRestart, "the server restarts: connect again"},
	{websocket.CloseTryAgainLater, "overloaded, or the store lags behind: connect again later"},
	{closeKey, "the key is missing, late, invalid or revoked"},
	{closeOrigin, "the page's origin is not allowed; `stream.origins` lists those that are"},
	{closeSlow, "the client does not read"},
	{closeSockets, "too many open streams for the plan, or its requests are used up"},
}
