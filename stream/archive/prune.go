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
	partitions, err := Partitions(ctx, store)
	if err != nil {
		return nil, err
	}
	var oldest []Segment
	for _, p := range partitions {
		if !slices.Contains(topics, p.Topic) {
			continue
		}
		catalog, err := Load(ctx, store, p)
		if err != nil {
			return nil, err
		}
		if n := len(catalog.Segments); n > 1 { // the last one holds the position of the partition
			oldest = append(oldest, catalog.Segments[:n-1]...)
		}
	}
	slices.SortStableFunc(oldest, func(a, b Segment) int { return cmp.Compare(a.MaxTime, b.MaxTime) })
	for i, s := range oldest {
		if size <= limit {
			return oldest[:i], nil
		}
		size -= s.Size
	}
	return oldest, nil
}

// Prune deletes what Excess names, and returns what it deleted.
func Prune(ctx context.Context, store Store, limit int64, topics ...string) ([]Segment, error) {
	excess, err := Excess(ctx, store, limit, topics...)
	if err != nil {
		return nil, err
	}
	for i, s := range excess {
		// The sidecar goes first: a segment without its file would be damage.
		if err := cmp.Or(store.Delete(ctx, s.SidecarName()), store.Delete(ctx, s.Data)); err != nil {
			return excess[:i], err
		}
	}
	return excess, nil
}
