package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"
)

// DamageError means that the file of a segment is not what its sidecar has.
type DamageError struct {
	Segment Segment
	Cause   error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("segment %s of %s, offsets %d to %d, is damaged: %v", e.Segment.Data, e.Segment.Source(), e.Segment.First, e.Segment.Next, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// Present compares the size of a segment's file with the sidecar. The error is a *DamageError, or ErrUnavailable.
func Present(ctx context.Context, store Store, s Segment) error {
	file, err := open(ctx, store, s)
	if err != nil {
		return err
	}
	return file.Close()
}

// segmentFile is the open file of a segment. It notes that its store became unavailable, which what decodes the file does not
// pass on as it was. It is read by one goroutine.
type segmentFile struct {
	Reader
	unavailable error
}

func (f *segmentFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.Reader.ReadAt(p, at)
	if errors.Is(err, ErrUnavailable) {
		f.unavailable = err
	}
	return n, err
}

// fault is what the failure of reading the file means: damage, or that its store is not available.
func (f *segmentFile) fault(s Segment, cause error) error {
	if f.unavailable != nil {
		return f.unavailable
	}
	return damaged(s, cause)
}

// open opens the file of a segment, if it has the size that its sidecar has.
func open(ctx context.Context, store Store, s Segment) (*segmentFile, error) {
	opened, err := store.Open(ctx, s.Data)
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, damaged(s, err)
	}
	file := &segmentFile{Reader: opened}
	if file.Size() != s.Size {
		return nil, errors.Join(damaged(s, fmt.Errorf("it is %d bytes large where its sidecar has %d", file.Size(), s.Size)), file.Close())
	}
	return file, nil
}

// Verify reads the whole file of a segment and compares its bytes and its records with the sidecar. The error is a
// *DamageError, or one of the store.
func Verify(ctx context.Context, store Store, s Segment) error {
	file, err := open(ctx, store, s)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(file, 0, s.Size)); err != nil {
		return fmt.Errorf("reading %s: %w", s.Data, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != s.SHA256 {
		return damaged(s, fmt.Errorf("its SHA-256 is %s where its sidecar has %s", got, s.SHA256))
	}
	sum := newDigest()
	var values int64
	err = readRecords(file, s.Size, s, s.First, func(r *kgo.Record) error {
		sum.add(r)
		values += int64(len(r.Value))
		return ctx.Err()
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return file.fault(s, err)
	case sum.sum() != s.Digest:
		return damaged(s, fmt.Errorf("the digest of its records is %s where its sidecar has %s", sum.sum(), s.Digest))
	case values != s.Values:
		return damaged(s, fmt.Errorf("its values are %d bytes where its sidecar has %d", values, s.Values))
	}
	return nil
}

func damaged(s Segment, cause error) error { return &DamageError{Segment: s, Cause: cause} }
