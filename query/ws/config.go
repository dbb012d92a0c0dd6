package ws

import (
	"errors"
	"time"
)

const (
	// queueFrames is how many frames wait for one subscriber before its changes are merged instead:
	// a few seconds of frames, which a passing hiccup needs, at a few words each, since they are shared.
	queueFrames = 4
	// queueReplies is how many answers wait for one subscriber, a little more than what it may ask at
	// once; one that asks more without reading is closed.
	queueReplies = 32
	// messageMax bounds a client's message, compressed and not: a subscription to all coins by
	// symbol fits.
	messageMax = 4 << 10
	// socketBuffer bounds what the kernel holds for a reader that does not read: a snapshot fits, and
	// a stalled reader is seen within seconds instead of the minutes that its own limit hides.
	socketBuffer = 64 << 10
	// messagesBurst and messagesPerSecond bound what a client sends, pings included.
	messagesBurst     = 30
	messagesPerSecond = 2
)

// Bounds of the interval that a client may ask for, and the one it has without asking.
const (
	minInterval = time.Second
	maxInterval = time.Minute
)

// Config is the stream's.
type Config struct {
	// Origins are the web origins besides the server's own that may connect, such as
	// https://app.example.com. A client that names no origin is not a browser and always may.
	Origins []string
	// Connections bounds open streams of all clients: at most 22 kB each.
	Connections int
	// Strangers bounds open streams whose key is not known (yet), or is refused; StrangersEach those of one address.
	Strangers     int
	StrangersEach int
	// KeyTimeout is how long a client without a key in its handshake has to send one.
	KeyTimeout time.Duration
	// WriteTimeout is how long one write may take before its reader counts as stalled; Linger is how
	// long it then has to take the rest and the reason, before it is cut off.
	WriteTimeout time.Duration
	Linger       time.Duration
	// Idle is how long a client may be silent; it is pinged three times within it.
	Idle time.Duration
	// Gather is how long a tick waits for the partitions of prices.v1 that have not finished the second yet.
	Gather time.Duration
	// Spacing is the least time between two ticks, so that a burst of log time (a log caught up with,
	// an accelerated simulator) is merged instead of sent.
	Spacing time.Duration
	// Drain is how long clients have to leave when the stream ends.
	Drain time.Duration
	// RingBytes bounds the published prices that are kept in memory for clients who come back, 32 bytes each.
	RingBytes int
	// ChannelBytes bounds the same of each other channel.
	ChannelBytes int
	// OffsetBytes bounds the same of a channel that is sent as it comes, while it has readers.
	OffsetBytes int
	// StoreWait is how long such a client waits for the store to have what memory has no longer.
	StoreWait time.Duration
}

// DefaultConfig serves 16,384 streams.
func DefaultConfig() Config {
	return Config{Connections: 16_384, Strangers: 1024, StrangersEach: 64, KeyTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, Linger: 3 * time.Second,
		Idle: 90 * time.Second, Gather: 100 * time.Millisecond, Spacing: 500 * time.Millisecond, Drain: 2 * time.Second,
		RingBytes: 64 << 20, ChannelBytes: 8 << 20, OffsetBytes: 32 << 20, StoreWait: 5 * time.Second}
}

// Validate names all faults at once.
func (c Config) Validate() error {
	var faults []error
	if c.Connections < 1 {
		faults = append(faults, errors.New("connections: must be at least 1"))
	}
	if c.Strangers < 1 || c.StrangersEach < 1 {
		faults = append(faults, errors.New("strangers, strangers_each: must be at least 1"))
	}
	if c.KeyTimeout <= 0 || c.WriteTimeout <= 0 || c.Linger <= 0 || c.Idle <= 0 || c.Gather <= 0 || c.Drain <= 0 {
		faults = append(faults, errors.New("key_timeout, write_timeout, linger, idle, gather, drain: must be more than 0"))
	}
	if c.RingBytes < priceBytes || c.ChannelBytes < priceBytes || c.OffsetBytes < priceBytes || c.StoreWait <= 0 {
		faults = append(faults, errors.New("ring_bytes, channel_bytes, offset_bytes, store_wait: must be at least 32 bytes, and more than 0"))
	}
	if c.Spacing < 0 {
		faults = append(faults, errors.New("spacing: must not be negative"))
	}
	return errors.Join(faults...)
}
