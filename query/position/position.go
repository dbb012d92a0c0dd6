// Package position names what an answer was made of, so that somebody can ask for the same answer again.
package position

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

const (
	// Prefix begins each position, and names the version of its form.
	Prefix = "mlp1."
	// Pattern is the form as a regular expression.
	Pattern = `^mlp1\.[A-Za-z0-9_-]{11,96}$`
	// maxReplica bounds the name of a replica in bytes.
	maxReplica = 64
)

// Position is what an answer was made of: all that a replica served at an instant of its clock, as served.v1 has it.
type Position struct {
	// At is from 1970 on.
	At time.Time
	// Replica has letters, digits, hyphens, dots and underscores, at most 64. It is empty for an instant alone, as of which what any replica
	// served counts.
	Replica string
}

// Append appends the text of a position: the prefix and, in base64url without padding, the instant as Unix nanoseconds (8 bytes, big-endian)
// and the replica's name.
func (p Position) Append(to []byte) []byte {
	var raw [8 + maxReplica]byte
	binary.BigEndian.PutUint64(raw[:], uint64(p.At.UnixNano()))
	n := 8 + copy(raw[8:], p.Replica)
	return base64.RawURLEncoding.AppendEncode(append(to, Prefix...), raw[:n])
}

// String is the text of a position.
func (p Position) String() string { return string(p.Append(nil)) }

// ErrForm means that a text is no position.
var ErrForm = errors.New("not a position")

// Is reports whether a text is meant to be a position.
func Is(text string) bool { return strings.HasPrefix(text, Prefix) }

// Parse reads the text of a position. It fails with ErrForm.
func Parse(text string) (Position, error) {
	encoded, is := strings.CutPrefix(text, Prefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if !is || err != nil || len(raw) < 8 || len(raw) > 8+maxReplica {
		return Position{}, ErrForm
	}
	at, replica := binary.BigEndian.Uint64(raw), string(raw[8:])
	p := Position{At: time.Unix(0, int64(at)).UTC(), Replica: replica}
	if int64(at) < 0 || strings.IndexFunc(replica, unnamed) >= 0 || p.String() != text { // the decoder passes over line ends
		return Position{}, ErrForm
	}
	return p, nil
}

// unnamed reports whether names of replicas do not have a character.
func unnamed(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
}
