package ws

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/marketlog/marketlog/query/limits"
)

// rawSocket is a client that sends whatever it is given.
type rawSocket struct {
	net.Conn
	in *bufio.Reader
	t  *testing.T
}

// openRaw upgrades a connection by hand, from a web page if origin is set, and with compression.
func (w *fixture) openRaw(t *testing.T, origin string) *rawSocket {
	t.Helper()
	conn, err := net.Dial("tcp", w.base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if origin != "" {
		origin = "Origin: " + origin + "\r\n"
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%sConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover; server_no_context_takeover\r\n\r\n",
		Path, w.base, origin)
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols || !strings.Contains(answer.Header.Get("Sec-WebSocket-Extensions"), "permessage-deflate") {
		t.Fatalf("got %d %v, want an upgrade with compression", answer.StatusCode, answer.Header)
	}
	return &rawSocket{conn, in, t}
}

// clientFrame is a whole text message in one masked frame.
func clientFrame(payload []byte, deflated bool) []byte {
	first := byte(0x81)
	if deflated {
		first |= 0x40
	}
	frame := []byte{first, 0x80 | 126}
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(payload)))
	return append(append(frame, 0, 0, 0, 0), payload...) // the mask is of zeros
}

// bomb is a message of a few kilobytes that inflates to a megabyte.
func bomb(t *testing.T) []byte {
	t.Helper()
	var deflated bytes.Buffer
	z, err := flate.NewWriter(&deflated, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, strings.Repeat("0", 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Flush(); err != nil {
		t.Fatal(err)
	}
	return clientFrame(bytes.TrimSuffix(deflated.Bytes(), []byte{0, 0, 255, 255}), true)
}

// ended reads the server's frames until it closes, and returns the code.
func (r *rawSocket) ended() (code uint16) {
	r.t.Helper()
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(r.in, head); err != nil {
			r.t.Fatalf("closed without a code: %v", err)
		}
		size := int64(head[1] & 0x7f)
		switch size {
		case 126:
			var long uint16
			if err := binary.Read(r.in, binary.BigEndian, &long); err != nil {
				r.t.Fatal(err)
			}
			size = int64(long)
		case 127:
			if err := binary.Read(r.in, binary.BigEndian, &size); err != nil {
				r.t.Fatal(err)
			}
		}
		payload, err := io.ReadAll(io.LimitReader(r.in, size))
		if err != nil {
			r.t.Fatal(err)
		}
		if head[0]&0x0f == 8 {
			return binary.BigEndian.Uint16(payload)
		}
	}
}

// Whoever is sent away sends messages that inflate a thousandfold: none is inflated.
func TestMessagesOfStrangersAreNotInflated(t *testing.T) {
	w := newFixture(t, nil)
	frame := bomb(t)
	for name, test := range map[string]struct {
		origin string
		code   uint16
	}{"a page of another site": {"https://elsewhere.example", closeOrigin}, "a client without a key": {"", closeKey}} {
		t.Run(name, func(t *testing.T) {
			socket := w.openRaw(t, test.origin)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 28 {
				if _, err := socket.Write(frame); err != nil {
					break // it hung up, which is as well
				}
			}
			if code := socket.ended(); code != test.code {
				t.Errorf("closed with %d, want %d", code, test.code)
			}
			_, _ = io.Copy(io.Discard, socket.in) // until the server has let go of it
			runtime.ReadMemStats(&after)
			if spent := after.TotalAlloc - before.TotalAlloc; spent > 4<<20 {
				t.Errorf("28 messages made the server allocate %d bytes", spent)
			}
		})
	}
}

func TestSocketsWithoutAKeyAreLimited(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.Strangers, s.stream.StrangersEach, s.stream.KeyTimeout = 10, 3, time.Minute })
	key := w.key(limits.PlanPro)
	var waiting []*client
	for range 3 {
		waiting = append(waiting, w.open(dialing{}))
	}
	_, answer, err := w.dial(dialing{})
	if err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("the fourth socket without a key: got %v, %v, want 503", answer, err)
	}
	w.open(dialing{key: key}).until(typeInitial) // one with a key is not a stranger
	waiting[0].send(`{"type":"auth","key":"` + key + `"}`)
	waiting[0].until(typeInitial) // nor is one that sent it
	w.open(dialing{})
	waiting[1].CloseNow()
	deadline := time.Now().Add(patience)
	for {
		if _, _, err := w.dial(dialing{}); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a socket that went is not free")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if address(net.ParseIP("2001:db8::1")) != address(net.ParseIP("2001:db8::ffff:2")) || address(net.ParseIP("192.0.2.1")) == address(net.ParseIP("192.0.2.2")) {
		t.Error("an IPv6 host counts by its /64, an IPv4 one by itself")
	}
}

func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	w := newFixture(t, nil)
	client := w.open(dialing{key: w.key(limits.PlanPro)})
	client.until(typeInitial)
	client.send("{\"type\":\"ping\",\"x\":\"\xff\"}")
	if code := client.closed(); code != websocket.StatusInvalidFramePayloadData {
		t.Errorf("closed with %d, want %d", code, websocket.StatusInvalidFramePayloadData)
	}
}
