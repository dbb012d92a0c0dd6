package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/twmb/franz-go/pkg/kgo"
)

// digest is the SHA-256 over records in the order of their offsets: for each its offset and its timestamp in Unix
// milliseconds, 8 bytes each, then key, value and the number of headers with their keys and values. Numbers are
// big-endian; each text is preceded by its length in 4 bytes, which is 2^32−1 where there is none (a null key is not an
// empty one).
type digest struct {
	hash hash.Hash
	buf  []byte
}

func newDigest() *digest { return &digest{hash: sha256.New()} }

const null = 1<<32 - 1

func (d *digest) add(r *kgo.Record) {
	b := binary.BigEndian.AppendUint64(d.buf[:0], uint64(r.Offset))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Timestamp.UnixMilli()))
	b = appendText(b, r.Key)
	b = appendText(b, r.Value)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendText(b, []byte(h.Key))
		b = appendText(b, h.Value)
	}
	d.hash.Write(b)
	d.buf = b
}

func appendText(b, text []byte) []byte {
	if text == nil {
		return binary.BigEndian.AppendUint32(b, null)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

func (d *digest) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// chain is that of a segment after the chain of the one before, which is "" for the first.
func chain(before, digest string) string {
	raw := make([]byte, 0, 2*sha256.Size)
	if before == "" {
		raw = append(raw, make([]byte, sha256.Size)...)
	} else {
		b, _ := hex.DecodeString(before) // checked where it was read
		raw = append(raw, b...)
	}
	d, _ := hex.DecodeString(digest)
	sum := sha256.Sum256(append(raw, d...))
	return hex.EncodeToString(sum[:])
}
