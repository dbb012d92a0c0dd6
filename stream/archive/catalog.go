package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Catalog is what the archive has of one partition.
type Catalog struct {
	Partition Partition
	// Segments are in the order of their offsets, and do not overlap.
	Segments []Segment
	// Gaps are the spans of offsets between segments that no segment has: records that were given up.
	Gaps []Span
	// Orphans are files that no sidecar names: of an archiver that died, or works at this moment.
	Orphans []Object
	// Faults are the sidecars that cannot be used, by name.
	Faults []error
}

// Span is the offsets [From, Next).
type Span struct{ From, Next int64 }

// First is the offset of the first archived record, Next that after the last; both are 0 if there is none.
func (c Catalog) First() int64 {
	if len(c.Segments) == 0 {
		return 0
	}
	return c.Segments[0].First
}

// Next is the offset after the last archived record.
func (c Catalog) Next() int64 { return c.Last().Next }

// Last is the last segment, or the zero Segment.
func (c Catalog) Last() Segment {
	if len(c.Segments) == 0 {
		return Segment{}
	}
	return c.Segments[len(c.Segments)-1]
}

// Load lists what a store has of a partition. Damage of single sidecars is in Faults; the error is the store's.
func Load(ctx context.Context, store Store, of Partition) (Catalog, error) {
	return load(ctx, store, of, map[string]Segment{})
}

// load reads only the sidecars that are not known, and notes what it read: sidecars never change.
func load(ctx context.Context, store Store, of Partition, known map[string]Segment) (Catalog, error) {
	c := Catalog{Partition: of}
	objects, err := store.List(ctx, of.prefix())
	if err != nil {
		return c, err
	}
	sidecars, err := readSidecars(ctx, store, objects, known)
	if err != nil {
		return c, err
	}
	named, listed := map[string]bool{}, map[string]bool{}
	for _, sidecar := range sidecars {
		listed[sidecar.name] = true
		switch {
		case errors.Is(sidecar.err, ErrMissing): // deleted since it was listed
		case sidecar.err != nil:
			c.Faults = append(c.Faults, sidecar.err)
		default:
			known[sidecar.name] = sidecar.segment
			named[sidecar.segment.Data] = true
			c.add(sidecar.segment)
		}
	}
	maps.DeleteFunc(known, func(name string, _ Segment) bool { return !listed[name] })
	for _, o := range objects {
		if strings.HasSuffix(o.Name, dataSuffix) && !named[o.Name] {
			c.Orphans = append(c.Orphans, o)
		}
	}
	return c, nil
}

// sidecar is what was read of one.
type sidecar struct {
	name    string
	segment Segment
	err     error
}

// sidecarReads is how many sidecars are read at the same time: each is an answer of a bucket to wait for.
const sidecarReads = 16

// readSidecars returns the sidecars among objects, in their order. The error is that of a store that is not available.
func readSidecars(ctx context.Context, store Store, objects []Object, known map[string]Segment) ([]sidecar, error) {
	var list []sidecar
	for _, o := range objects {
		if strings.HasSuffix(o.Name, sidecarSuffix) {
			list = append(list, sidecar{name: o.Name})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sidecarReads)
	for i := range list {
		s := &list[i]
		var ok bool
		if s.segment, ok = known[s.name]; ok {
			continue
		}
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.segment, s.err = readSidecar(ctx, store, s.name)
			if errors.Is(s.err, ErrUnavailable) {
				return s.err
			}
			return ctx.Err()
		})
	}
	return list, group.Wait()
}

// add takes the next segment in the order of names.
func (c *Catalog) add(s Segment) {
	last := c.Last()
	switch {
	case len(c.Segments) > 0 && s.First < last.Next:
		c.Faults = append(c.Faults, fmt.Errorf("segment %s of %s begins at %d, inside the one before, which ends at %d", s.Data, s.Source(), s.First, last.Next))
		return
	case len(c.Segments) > 0 && s.First > last.Next:
		c.Gaps = append(c.Gaps, Span{last.Next, s.First})
		if s.Chain != chain("", s.Digest) {
			c.Faults = append(c.Faults, fmt.Errorf("segment %s of %s is chained to one that ends at %d, and the archive has none that does: a segment was removed",
				s.Data, s.Source(), s.First))
		}
	case len(c.Segments) > 0 && s.Chain != chain(last.Chain, s.Digest):
		c.Faults = append(c.Faults, fmt.Errorf("segment %s of %s is not chained to the one before it: one of the two is of another log", s.Data, s.Source()))
		return
	}
	c.Segments = append(c.Segments, s)
}

// Sweep removes the orphans that can no longer be committed, as the segment that they were an attempt at is.
func (c *Catalog) Sweep(ctx context.Context, store Store) error {
	var failed []error
	c.Orphans = slices.DeleteFunc(c.Orphans, func(o Object) bool {
		first, ok := c.Partition.firstOf(o.Name)
		if !ok || first >= c.Next() {
			return false
		}
		err := store.Delete(ctx, o.Name)
		failed = append(failed, err)
		return err == nil
	})
	return errors.Join(failed...)
}

// Partitions lists the partitions that a store has objects of, sorted by name.
func Partitions(ctx context.Context, store Store) ([]Partition, error) {
	objects, err := store.List(ctx, root+"/")
	if err != nil {
		return nil, err
	}
	var partitions []Partition
	for _, o := range objects {
		parts := strings.Split(path.Dir(o.Name), "/")
		if len(parts) != 4 {
			continue
		}
		number, err := strconv.ParseInt(parts[3], 10, 32)
		p := Partition{TopicID: parts[1], Topic: parts[2], Number: int32(number)}
		if err == nil && (len(partitions) == 0 || partitions[len(partitions)-1] != p) {
			partitions = append(partitions, p)
		}
	}
	return partitions, nil
}
