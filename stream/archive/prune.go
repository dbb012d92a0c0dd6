package archive

import (
	"cmp"
	"context"
	"slices"
)

// Size is how large a store is, in bytes.
func Size(ctx context.Context, store Store) (size int64, err error) {
	objects, err := store.List(ctx, root+"/")
	for _, o := range objects {
		size += o.Size
	}
	return size, err
}

// Excess are the oldest segments of the given topics without which the whole store is at most limit bytes large, or all of
// them but the last of each partition. Those of other topics are never among them.
func Excess(ctx context.Context, store Store, limit int64, topics ...string) ([]Segment, error) {
	size, err := Size(ctx, store)
	if err != nil || size <= limit {
		return nil, err
	}
	oldest, err := Oldest(ctx, store, topics...)
	if err != nil {
		return nil, err
	}
	for i, s := range oldest {
		if size <= limit {
			return oldest[:i], nil
		}
		size -= s.Size
	}
	return oldest, nil
}

// Oldest are the segments of the given topics, oldest first, but the last of each partition, which holds its position.
func Oldest(ctx context.Context, store Store, topics ...string) (oldest []Segment, err error) {
	partitions, err := Partitions(ctx, store)
	if err != nil {
		return nil, err
	}
	for _, p := range partitions {
		if !slices.Contains(topics, p.Topic) {
			continue
		}
		catalog, err := Load(ctx, store, p)
		if err != nil {
			return nil, err
		}
		if n := len(catalog.Segments); n > 1 {
			oldest = append(oldest, catalog.Segments[:n-1]...)
		}
	}
	slices.SortStableFunc(oldest, func(a, b Segment) int { return cmp.Compare(a.MaxTime, b.MaxTime) })
	return oldest, nil
}

// Prune deletes what Excess names, and returns what it deleted.
func Prune(ctx context.Context, store Store, limit int64, topics ...string) ([]Segment, error) {
	excess, err := Excess(ctx, store, limit, topics...)
	if err != nil {
		return nil, err
	}
	return Delete(ctx, store, excess)
}

// Delete deletes segments, of each partition the oldest first, and returns those that it deleted.
func Delete(ctx context.Context, store Store, segments []Segment) ([]Segment, error) {
	for i, s := range segments {
		// The sidecar goes first: a segment without its file would be damage.
		if err := cmp.Or(store.Delete(ctx, s.SidecarName()), store.Delete(ctx, s.Data)); err != nil {
			return segments[:i], err
		}
	}
	return segments, nil
}
