package adapter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

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
	r, err := gzip.NewReader(bytes.NewReader(f.Bytes))
	if err != nil {
		return f, fmt.Errorf("%w: inflating: %w", schemas.Undecodable, err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, MaxFrame+1))
	if err != nil {
		return f, fmt.Errorf("%w: inflating: %w", schemas.Undecodable, err)
	}
	if len(plain) > MaxFrame {
		return f, fmt.Errorf("%w: a frame of %d bytes inflates to more than %d", schemas.Undecodable, len(f.Bytes), MaxFrame)
	}
	f.Bytes = plain
	return f, nil
}
