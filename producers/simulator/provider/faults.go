package provider

import (
	"slices"
	"time"
)

// Faults are what a venue or a polled source does wrong. The zero value is a good one.
type Faults struct {
	// Silence keeps connections open, reads nothing on them and sends nothing, heartbeats included. A source
	// answers no request; in an accelerated run it hangs up.
	Silence bool
	// Garbage is the share of frames, or of answers of a source, 0 to 1, that cannot be read.
	Garbage float64
	// Flood is how many more times every frame is sent. A source rejects every request as one too many.
	Flood int
	// Refuse closes every new connection, and answers HTTP with 503.
	Refuse bool
	// Frozen has a source answer as it did when this began, whatever happens in its market. It does nothing to a venue.
	Frozen bool
	// Delisted takes one in ten markets off the list of a venue, whose feed reports nothing of them. It does nothing to a source.
	Delisted bool
	// Halted has the list of a venue say of one in ten markets that it does not trade, and its feed nothing of them; where the list has only what
	// trades it is Delisted. It does nothing to a source.
	Halted bool
	// Until is when the venue is good again, by its clock; zero is never by itself.
	Until time.Time
}

// At is what is in force at a time: nothing when their time is over.
func (f Faults) At(now time.Time) Faults {
	if !f.Until.IsZero() && !now.Before(f.Until) {
		return Faults{}
	}
	return f
}

// Spoil makes a frame or an answer unreadable, with the probability of Garbage; bits are random.
func (f Faults) Spoil(bits uint64, frame []byte) (spoilt []byte, ok bool) {
	if f.Garbage == 0 || float64(bits>>11)/(1<<53) >= f.Garbage {
		return frame, false
	}
	return garbage(bits, frame), true
}

// garbage spoils a frame in one of the ways that frames are spoilt.
func garbage(bits uint64, frame []byte) []byte {
	switch bits % 4 {
	case 0:
		return frame[:len(frame)/2] // cut off
	case 1:
		return []byte("<html><body>502 Bad Gateway</body></html>")
	case 2:
		spoilt := slices.Clone(frame)
		for i := 0; i < len(spoilt); i += 7 {
			spoilt[i] ^= byte(bits >> (8 * (i % 8)))
		}
		return spoilt
	}
	return []byte(`{"unheard":"of"}`)
}
