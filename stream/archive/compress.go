package archive

import (
	"github.com/klauspost/compress/zstd"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// codec compresses the pages of all segments that are written at the time. The library's own would take 16 MB for each of them, for
// the window of a file; a page of a quarter of a megabyte, which is compressed by itself, has no use for a window beyond its own size.
// Safe for concurrent use.
type codec struct {
	parquetzstd.Codec // decodes
	encoder           *zstd.Encoder
}

const (
	// window is larger than almost all pages.
	window = 512 << 10
	// pagesAtOnce are compressed at one time; others wait.
	pagesAtOnce = 2
)

var pages = newCodec()

func newCodec() *codec {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(pagesAtOnce), zstd.WithWindowSize(window),
		zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // of options that are no such
	}
	return &codec{encoder: encoder}
}

// Encode writes the compressed page to dst, and returns it.
func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}
