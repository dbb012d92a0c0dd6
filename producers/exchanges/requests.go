package exchanges

import (
	"slices"

	"github.com/marketlog/marketlog/producers/adapter"
)

// requester makes the messages that ask for markets, or take the request back.
type requester = func([]adapter.Instrument) [][]byte

// requests makes the messages of a venue whose requests name at most most topics. topics are those of one market; request is one
// message for some of them, the n-th from 0.
func requests[T any](most int, topics func(symbol string) []T, request func(batch []T, n int) any) requester {
	return func(markets []adapter.Instrument) (messages [][]byte) {
		var all []T
		for _, m := range markets {
			all = append(all, topics(m.Symbol)...)
		}
		for batch := range slices.Chunk(all, most) {
			messages = append(messages, message(request(batch, len(messages))))
		}
		return messages
	}
}

// channelRequests makes the messages of a venue whose requests name one channel and at most most markets: for each batch of
// markets one message a channel.
func channelRequests(most int, channels []string, request func(channel string, symbols []string) any) requester {
	return func(markets []adapter.Instrument) (messages [][]byte) {
		for batch := range slices.Chunk(symbols(markets), most) {
			for _, channel := range channels {
				messages = append(messages, message(request(channel, batch)))
			}
		}
		return messages
	}
}

// heartbeat is a message that does not change.
func heartbeat(text string) func() []byte { return func() []byte { return []byte(text) } }

// one is the query of a venue that tells the tickers of all its markets in one answer.
func one(path string) func([]adapter.Instrument) []adapter.Query {
	return func([]adapter.Instrument) []adapter.Query { return []adapter.Query{{Path: path}} }
}

// each are the queries of a venue that tells the ticker of one market in an answer; path makes the market's of its symbol.
func each(path func(symbol string) string) func([]adapter.Instrument) []adapter.Query {
	return func(markets []adapter.Instrument) (queries []adapter.Query) {
		for _, m := range markets {
			queries = append(queries, adapter.Query{Path: path(m.Symbol), Symbol: m.Symbol})
		}
		return queries
	}
}
