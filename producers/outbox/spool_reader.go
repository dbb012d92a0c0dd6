package outbox

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// readAhead is how much of a segment is read at once.
const readAhead = 256 << 10

// spoolReader hands out the records of a spool in order. What it has handed out stays in the spool
// until it is acknowledged, and can be read again by going back there.
type spoolReader struct {
	spool *spool
	// at is where the next record begins.
	at   spoolPosition
	file *os.File
	// ahead are bytes of the file that begin at the position.
	ahead  []byte
	buffer []byte
}

// atEnd reports whether every record was handed out.
func (r *spoolReader) atEnd() bool {
	_, ok := r.current()
	return !ok
}

// current returns the segment that holds the next record.
func (r *spoolReader) current() (segment, bool) {
	for _, seg := range r.spool.segments {
		if seg.number == r.at.segment && r.at.offset < seg.size {
			return seg, true
		}
		if seg.number > r.at.segment && seg.size > segmentHeader {
			return seg, true
		}
	}
	return segment{}, false
}

// read returns the next record, or nil at the end. A segment that is damaged in its middle ends there.
func (r *spoolReader) read() (*record, error) {
	for {
		seg, ok := r.current()
		if !ok {
			return nil, nil
		}
		if seg.number != r.at.segment || r.at.offset < segmentHeader {
			r.seek(spoolPosition{seg.number, segmentHeader})
		}
		rec, n, err := decodeFrame(r.ahead)
		if errors.Is(err, errFrameShort) && r.at.offset+int64(len(r.ahead)) < seg.size {
			if err := r.fill(seg); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			r.spool.damaged += uint64(seg.size - r.at.offset)
			r.seek(spoolPosition{seg.number, seg.size})
			continue
		}
		r.ahead = r.ahead[n:]
		r.at.offset += int64(n)
		rec.end = r.at
		return rec, nil
	}
}

// fill reads on in the segment, at least to the end of the frame that begins at the position.
func (r *spoolReader) fill(seg segment) error {
	if r.file == nil {
		f, err := os.Open(segmentName(r.spool.dir, seg.number))
		if err != nil {
			return fmt.Errorf("opening segment: %w", err)
		}
		r.file = f
	}
	want := readAhead
	if n, err := frameLength(r.ahead); err == nil {
		want = max(want, n)
	}
	if r.buffer == nil || cap(r.buffer) < want {
		r.buffer = make([]byte, want)
	}
	n, err := r.file.ReadAt(r.buffer[:min(int64(want), seg.size-r.at.offset)], r.at.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading segment %d: %w", seg.number, err)
	}
	if n <= len(r.ahead) {
		return fmt.Errorf("reading segment %d: %w", seg.number, io.ErrUnexpectedEOF)
	}
	r.ahead = r.buffer[:n]
	return nil
}

// seek goes to a position.
func (r *spoolReader) seek(p spoolPosition) {
	if p.segment != r.at.segment {
		_ = r.close() // read only: nothing can be lost by it
	}
	r.at, r.ahead = p, nil
}

// leave closes the file of a segment that is removed.
func (r *spoolReader) leave(number uint64) {
	if r.at.segment == number {
		_ = r.close()
	}
}

func (r *spoolReader) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
