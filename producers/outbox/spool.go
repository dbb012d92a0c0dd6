package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"github.com/marketlog/marketlog/stream/faults"
)

// spool keeps records on disk, in order, until the broker acknowledged them.
//
// A record is in the spool when append returned: the kernel has it, so a kill of this process
// loses nothing. It outlives a loss of power once sync returned, which the writer calls every second,
// or its segment was full. A frame that a kill cut short ends its segment at the next open.
//
// What was acknowledged is noted as a position, in a file of its own, with sync. After a kill the
// records since then are sent again; their event ids make the second copy vanish.
//
// Beyond its bound the spool gives up its oldest segment that nobody began to read, and a segment of
// gaps takes its place, by a rename: after a kill either the records or their gaps are there.
//
// It is not safe for concurrent use.
type spool struct {
	dir          string
	lock         *flock.Flock
	segmentBytes int64
	maxBytes     int64

	// segments are in order; the last is written to if active is set.
	segments []segment
	active   *os.File
	next     uint64
	dirty    bool

	acked, noted spoolPosition
	reader       spoolReader

	dropped uint64
	damaged uint64
}

// spoolPosition is a place between two frames.
type spoolPosition struct {
	segment uint64
	offset  int64
}

const ackedName = "acked"

// openSpool opens the spool in a directory, which it creates, with what an earlier process left.
func openSpool(dir string, segmentBytes, maxBytes int64) (_ *spool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating spool: %w", err)
	}
	s := &spool{dir: dir, segmentBytes: segmentBytes, maxBytes: maxBytes}
	// Two writers would send each other's records and delete them.
	s.lock = flock.New(filepath.Join(dir, "lock"))
	if held, err := s.lock.TryLock(); err != nil {
		return nil, fmt.Errorf("locking spool %s: %w", dir, err)
	} else if !held {
		return nil, fmt.Errorf("locking spool %s: another process has it", dir)
	}
	defer func() {
		if err != nil {
			_ = s.lock.Unlock()
		}
	}()
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("opening spool %s: %w", dir, err)
	}
	s.reader.spool = s
	s.reader.at = s.acked
	return s, nil
}

// recover reads what is there: whole segments, the last one cut after its last whole frame.
func (s *spool) recover() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	for _, entry := range entries {
		number, ok := segmentNumber(entry.Name())
		if !ok {
			continue
		}
		name := filepath.Join(s.dir, entry.Name())
		s.next = max(s.next, number)
		seg, err := openSegment(s.dir, number)
		switch {
		case errors.Is(err, errSegmentEmpty):
			err = os.Remove(name)
		case errors.Is(err, errNoSegment):
			// Out of the way, for someone to look at: the sources must not wait for that.
			s.damaged += uint64(seg.size)
			err = os.Rename(name, name+".damaged")
		case err == nil:
			s.segments = append(s.segments, seg)
		}
		if err != nil {
			return fmt.Errorf("segment %s: %w", entry.Name(), err)
		}
	}
	slices.SortFunc(s.segments, func(a, b segment) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	if err := s.removeCovered(); err != nil {
		return err
	}
	if n := len(s.segments); n > 0 {
		last := &s.segments[n-1]
		if last.size, err = wholeFrames(segmentName(s.dir, last.number)); err != nil {
			return err
		}
		if err := os.Truncate(segmentName(s.dir, last.number), last.size); err != nil {
			return fmt.Errorf("cutting the torn tail: %w", err)
		}
	}
	if s.acked, err = readAcked(filepath.Join(s.dir, ackedName)); err != nil {
		return err
	}
	s.noted = s.acked
	// Numbers are never used twice: the noted position would skip records under an old number.
	// For the same reason nothing is appended to a segment of an earlier process.
	s.next = max(s.next, s.acked.segment) + 1
	return s.removeAcked()
}

// removeCovered removes segments whose gaps are already in their place.
func (s *spool) removeCovered() error {
	var covered uint64
	var kept []segment
	for _, seg := range s.segments {
		if seg.number <= covered {
			if err := os.Remove(segmentName(s.dir, seg.number)); err != nil {
				return fmt.Errorf("removing segment: %w", err)
			}
			continue
		}
		covered = seg.covers
		kept = append(kept, seg)
	}
	s.segments = kept
	return nil
}

// readAcked returns the noted position; a note that is missing or torn notes nothing.
func readAcked(name string) (spoolPosition, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return spoolPosition{}, nil
	} else if err != nil {
		return spoolPosition{}, fmt.Errorf("reading the acknowledged position: %w", err)
	}
	if len(b) != 20 || crc32.Checksum(b[:16], castagnoli) != binary.LittleEndian.Uint32(b[16:]) {
		return spoolPosition{}, nil
	}
	return spoolPosition{binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))}, nil
}

// noteAcked writes the acknowledged position. A torn note makes the next process send more twice,
// nothing else, so there is no rename.
func (s *spool) noteAcked() error {
	if s.noted == s.acked {
		return nil
	}
	b := binary.LittleEndian.AppendUint64(nil, s.acked.segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.acked.offset))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if err := os.WriteFile(filepath.Join(s.dir, ackedName), b, 0o600); err != nil {
		return fmt.Errorf("noting the acknowledged position: %w", err)
	}
	s.noted = s.acked
	return nil
}

