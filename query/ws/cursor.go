package ws

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// position is how much of the log a reader was sent: by partition of prices.v1, the newest second (Unix) all of whose
// prices it has. The prices of a second precede the pulse that ends it in its partition, so a position is an exact cut, the
// same on every replica and after every restart. 0 is a partition about which nothing is known.
type position []int64

// whole means that something is known of every partition.
func (p position) whole() bool { return len(p) > 0 && !slices.Contains(p, 0) }

// newest and oldest are the bounds of a position's seconds.
func (p position) newest() int64 { return slices.Max(p) }
func (p position) oldest() int64 { return slices.Min(p) }

// behind means that some partition was sent less of than in another position.
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

// max is the further of two positions, partition by partition.
func (p position) max(other position) position {
	far := make(position, len(p))
	for i := range p {
		far[i] = max(p[i], other[i])
	}
	return far
}

const (
	// cursorMax is the length of the longest cursor.
	cursorMax = 64
	// cursorForm begins every cursor; another form would begin with another character.
	cursorForm = '1'
	// identityBytes of a digest distinguish logs.
	identityBytes = 6
	// maxLag bounds, in seconds, how far partitions lie apart in a cursor: each takes at most four bytes.
	maxLag = 1 << 28
)

// identity distinguishes a log, and the view of it that the store holds, from all others.
type identity [identityBytes]byte

// identityOf is that of a name.
func identityOf(name string) (id identity) {
	sum := sha256.Sum256([]byte(name))
	copy(id[:], sum[:])
	return id
}

// cursorOf is a position as a client receives it: opaque, at most 64 characters that need no escape in JSON, in a URL or in a
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

const (
	// mixedMax is the length of the longest cursor of several channels; one channel takes some 12 characters.
	mixedMax = 512
	// mixedForm begins a cursor of other channels than the prices alone.
	mixedForm = '2'
	// Forms of a position: all partitions are at one second, or each has its lag.
	// newestMost bounds the newest second or offset in a cursor.
	newestMost = 1 << 48
	lagsNone   = 0
	lagsEach   = 1
)

// spot is a position in one channel.
type spot struct {
	code byte
	id   identity
	at   position
}

// join makes it the identity of another log beside those that it is of.
func (id *identity) join(other identity) {
	for i := range id {
		id[i] ^= other[i]
	}
}

// cursorOfAll is a cursor of several channels. It is empty where there is none, and where nothing is known of some
// partition of one.
func cursorOfAll(spots []spot) string {
	if len(spots) == 0 {
		return ""
	}
	b := make([]byte, identityBytes, cursorMax)
	var id identity
	for _, s := range spots {
		if !s.at.whole() || s.at.newest()-s.at.oldest() >= maxLag {
			return ""
		}
		id.join(s.id)
		newest := s.at.newest()
		b = binary.AppendUvarint(append(b, s.code), uint64(newest))
		if s.at.oldest() == newest {
			b = append(b, lagsNone)
			continue
		}
		b = append(b, lagsEach)
		for _, second := range s.at {
			b = binary.AppendUvarint(b, uint64(newest-second))
		}
	}
	copy(b, id[:])
	return string(mixedForm) + base64.RawURLEncoding.EncodeToString(b)
}

// parseCursors reads a cursor of several channels; partitions is how many a channel has, 0 where there is none of that code.
func parseCursors(text string, partitions func(code byte) int) (id identity, places map[byte]position, err error) {
	if len(text) < 2 || len(text) > mixedMax || text[0] != mixedForm {
		return id, nil, errCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text[1:])
	if err != nil || len(b) <= identityBytes {
		return id, nil, errCursor
	}
	copy(id[:], b)
	r := cursorReader{b: b[identityBytes:], ok: true}
	places = map[byte]position{}
	for len(r.b) > 0 && r.ok {
		code := r.byte()
		p := make(position, partitions(code))
		newest, form := r.number(newestMost), r.byte()
		for i := range p {
			p[i] = newest
			if form == lagsEach {
				p[i] -= r.number(maxLag - 1)
			}
			r.ok = r.ok && p[i] > 0
		}
		_, twice := places[code]
		// One position has one cursor.
		r.ok = r.ok && len(p) > 0 && form <= lagsEach && !twice && p.newest() == newest && (form == lagsNone) == (p.oldest() == newest)
		places[code] = p
	}
	if !r.ok {
		return id, nil, errCursor
	}
	return id, places, nil
}

// cursorReader takes a cursor apart; ok is false once it was not what it should be.
type cursorReader struct {
	b  []byte
	ok bool
}

func (r *cursorReader) byte() byte {
	if len(r.b) == 0 {
		r.ok = false
		return 0
	}
	first := r.b[0]
	r.b = r.b[1:]
	return first
}

func (r *cursorReader) number(most uint64) int64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > most {
		r.ok = false
		return 0
	}
	r.b = r.b[size:]
	return int64(n)
}

var errCursor = errors.New("is not one that this service gave; leave it out, or send the last one received unchanged")

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
	r := cursorReader{b: b[identityBytes:], ok: true}
	newest := r.number(1 << 32)
	p = make(position, partitions)
	for i := range p {
		p[i] = newest - r.number(maxLag-1)
		r.ok = r.ok && p[i] > 0
	}
	if !r.ok || len(r.b) > 0 {
		return id, nil, errCursor
	}
	return id, p, nil
}
