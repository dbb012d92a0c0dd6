package archive

import (
	"context"
	"errors"
	"sort"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Read hands the archived records of [from, to) to visit, in order, and returns the offset after the last one that it
// handed over, or from if the archive does not have that one. It ends before a gap. Each file that is read whole is
// compared with its digest; the error is a *DamageError where it differs, and what was handed over before it is to be
// thrown away then.
func (c Catalog) Read(ctx context.Context, store Store, from, to int64, visit func(*kgo.Record) error) (next int64, err error) {
	next = from
	for at := c.search(from); at < len(c.Segments) && next < to; at++ {
		s := c.Segments[at]
		if s.First > next {
			return next, nil
		}
		if next, err = readSegment(ctx, store, s, next, to, visit); err != nil {
			return next, err
		}
	}
	return next, nil
}

// search is the place of the first segment that ends after an offset.
func (c Catalog) search(offset int64) int {
	return sort.Search(len(c.Segments), func(i int) bool { return c.Segments[i].Next > offset })
}

// find is the segment with an offset, or else the first one after it.
func (c Catalog) find(offset int64) (Segment, bool) {
	at := c.search(offset)
	if at == len(c.Segments) {
		return Segment{}, false
	}
	return c.Segments[at], true
}

func readSegment(ctx context.Context, store Store, s Segment, from, to int64, visit func(*kgo.Record) error) (next int64, err error) {
	next = from
	file, err := open(ctx, store, s)
	if err != nil {
		return next, err
	}
	defer file.Close()
	var failed error // of visit, which is no damage
	sum := newDigest()
	err = readRecords(file, s.Size, s, from, func(r *kgo.Record) error {
		if r.Offset >= to {
			failed = errEnd
			return failed
		}
		sum.add(r)
		if failed = visit(r); failed == nil {
			failed = ctx.Err()
		}
		next = r.Offset + 1
		return failed
	})
	switch {
	case failed == errEnd:
		return next, nil
	case failed != nil:
		return next, failed
	case err != nil:
		return next, file.fault(s, err)
	case from == s.First && sum.sum() != s.Digest:
		return next, damaged(s, errDigest)
	}
	return next, nil
}

var (
	errEnd    = errors.New("the end that was asked for")
	errDigest = errors.New("the digest of its records is not the one of its sidecar")
)
