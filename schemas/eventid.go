package schemas

import (
	"crypto/sha256"
	"strconv"
)

// An event id is the first 128 bits of a SHA-256 over a canonical text: each field in the
// order below, as its length in bytes, a colon, and the field itself ("8:coinbase7:BTC-USD…").
// Numbers are decimal; prices and sizes are canonical decimals (CanonicalDecimal). The id is
// never taken over protobuf bytes, whose spelling is not fixed. Anyone can recompute it:
//
//	trade with a venue id:     venue, symbol, "trade", channel, id
//	trade without:             venue, symbol, "trade", channel, "", time, index, price, size, side
//	state with a sequence:     venue, symbol, kind, channel, sequence
//	state without:             venue, symbol, kind, channel, "", time or second, payload…
//
// channel names the space that the venue's ids are unique in, since one venue may number
// single trades and aggregates apart.

// EventID identifies events: equal ids are the same event, however often it was read.
type EventID [16]byte

// NumberedTrade identifies a trade by the id that the venue gave it.
func NumberedTrade(venue, symbol, channel, id string) EventID {
	return hash(venue, symbol, "trade", channel, id)
}

// UnnumberedTrade identifies a trade by what it was: the time at which the venue sent it in
// Unix nanoseconds, its place in the frame, price, size and the taker's side ("buy", "sell" or "").
func UnnumberedTrade(venue, symbol, channel string, time int64, index int, price, size, side string) EventID {
	return hash(venue, symbol, "trade", channel, "",
		strconv.FormatInt(time, 10), strconv.Itoa(index), price, size, side)
}

// NumberedState identifies a quote or ticker (kind) by the venue's sequence or update id.
func NumberedState(venue, symbol, kind, channel, sequence string) EventID {
	return hash(venue, symbol, kind, channel, sequence)
}

// UnnumberedState identifies a quote or ticker by its event time in Unix nanoseconds and what
// it held. Without an event time (0) the second of ingest, a multiple of 1e9, replaces it: the
// same state sent again in a later second is another event, since a bare hash of the payload
// would drop a price that came back.
func UnnumberedState(venue, symbol, kind, channel string, eventTime, ingestTime int64, payload ...string) EventID {
	time := eventTime
	if time == 0 {
		const second = 1_000_000_000
		time = ingestTime / second * second
	}
	fields := append([]string{venue, symbol, kind, channel, "", strconv.FormatInt(time, 10)}, payload...)
	return hash(fields...)
}

func hash(fields ...string) EventID {
	var space [256]byte
	text := space[:0]
	for _, f := range fields {
		text = strconv.AppendInt(text, int64(len(f)), 10)
		text = append(text, ':')
		text = append(text, f...)
	}
	sum := sha256.Sum256(text)
	return EventID(sum[:16])
}
