// Package ticks declares the channel of the stream that sends each trade, quote and ticker of some coins as venues sent it.
package ticks

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// channelCode is the channel's number in cursors.
	channelCode = 21
	// channelCoins is how many coins one may be sent the ticks of.
	channelCoins = 20
	// pace is the least time between two looks for what is new: half of it is what it costs a tick where there are many, nothing where there are few.
	pace = 10 * time.Millisecond
	// Rewind is how far back the log is read when a first reader comes, so that one who was away for less goes on where it was.
	Rewind = time.Minute
	// encodedBytes is about how long an encoded tick is.
	encodedBytes = 450
)

// Tick is a trade, a quote or a ticker as its venue sent it, with its coin.
type Tick struct {
	ID          string   `json:"id" doc:"Of the event: equal in the log, in v_ticks and after a restart, which may send an event again"`
	Provider    string   `json:"provider" example:"kraken"`
	VenueSymbol string   `json:"venueSymbol" example:"BTC/USD"`
	CoinID      string   `json:"coinId" example:"bitcoin"`
	Symbol      string   `json:"symbol" example:"BTC"`
	Quote       string   `json:"quote" example:"USD" doc:"Quote asset: id of a coin or code of a currency"`
	Kind        string   `json:"kind" enum:"trade,quote,ticker"`
	Price       string   `json:"price,omitempty" doc:"Of a trade, in the quote asset: the venue's decimal, exactly"`
	Size        string   `json:"size,omitempty" doc:"Of a trade, in units of the coin"`
	Side        string   `json:"side,omitempty" enum:"buy,sell" doc:"The taker's"`
	TradeID     string   `json:"tradeId,omitempty" doc:"The venue's"`
	Bid         string   `json:"bid,omitempty"`
	Ask         string   `json:"ask,omitempty"`
	Last        string   `json:"last,omitempty" doc:"Last price, of a ticker"`
	RateUsed    float64  `json:"rateUsed,omitempty" doc:"USD per unit of the quote asset, as it was known; absent where it was not"`
	EventTime   string   `json:"eventTime,omitempty" format:"date-time" doc:"By the venue's clock"`
	ReceivedAt  string   `json:"receivedAt" format:"date-time"`
	Flags       []string `json:"flags" doc:"Why it does not count as it is: crossed, late, unmapped, no_rate, not_spot, repeat, doubtful"`
	Simulated   bool     `json:"simulated,omitempty"`
	Offset      Position `json:"offset" doc:"Its place in the log"`
}

// Position is a place in the log.
type Position struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// exampleTick is one, for documents.
var exampleTick = Tick{ID: "00112233445566778899aabbccddeeff", Provider: "kraken", VenueSymbol: "BTC/USD", CoinID: "bitcoin", Symbol: "BTC", Quote: schemas.USD, Kind: "trade", Price: "101.5",
	Size: "0.01", Side: "buy", TradeID: "7401", RateUsed: 1, EventTime: "2026-03-01T10:00:00.480Z", ReceivedAt: "2026-03-01T10:00:00.500Z", Flags: []string{}, Offset: Position{schemas.TopicTicks, 2, 95854}}

// Tail follows ticks.v1 from so long before its end until the context ends, and hands on values undecoded, one at a time. Settled
// means that it has come to the end that the topic had when it began.
type Tail func(ctx context.Context, rewind time.Duration, handle func(rec views.TailRecord, settled bool) error) error

// Channels declares the channel, which is read from the tail of ticks.v1.
func Channels(coins *schemas.CoinTable, tail Tail, identity string, log *slog.Logger) []query.Channel {
	s := &source{coins: coins, tail: tail, log: log}
	return []query.Channel{{
		Name: "ticks", Code: channelCode, Event: "ticks", Needs: limits.FeatureDetails, Coins: channelCoins, Pace: pace, Offsets: true,
		Doc:   "Each trade, quote and ticker of at most 20 coins, which must be named, as it comes, in messages at least 10 ms apart; plan growth or above. What was missed is kept for up to a minute.",
		Topic: schemas.TopicTicks, Step: time.Second, Element: exampleTick, Identity: identity, Follow: s.follow,
	}}
}

type source struct {
	coins *schemas.CoinTable
	tail  Tail
	log   *slog.Logger
}

// follow passes on each record's offset; of records of known coins it also makes elements, which are decoded when somebody wants them.
func (s *source) follow(ctx context.Context, emit func(partition int32, offset int64, read query.ChannelRecord)) error {
	seen := map[int32]bool{}
	return s.tail(ctx, Rewind, func(rec views.TailRecord, settled bool) error {
		read := query.ChannelRecord{Partial: !seen[rec.Partition]}
		seen[rec.Partition] = true
		if coin, known := s.coins.ByID(string(rec.Key)); known {
			read.Elements = []query.ChannelElement{{Second: time.Now().Unix(), CoinID: coin.ID, Size: len(rec.Value) + encodedBytes,
				Encode: func() []byte { return s.encode(coin, rec) }}}
		}
		if settled { // who begins is not sent what came before
			read.Until = rec.Offset + 1
		}
		emit(rec.Partition, rec.Offset, read)
		return nil
	})
}

// encode decodes a record and writes its tick; nil where it has none.
func (s *source) encode(coin schemas.Coin, rec views.TailRecord) []byte {
	decoded, err := schemas.DecodeRecord(schemas.TopicTicks, rec.Value)
	if err != nil {
		return nil // the sink of the topic reports it
	}
	record, ok := decoded.(*eventsv1.ResolvedRecord)
	resolved := record.GetTick()
	if !ok || resolved == nil {
		return nil
	}
	t := resolved.Tick
	out := Tick{ID: hex.EncodeToString(t.EventId), Provider: t.Venue, VenueSymbol: t.Symbol, CoinID: coin.ID, Symbol: coin.Symbol, Quote: resolved.QuoteId,
		Price: t.Price, Size: t.Size, TradeID: t.TradeId, Bid: t.Bid, Ask: t.Ask, Last: t.Last, RateUsed: resolved.Rate, EventTime: query.FormatTime(t.EventTime),
		ReceivedAt: query.FormatTime(t.IngestTime), Flags: []string{}, Simulated: t.Simulated, Offset: Position{schemas.TopicTicks, rec.Partition, rec.Offset}}
	switch t.Kind {
	case eventsv1.TickKind_TICK_KIND_TRADE:
		out.Kind = "trade"
	case eventsv1.TickKind_TICK_KIND_QUOTE:
		out.Kind = "quote"
	default:
		out.Kind = "ticker"
	}
	switch t.Side {
	case eventsv1.Side_SIDE_BUY:
		out.Side = "buy"
	case eventsv1.Side_SIDE_SELL:
		out.Side = "sell"
	}
	if flags := schemas.Flag(resolved.Flags).String(); flags != "" {
		out.Flags = strings.Split(flags, ",")
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		s.log.Error("a tick cannot be sent", "partition", rec.Partition, "offset", rec.Offset, "error", err)
	}
	return encoded
}