// append writes records at the end and sets where each ends. On an error the first n are in the
// spool and the others are not.
func (s *spool) append(rs []*record) (n int, err error) {
	var b []byte
	for n < len(rs) {
		if err := s.room(); err != nil {
			return n, err
		}
		last := &s.segments[len(s.segments)-1]
		b = b[:0]
		m := n
		for m < len(rs) && (m == n || last.size+int64(len(b)) < s.segmentBytes) {
			b = appendFrame(b, rs[m])
			m++
			rs[m-1].end = spoolPosition{last.number, last.size + int64(len(b))}
		}
		if err := s.write(b); err != nil {
			for _, r := range rs[n:m] {
				r.end = spoolPosition{}
			}
			return n, err
		}
		last.size += int64(len(b))
		n = m
	}
	return n, nil
}

// write puts whole frames at the end of the active segment, or nothing.
func (s *spool) write(b []byte) error {
	s.dirty = true
	first := 0
	if faults.Enabled() {
		// A kill between two halves of a record is what the torn tail is for.
		n, _ := frameLength(b)
		first = n / 2
		if _, err := s.active.Write(b[:first]); err == nil {
			faults.Hit("producer.spool")
		}
	}
	if _, err := s.active.Write(b[first:]); err != nil {
		// Half a frame must not precede whole ones. If it cannot be cut off, the segment ends here.
		last := s.segments[len(s.segments)-1]
		if cut := errors.Join(s.active.Truncate(last.size), seekEnd(s.active)); cut != nil {
			err = errors.Join(err, s.closeActive())
		}
		return fmt.Errorf("writing to the spool: %w", err)
	}
	return nil
}

func seekEnd(f *os.File) error {
	_, err := f.Seek(0, 2)
	return err
}

// room makes the last segment one that takes another frame, within the spool's bound.
func (s *spool) room() error {
	if s.active != nil && s.segments[len(s.segments)-1].size >= s.segmentBytes {
		if err := s.closeActive(); err != nil {
			return err
		}
	}
	if s.active != nil {
		return nil
	}
	// A new segment may grow to its full size, so that much must be free before it begins.
	for s.bytes()+s.segmentBytes > s.maxBytes {
		if freed, err := s.dropOldest(); err != nil {
			return err
		} else if !freed {
			break // all of it is in flight, which is bounded by itself
		}
	}
	name := segmentName(s.dir, s.next)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating segment: %w", err)
	}
	if _, err := f.Write(appendSegmentHeader(nil, s.next, s.next)); err != nil {
		return errors.Join(fmt.Errorf("writing segment header: %w", err), f.Close(), os.Remove(name))
	}
	s.active = f
	s.segments = append(s.segments, segment{number: s.next, covers: s.next, size: segmentHeader})
	s.next++
	return s.syncDir()
}

// syncDir makes the names of the segments durable.
func (s *spool) syncDir() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return fmt.Errorf("syncing the spool's directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("syncing the spool's directory: %w", err)
	}
	return nil
}

// closeActive makes the segment that is written to durable and ends it.
func (s *spool) closeActive() error {
	if s.active == nil {
		return nil
	}
	err := errors.Join(s.active.Sync(), s.active.Close())
	s.active = nil
	if err != nil {
		return fmt.Errorf("closing segment: %w", err)
	}
	return nil
}

// bytes is what the spool takes on disk.
func (s *spool) bytes() int64 {
	var sum int64
	for _, seg := range s.segments {
		sum += seg.size
	}
	return sum
}

// end is the position after the last record.
func (s *spool) end() spoolPosition {
	if len(s.segments) == 0 {
		return s.acked
	}
	last := s.segments[len(s.segments)-1]
	return spoolPosition{last.number, last.size}
}

// ack means that everything up to a position was acknowledged, and removes what lies wholly before it.
func (s *spool) ack(p spoolPosition) error {
	if p == s.acked {
		return nil
	}
	crossed := p.segment != s.acked.segment
	s.acked = p
	if !crossed {
		return nil
	}
	return s.removeAcked()
}

// removeAcked removes the segments before the acknowledged position, and one that ends there if
// nothing more is written to it. It keeps the oldest last, so that a kill leaves no gap.
func (s *spool) removeAcked() error {
	for len(s.segments) > 0 {
		seg := s.segments[0]
		if seg.number > s.acked.segment || seg.number == s.acked.segment &&
			(seg.size > s.acked.offset || s.active != nil && len(s.segments) == 1) {
			return nil
		}
		s.reader.leave(seg.number)
		if err := os.Remove(segmentName(s.dir, seg.number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing segment: %w", err)
		}
		s.segments = s.segments[1:]
	}
	return nil
}

// clear removes all segments: every record was acknowledged.
func (s *spool) clear() error {
	s.acked = s.end()
	if err := s.noteAcked(); err != nil {
		return err
	}
	if s.active != nil {
		err := s.active.Close() // what it holds is not needed any more
		s.active = nil
		if err != nil {
			return fmt.Errorf("closing segment: %w", err)
		}
	}
	s.dirty = false
	return s.removeAcked()
}

// sync makes what was appended outlive a loss of power and notes what was acknowledged.
func (s *spool) sync() error {
	if s.dirty && s.active != nil {
		if err := s.active.Sync(); err != nil {
			return fmt.Errorf("syncing spool: %w", err)
		}
	}
	s.dirty = false
	return s.noteAcked()
}

// close syncs and lets another process open the spool.
func (s *spool) close() error {
	return errors.Join(s.closeActive(), s.noteAcked(), s.reader.close(), s.lock.Unlock())
}
