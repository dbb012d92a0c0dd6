package query

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// lazyPair is a lazy connection and its other end.
func lazyPair(t *testing.T) (lazy, other net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if other, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	if lazy, err = (lazyListener{Listener: listener}).Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lazy.Close() })
	return lazy, other
}

func TestLazyDeadlinesHoldToTheMoment(t *testing.T) {
	const short, long = 60 * time.Millisecond, 200 * time.Millisecond
	full := make([]byte, 16<<20) // more than the kernel takes
	for _, c := range []struct {
		name string
		do   func(net.Conn) error
		set  func(net.Conn, time.Time) error
	}{
		{"read", func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }, net.Conn.SetReadDeadline},
		{"write", func(c net.Conn) error { _, err := c.Write(full); return err }, net.Conn.SetWriteDeadline},
	} {
		for _, steps := range [][]time.Duration{{short}, {short, long}, {long, short}, {short, long, short}, {short, long, short, long}} {
			lazy, _ := lazyPair(t)
			began := time.Now()
			want := began
			for _, step := range steps {
				want = began.Add(step)
				if err := c.set(lazy, want); err != nil {
					t.Fatal(err)
				}
			}
			err := c.do(lazy)
			if took := time.Since(want); !errors.Is(err, os.ErrDeadlineExceeded) || took < 0 {
				t.Errorf("%s with deadlines after %v: got %v %s after the last one, want it to end then", c.name, steps, err, took)
			}
		}
	}
}

func TestALazyDeadlineThatIsTakenBackHoldsNothing(t *testing.T) {
	lazy, other := lazyPair(t)
	soon := time.Now().Add(20 * time.Millisecond)
	for _, deadline := range []time.Time{soon, {}} {
		if err := lazy.SetDeadline(deadline); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan error, 1)
	go func() { _, err := lazy.Read(make([]byte, 1)); read <- err }()
	timer := time.NewTimer(time.Until(soon.Add(50 * time.Millisecond))) // the deadline is one of the real clock
	select {
	case err := <-read:
		t.Fatalf("a read without a deadline ended: %v", err)
	case <-timer.C:
	}
	if _, err := other.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Errorf("reading what came: %v", err)
	}
}

func TestAWriteThatOutlivesAnEarlierDeadlineArrivesWhole(t *testing.T) {
	lazy, other := lazyPair(t)
	soon := time.Now().Add(20 * time.Millisecond)
	for _, deadline := range []time.Time{soon, soon.Add(time.Minute)} {
		if err := lazy.SetWriteDeadline(deadline); err != nil {
			t.Fatal(err)
		}
	}
	sent := make([]byte, 16<<20)
	for i := range sent {
		sent[i] = byte(i >> 8)
	}
	wrote := make(chan error, 1)
	go func() { _, err := lazy.Write(sent); lazy.Close(); wrote <- err }()
	timer := time.NewTimer(time.Until(soon.Add(50 * time.Millisecond)))
	<-timer.C // by then the kernel has taken what it does, and the earlier deadline has passed
	got, buffer := 0, make([]byte, 1<<20)
	for {
		n, err := other.Read(buffer)
		for i := range n {
			if buffer[i] != sent[got+i] {
				t.Fatalf("byte %d is %d, want %d", got+i, buffer[i], sent[got+i])
			}
		}
		got += n
		if err != nil {
			break
		}
	}
	if err := <-wrote; err != nil || got != len(sent) {
		t.Errorf("%d of %d bytes arrived: %v", got, len(sent), err)
	}
}
