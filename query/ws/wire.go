package ws

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"sync"

	"github.com/fasthttp/websocket"
)

// Bits of a frame's first byte, RFC 6455 section 5.2 and RFC 7692 section 6. A server's frames are
// not masked.
const (
	finalBit    = 0x80
	deflatedBit = 0x40
)

// controlMax is what a control frame has room for.
const controlMax = 125

// form is how messages go over the wire.
type form uint8

const (
	// formFrames are WebSocket frames, formEvents server-sent events, formLines lines of JSON.
	formFrames form = iota
	formEvents
	formLines
)

// write is a message for one reader. It is not deflated: that pays where many share the result.
func (f form) write(body []byte, cursor string) []byte {
	switch f {
	case formEvents:
		b := make([]byte, 0, len(body)+len(cursor)+64)
		if cursor != "" {
			b = append(append(append(b, "id: "...), cursor...), '\n')
		}
		b = append(append(append(b, "event: "...), kindOf(body)...), "\ndata: "...)
		return append(append(b, body...), "\n\n"...)
	case formLines:
		return append(append(make([]byte, 0, len(body)+1), body...), '\n')
	default:
		return textFrame(body)
	}
}

// ping is what keeps a connection on which nothing is sent, and those between, from being taken for dead.
func (f form) ping() []byte {
	switch f {
	case formEvents:
		return []byte(": ping\n\n")
	case formLines:
		return []byte("\n")
	default:
		return pingFrame
	}
}

// end is the last that is written, if anything: the end of the others is that of their connection.
func (f form) end(e *ending) []byte {
	if f == formFrames {
		return append(e.last[:len(e.last):len(e.last)], closeFrame(e)...)
	}
	return e.last
}

// kindOf is the type that a message begins with.
func kindOf(body []byte) []byte {
	kind := bytes.TrimPrefix(body, []byte(`{"type":"`))
	kind, _, _ = bytes.Cut(kind, []byte(`"`))
	return kind
}

// withCursor adds a cursor to a message.
func withCursor(body []byte, cursor string) []byte {
	if cursor == "" {
		return body
	}
	b := append(make([]byte, 0, len(body)+len(cursor)+14), body[:len(body)-1]...)
	return append(append(append(b, `,"cursor":"`...), cursor...), `"}`...)
}

// encoded is a message as it goes over the wire, made once for all who get it.
type encoded struct {
	// plain is one WebSocket frame.
	plain []byte
	// The others are made for the first who takes them so, and kept: deflated, and with the cursor as a frame, an event and a
	// line.
	deflated    func() []byte
	extended    func() *encoded
	event, line func() []byte
}

func encode(body []byte) *encoded { return encodeWith(body, "") }

// encodeWith encodes a message after which a reader has a cursor; it is empty for one that holds no prices.
func encodeWith(body []byte, cursor string) *encoded {
	e := &encoded{plain: textFrame(body)}
	e.deflated = sync.OnceValue(func() []byte {
		return dataFrame(finalBit|deflatedBit|websocket.TextMessage, deflate(body))
	})
	e.extended = func() *encoded { return e }
	if cursor != "" {
		e.extended = sync.OnceValue(func() *encoded { return encodeWith(withCursor(body, cursor), "") })
	}
	e.event = sync.OnceValue(func() []byte { return formEvents.write(withCursor(body, cursor), cursor) })
	e.line = sync.OnceValue(func() []byte { return formLines.write(withCursor(body, cursor), cursor) })
	return e
}

// textFrame is a message for one reader. It is not deflated: that pays where many share the result.
func textFrame(body []byte) []byte { return dataFrame(finalBit|websocket.TextMessage, body) }

func dataFrame(first byte, payload []byte) []byte {
	b := append(make([]byte, 0, 10+len(payload)), first)
	switch n := len(payload); {
	case n <= controlMax:
		b = append(b, byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// controlFrame is a ping, a pong or a close. What it has no room for is cut off.
func controlFrame(kind int, payload []byte) []byte {
	return dataFrame(finalBit|byte(kind), payload[:min(len(payload), controlMax)])
}

var pingFrame = controlFrame(websocket.PingMessage, nil)

func closeFrame(end *ending) []byte {
	return controlFrame(websocket.CloseMessage, websocket.FormatCloseMessage(end.code, end.reason))
}

var deflaters = sync.Pool{New: func() any {
	z, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a valid one
	}
	return z
}}

// syncTail is what a flush ends with and a message goes without, RFC 7692 section 7.2.1.
var syncTail = []byte{0, 0, 0xff, 0xff}

// deflate compresses a message without regard to those before, so that all who were promised that
// can share it.
func deflate(body []byte) []byte {
	var b bytes.Buffer
	z := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(z)
	z.Reset(&b)
	if _, err := z.Write(body); err != nil {
		panic(err) // it writes into memory, which cannot fail
	}
	if err := z.Flush(); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), syncTail)
}
