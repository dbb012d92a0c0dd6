package stream

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/segmentio/kafka-go"
)

// A connection ends with the context, nothing is dialled after it, and a closed connection leaves nothing behind.
func TestConnectionsOfATailEndWithIt(t *testing.T) {
	var far []net.Conn
	d := &kafka.Dialer{DialFunc: func(context.Context, string, string) (net.Conn, error) {
		near, other := net.Pipe()
		far = append(far, other)
		return near, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	until := dialerUntil(ctx, d)
	first, err := until.DialFunc(t.Context(), "tcp", "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	second, err := until.DialFunc(t.Context(), "tcp", "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := far[1].Read(make([]byte, 1)); err == nil {
		t.Error("a closed connection goes on")
	}
	read := make(chan error, 1)
	go func() {
		_, err := first.Read(make([]byte, 1))
		read <- err
	}()
	cancel()
	if err := <-read; err == nil {
		t.Error("a read outlived the context")
	}
	if conn, err := until.DialFunc(t.Context(), "tcp", "anywhere"); !errors.Is(err, context.Canceled) {
		t.Errorf("dialled %v after the end: %v", conn, err)
	}
}
