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

// encoded is a text message as it goes over the wire, in one frame, made once for all who get it.
type encoded struct {
	plain []byte
	// deflated is made for the first who takes it so, and kept.
	deflated func() []byte
}

func encode(body []byte) *encoded {
	return &encoded{plain: textFrame(body), deflated: sync.OnceValue(func() []byte {
		return dataFrame(finalBit|deflatedBit|websocket.TextMessage, deflate(body))
	})}
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
