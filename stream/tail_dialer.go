package stream

import (
	"context"
	"net"

	"github.com/segmentio/kafka-go"
)

// dialerUntil dials as d does, connections that end with ctx: a reader that is closed waits for the answer to its last fetch, unless its connection is gone.
func dialerUntil(ctx context.Context, d *kafka.Dialer) *kafka.Dialer {
	until := *d
	dial := d.DialFunc
	if dial == nil {
		dial = (&net.Dialer{Timeout: d.Timeout, KeepAlive: d.KeepAlive}).DialContext
	}
	until.DialFunc = func(dialing context.Context, network, addr string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conn, err := dial(dialing, network, addr)
		if err != nil {
			return nil, err
		}
		return &connUntil{Conn: conn, closed: context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
	}
	return &until
}

// connUntil is a connection that a context closes, if nobody else does before it.
type connUntil struct {
	net.Conn
	closed func() bool
}

// Close implements net.Conn.
func (c *connUntil) Close() error {
	c.closed()
	return c.Conn.Close()
}
