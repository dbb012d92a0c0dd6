package engine

import (
	"fmt"
	"io"

	"github.com/ClickHouse/ch-go/compress"
)

// blockWriter writes ClickHouse's compressed blocks (compress=1 of its HTTP interface): a checksum, the method LZ4, both
// sizes and the data of each.
type blockWriter struct {
	out     io.Writer
	packer  *compress.Writer
	pending []byte
}

// blockBytes is how much goes into one block at most.
const blockBytes = 256 << 10

func newBlockWriter(out io.Writer) *blockWriter {
	return &blockWriter{out: out, packer: compress.NewWriter(compress.LevelZero, compress.LZ4), pending: make([]byte, 0, blockBytes)}
}

// Write takes p over, as blocks as soon as they are full.
func (b *blockWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), blockBytes-len(b.pending))
		b.pending, rest = append(b.pending, rest[:n]...), rest[n:]
		if len(b.pending) == blockBytes {
			if err := b.Flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// Flush writes what is pending as a block.
func (b *blockWriter) Flush() error {
	if len(b.pending) == 0 {
		return nil
	}
	if err := b.packer.Compress(b.pending); err != nil {
		return fmt.Errorf("compressing a block: %w", err)
	}
	b.pending = b.pending[:0]
	_, err := b.out.Write(b.packer.Data)
	return err
}
