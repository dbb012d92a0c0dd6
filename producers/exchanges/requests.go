package exchanges

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
)

// requester makes the messages that ask for markets, or take the request back.
type requester = func([]adapter.Instrument) [][]byte

// requests are a venue's requests, as they are on the wire but for what stands in angle brackets:
//
//	<verb>    whether it asks or takes back
//	<topics>  the topics of the request, with a comma between two
//	<n>       how many messages it is, from 1
//	<time>    the machine's time in Unix seconds, whatever the producer's: it is for the venue's check alone
//	<symbol>  in a topic: the market's symbol; <lower> is the same in lower case
type requests struct {
	// Most is how many topics a message names at most.
	Most int
	// Topics are those of each market; nil is its symbol.
	Topics []string
	// Messages are sent for each batch of topics, in their order.
	Messages []string
}

// with makes the messages with this verb.
func (r requests) with(verb string) requester {
	topics := r.Topics
	if topics == nil {
		topics = []string{`"<symbol>"`}
	}
	return func(markets []adapter.Instrument) (messages [][]byte) {
		var all []string
		for _, m := range markets {
			quoted := string(message(m.Symbol))
			symbol := quoted[1 : len(quoted)-1]
			fill := strings.NewReplacer("<symbol>", symbol, "<lower>", strings.ToLower(symbol))
			for _, topic := range topics {
				all = append(all, fill.Replace(topic))
			}
		}
		for batch := range slices.Chunk(all, r.Most) {
			for _, m := range r.Messages {
				messages = append(messages, []byte(strings.NewReplacer("<verb>", verb, "<topics>", strings.Join(batch, ","),
					"<n>", strconv.Itoa(len(messages)+1), "<time>", strconv.FormatInt(time.Now().Unix(), 10)).Replace(m)))
			}
		}
		return messages
	}
}

// message writes a value of a request; it is a plain one, which always encodes.
func message(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// heartbeat is a message that does not change.
func heartbeat(text string) func() []byte { return func() []byte { return []byte(text) } }

// one is the query of a venue that reports the tickers of all its markets in one answer.
func one(path string) func([]adapter.Instrument) []adapter.Query {
	return func([]adapter.Instrument) []adapter.Query { return []adapter.Query{{Path: path}} }
}

// each are the queries of a venue that reports the ticker of one market in an answer; path makes the market's of its symbol.
func each(path func(symbol string) string) func([]adapter.Instrument) []adapter.Query {
	return func(markets []adapter.Instrument) (queries []adapter.Query) {
		for _, m := range markets {
			queries = append(queries, adapter.Query{Path: path(m.Symbol), Symbol: m.Symbol})
		}
		return queries
	}
}

// some are the queries of a venue that reports the tickers of at most most markets in an answer; path names them.
func some(most int, path func(symbols []string) string) func([]adapter.Instrument) []adapter.Query {
	return func(markets []adapter.Instrument) (queries []adapter.Query) {
		for batch := range slices.Chunk(symbols(markets), most) {
			queries = append(queries, adapter.Query{Path: path(batch)})
		}
		return queries
	}
}
