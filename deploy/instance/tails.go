package instance

import (
	"time"

	"github.com/marketlog/marketlog/stream"
)

// Tail reads a topic from rewind before its end on.
func (in *Instance) Tail(topic string, rewind time.Duration) *stream.Tail {
	return stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: topic, Rewind: rewind, Dialer: in.Stream.Dialer, Log: in.Log})
}

// tailFrom reads a topic from where each partition starts, and one without a start from its first record on.
func (in *Instance) tailFrom(topic string, starts map[int32]stream.TailStart) *stream.Tail {
	return stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: topic, Start: starts, Dialer: in.Stream.Dialer, Log: in.Log})
}
