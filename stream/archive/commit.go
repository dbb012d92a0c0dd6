package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream/faults"
)

// MismatchError means that the store has a segment of the same name that holds other records: two logs or two rules
// write to one archive.
type MismatchError struct{ Have, Made Segment }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("the archive has a segment of %s from %d to %d with the digest %s, where the log gives one to %d with the digest %s: "+
		"another instance writes to the same archive, or the log was changed; give each instance an archive of its own",
		e.Have.Source(), e.Have.First, e.Have.Next, e.Have.Digest, e.Made.Next, e.Made.Digest)
}

// counter hashes and counts what passes through.
type counter struct {
	to   io.Writer
	size int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.size += int64(n)
	return n, err
}

// Commit writes a segment of the records from the offset first on, which have to be contiguous; they are read once. The
// segment before it is the zero Segment for the first of a partition and for the first after a gap. Commit returns once
// the file is on the disk, was read back, and the sidecar names it. If another archiver committed the segment meanwhile,
// that one is returned; the error is a *MismatchError if it holds other records. After any other error the segment is
// committed or not: to call Commit again settles it.
func Commit(ctx context.Context, store Store, of Partition, before Segment, first int64, schema string, records iter.Seq2[*kgo.Record, error]) (Segment, error) {
	return commitAfter(ctx, store, of, before, first, schema, records, func() error { return nil })
}

// commitAfter does what Commit does, and calls written once the file is there, just before the sidecar commits it. Its error is
// a failure of the log's.
func commitAfter(
	ctx context.Context, store Store, of Partition, before Segment, first int64, schema string, records iter.Seq2[*kgo.Record, error], written func() error,
) (Segment, error) {
	faults.Hit("archive.write")
	made := Segment{Topic: of.Topic, TopicID: of.TopicID, Partition: of.Number, Schema: schema, First: first, Next: first,
		MinTime: math.MaxInt64, MaxTime: math.MinInt64, Data: of.dataName(first)}
	err := store.Create(ctx, made.Data, func(w io.Writer) error { return made.write(w, records) })
	if err != nil && !errors.Is(err, ErrExists) { // the name is of this attempt alone: what exists is what it wrote
		return made, fmt.Errorf("archiving %s from %d: %w", of, first, err)
	}
	faults.Hit("archive.written")
	made.Chain = chain(before.Chain, made.Digest)
	if err := Verify(ctx, store, made); err != nil {
		return made, errors.Join(fmt.Errorf("archiving %s from %d: reading back: %w", of, first, err), store.Delete(ctx, made.Data))
	}
	faults.Hit("archive.verified")
	if err := written(); err != nil {
		return made, errors.Join(fmt.Errorf("archiving %s from %d: %w: %w", of, first, errLog, err), store.Delete(ctx, made.Data))
	}
	content, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return made, fmt.Errorf("archiving %s from %d: %w", of, first, err)
	}
	err = store.Create(ctx, made.SidecarName(), func(w io.Writer) error {
		_, err := w.Write(append(content, '\n'))
		return err
	})
	if errors.Is(err, ErrExists) {
		return made.yield(ctx, store)
	}
	if errors.Is(err, ErrUnavailable) {
		// The sidecar may appear later, and would name a file that is gone. Whoever commits the segment sweeps what is left.
		return made, fmt.Errorf("archiving %s from %d: %w", of, first, err)
	}
	if err != nil {
		return made, errors.Join(fmt.Errorf("archiving %s from %d: %w", of, first, err), made.abandon(ctx, store))
	}
	faults.Hit("archive.committed")
	return made, nil
}

// errLog means that the log could not give the records of a segment.
var errLog = errors.New("reading the log")

// write writes the file and fills in what is known of it then.
func (s *Segment) write(w io.Writer, records iter.Seq2[*kgo.Record, error]) error {
	hash := sha256.New()
	counted := &counter{to: io.MultiWriter(w, hash)}
	file, sum := newWriter(counted), newDigest()
	for r, err := range records {
		if err != nil {
			return fmt.Errorf("%w: %w", errLog, err)
		}
		if r.Offset != s.Next {
			return fmt.Errorf("%w: it has record %d where %d belongs", errLog, r.Offset, s.Next)
		}
		sum.add(r)
		s.Next++
		s.Values += int64(len(r.Value))
		s.MinTime = min(s.MinTime, r.Timestamp.UnixMilli())
		s.MaxTime = max(s.MaxTime, r.Timestamp.UnixMilli())
		if err := file.write(r); err != nil {
			return err
		}
	}
	if s.Next == s.First {
		return fmt.Errorf("%w: there is no record to write", errLog)
	}
	err := file.close()
	s.Size, s.SHA256, s.Digest = counted.size, hex.EncodeToString(hash.Sum(nil)), sum.sum()
	return err
}

// abandon removes the file of an attempt whose sidecar could not be written: on a full disk each attempt would leave one
// more. Where the sidecar is there after all, or nobody knows, the file stays.
func (s Segment) abandon(ctx context.Context, store Store) error {
	if _, err := readSidecar(ctx, store, s.SidecarName()); !errors.Is(err, ErrMissing) {
		return nil
	}
	return store.Delete(ctx, s.Data)
}

// yield gives way to the segment that another archiver committed, or that this call did by an attempt whose answer was lost on
// the way.
func (s Segment) yield(ctx context.Context, store Store) (Segment, error) {
	have, err := readSidecar(ctx, store, s.SidecarName())
	if err == nil && have.Data != s.Data {
		err = store.Delete(ctx, s.Data)
	}
	if err == nil && (have.Digest != s.Digest || have.Chain != s.Chain) {
		err = &MismatchError{Have: have, Made: s}
	}
	return have, err
}

// settled is the segment that the store has where an attempt to commit s failed; the error is ErrMissing if it has none, and s may
// be the zero Segment. The attempt may have succeeded after all, and the log may have deleted the records since.
func (s Segment) settled(ctx context.Context, store Store) (Segment, error) {
	if s.Digest == "" {
		return s, ErrMissing
	}
	have, err := readSidecar(ctx, store, s.SidecarName())
	if err == nil && (have.Digest != s.Digest || have.Chain != s.Chain) {
		err = &MismatchError{Have: have, Made: s}
	}
	return have, err
}

// sweep removes the files of other attempts at the segment, which is committed.
func (s Segment) sweep(ctx context.Context, store Store) error {
	of := s.Source()
	objects, err := store.List(ctx, of.prefix())
	failed := []error{err}
	for _, o := range objects {
		if first, ok := of.firstOf(o.Name); ok && first == s.First && o.Name != s.Data && o.Name != s.SidecarName() {
			failed = append(failed, store.Delete(ctx, o.Name))
		}
	}
	return errors.Join(failed...)
}

func readSidecar(ctx context.Context, store Store, name string) (Segment, error) {
	content, err := read(ctx, store, name, maxSidecar)
	if err != nil {
		return Segment{}, fmt.Errorf("reading sidecar %s: %w", name, err)
	}
	return decodeSegment(name, content)
}
