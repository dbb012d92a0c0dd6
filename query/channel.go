package query

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query/limits"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Channel is the one declaration of a channel of the stream beside the prices: what is read from the log, and how it is shown.
type Channel struct {
	// Name is what a client asks for, such as candles:1m.
	Name string
	// Code is its number in cursors, from 1 to 127; a code is never given to another channel.
	Code byte
	// Event is the type of its messages, in snake case.
	Event string
	// Doc says what is sent, and when.
	Doc string
	// Topic is what it is read from, and Step about how often its elements come. Topic is empty where Follow feeds it.
	Topic string
	Step  time.Duration
	// Element is an example of what its messages hold in data, and of its type.
	Element any
	// Needs is what the plan of who follows it must allow.
	Needs limits.Feature
	// Coins is how many coins a client may have chosen that follows it, and some it must have; 0 is without bound.
	Coins int
	// Page is how many elements the store is asked for at a time; 0 is the usual number.
	Page int
	// Identity names the log and the view of it at the start; Store knows it later. Store is nil where nothing but memory has the
	// channel's past.
	Identity string
	Store    ChannelStore
	// FromLast means that one who begins to follow it is sent the newest elements first, unless he wants no snapshot.
	FromLast bool
	// Offsets means that its elements are sent as they come, with offsets of the topic in place of seconds in cursors: Until is then
	// the offset after the record's, once who begins may be sent what comes. Pace is the least time between two messages.
	Offsets bool
	Pace    time.Duration
	// Follow feeds a channel that is not read all the time, while somebody follows it and a minute longer: it returns what is new, in the
	// order of each partition, until the context ends. The first record of each partition is Partial. It may be called again when it
	// has returned. A channel of no topic has one partition.
	Follow func(ctx context.Context, emit func(partition int32, offset int64, read ChannelRecord)) error
	// Present is what one who begins to follow a channel of states is sent first, unless he wants no snapshot. Such a channel has
	// no place in cursors: a state that has passed is of no use. It is nil where elements are not states.
	Present func() []ChannelElement
	// Read is what a record of a partition of the topic means. It is called for one record at a time, in the order of each
	// partition.
	Read func(partition int32, record eventsv1.Marked) (ChannelRecord, error)
	// Past hands over the elements of seconds after one and up to another (Unix), of the coins with these ids or of all, oldest
	// second first, at most so many, with the partition of each. It may be called from several goroutines, and fail while the
	// store is away. It is nil where Store is.
	Past func(ctx context.Context, after, until int64, coins []string, most int, visit func(partition int32, e ChannelElement)) error
}

// ChannelRecord is what one record of the log adds to a channel.
type ChannelRecord struct {
	Elements []ChannelElement
	// Until is the second (Unix) up to which its partition has written everything, as this record proves; 0 where it proves
	// nothing. Elements of a partition come in the order of their seconds.
	Until int64
	// Partial means that not all up to Until was read, so that memory cannot have it.
	Partial bool
}

// ChannelElement is one element of a channel.
type ChannelElement struct {
	// Second (Unix) is the end of what it is of, in log time.
	Second int64
	// CoinID is empty for what is of no coin, which everybody is sent.
	CoinID string
	// JSON is an encoded Channel.Element. Where few of many are ever sent, Encode makes it each time, or nil to leave the element
	// out, and Size is about how many bytes memory holds for it.
	JSON   []byte
	Encode func() []byte
	Size   int
}

// ChannelStore is how far the store has a topic.
type ChannelStore interface {
	// Identity names the log and the view of it that is read: another one where either is another.
	Identity(ctx context.Context) (string, error)
	// Materialized is, by partition, the offset before which all records of the topic are in the store.
	Materialized(ctx context.Context) (map[int32]int64, error)
	// Oldest is the second (Unix) from which on the store has everything, at a time of the log; 0 if nothing was ever dropped.
	Oldest(ctx context.Context, at time.Time) (int64, error)
}
