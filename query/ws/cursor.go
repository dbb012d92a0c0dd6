package ws

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// position is how much of the log a reader was told: by partition of prices.v1, the newest second (Unix) all of whose
// prices it has. The prices of a second precede the pulse that ends it in its partition, so a position is an exact cut, the
// same on every replica and after every restart. 0 is a partition of which nothing is known.
type position []int64

// whole means that something is known of every partition.
func (p position) whole() bool { return len(p) > 0 && !slices.Contains(p, 0) }

// newest and oldest are the bounds of a position's seconds.
func (p position) newest() int64 { return slices.Max(p) }
func (p position) oldest() int64 { return slices.Min(p) }

// behind means that some partition was told less than in another position.
func (p position) behind(other position) bool {
	for i, second := range p {
		if second < other[i] {
			return true
		}
	}
	return false
}

// upTo is a position moved on to a second, but nowhere further than a limit, nor back.
func (p position) upTo(second int64, limit position) position {
	moved := make(position, len(p))
	for i := range p {
		moved[i] = max(p[i], min(second, limit[i]))
	}
	return moved
}

const (
	// cursorMax is the length of the longest cursor.
	cursorMax = 64
	// cursorForm begins every cursor; another form would begin with another character.
	cursorForm = '1'
	// identityBytes of a digest tell logs apart.
	identityBytes = 6
	// maxLag bounds, in seconds, how far partitions lie apart in a cursor: each takes at most four bytes.
	maxLag = 1 << 28
)

// identity tells a log, and the view of it that the store holds, from all others.
type identity [identityBytes]byte

// identityOf is that of a name.
func identityOf(name string) (id identity) {
	sum := sha256.Sum256([]byte(name))
	copy(id[:], sum[:])
	return id
}

// cursorOf is how a client is told a position: opaque, at most 64 characters that need no escape in JSON, in a URL or in a
// header. It is empty where nothing is known of some partition, so that nobody takes "unknown" for "all before".
func cursorOf(id identity, p position) string {
	if !p.whole() || p.newest()-p.oldest() >= maxLag {
		return ""
	}
	b := append(make([]byte, 0, cursorMax), id[:]...)
	newest := p.newest()
	b = binary.AppendUvarint(b, uint64(newest))
	for _, second := range p {
		b = binary.AppendUvarint(b, uint64(newest-second))
	}
	return string(cursorForm) + base64.RawURLEncoding.EncodeToString(b)
}

var errCursor = errors.New("cursor is none that this service gave; leave it out, or send the last one received unchanged")

// parseCursor reads a cursor of so many partitions.
func parseCursor(text string, partitions int) (id identity, p position, err error) {
	if len(text) < 2 || len(text) > cursorMax || text[0] != cursorForm {
		return id, nil, errCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text[1:])
	if err != nil || len(b) < identityBytes {
		return id, nil, errCursor
	}
	copy(id[:], b)
	b = b[identityBytes:]
	number := func(most uint64) (int64, bool) {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > most {
			return 0, false
		}
		b = b[size:]
		return int64(n), true
	}
	newest, ok := number(1 << 32)
	p = make(position, partitions)
	for i := range p {
		var lag int64
		if ok {
			lag, ok = number(maxLag - 1)
		}
		p[i] = newest - lag
		ok = ok && p[i] > 0
	}
	if !ok || len(b) > 0 {
		return id, nil, errCursor
	}
	return id, p, nil
}
