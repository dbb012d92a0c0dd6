package adapter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"github.com/marketlog/marketlog/schemas"
)

// MaxFrame is how large a frame may be, on the wire and unpacked. The largest seen, a snapshot
// of all tickers of a venue, is below 1 MB.
const MaxFrame = 4 << 20

// Unpack gives the frame as a codec sees it: a binary frame in gzip (some venues compress every
// frame) is inflated, up to MaxFrame, so that a bomb costs no more than a large frame.
func Unpack(f Frame) (Frame, error) {
	if !f.Binary || len(f.Bytes) < 2 || f.Bytes[0] != 0x1f || f.Bytes[1] != 0x8b {
		return f, nil
	}
	in := inflaters.Get().(*inflater)
	defer inflaters.Put(in)
	plain, err := in.inflate(f.Bytes)
	if err != nil {
		return f, fmt.Errorf("%w: inflating: %w", schemas.Undecodable, err)
	}
	if len(plain) > MaxFrame {
		return f, fmt.Errorf("%w: a frame of %d bytes inflates to more than %d", schemas.Undecodable, len(f.Bytes), MaxFrame)
	}
	f.Bytes = bytes.Clone(plain)
	return f, nil
}

// inflater inflates one frame after another: its window of 32 kB is larger than almost all frames.
type inflater struct {
	from  bytes.Reader
	gzip  gzip.Reader
	plain bytes.Buffer
}

var inflaters = sync.Pool{New: func() any { return &inflater{} }}

// keptMost bounds what is kept for the next frame.
const keptMost = 256 << 10

// inflate returns what is in a frame, at most one byte more than MaxFrame; it is valid until the next call.
func (in *inflater) inflate(frame []byte) ([]byte, error) {
	if in.plain.Reset(); in.plain.Cap() > keptMost {
		in.plain = bytes.Buffer{}
	}
	in.from.Reset(frame)
	defer in.from.Reset(nil)
	if err := in.gzip.Reset(&in.from); err != nil {
		return nil, err
	}
	_, err := in.plain.ReadFrom(io.LimitReader(&in.gzip, MaxFrame+1))
	return in.plain.Bytes(), err
}
