package operations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/archive"
)

// ArchiveStatus is what an archive has of one partition.
type ArchiveStatus struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
	Segments  int    `json:"segments"`
	// First is the offset of the first record, Next that after the last.
	First int64 `json:"first"`
	Next  int64 `json:"next"`
	// Bytes is the size of the segments' files.
	Bytes int64 `json:"bytes"`
	// Gaps are spans of offsets between the segments that were given up or removed.
	Gaps []archive.Span `json:"holes,omitempty"`
	// Faults name what is damaged.
	Faults []string `json:"faults,omitempty"`
}

// InspectArchive hands what the archive in a store has of each partition to visit, sorted by name. Sidecars are always
// checked; with deep also every file, whole. Nothing is changed, and an archiver may run meanwhile. The error is of a store that
// is not available, or of visit.
func InspectArchive(ctx context.Context, store archive.Store, deep bool, visit func(ArchiveStatus) error) error {
	partitions, err := archive.Partitions(ctx, store)
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	for _, p := range partitions {
		catalog, err := archive.Load(ctx, store, p)
		if err != nil {
			return fmt.Errorf("reading the archive of %s: %w", p, err)
		}
		status := ArchiveStatus{
			Topic: p.Topic, TopicID: p.TopicID, Partition: p.Number, Segments: len(catalog.Segments),
			First: catalog.First(), Next: catalog.Next(), Gaps: catalog.Gaps,
		}
		for _, fault := range catalog.Faults {
			status.Faults = append(status.Faults, fault.Error())
		}
		for _, s := range catalog.Segments {
			status.Bytes += s.Size
			check := archive.Present
			if deep {
				check = archive.Verify
			}
			if err := check(ctx, store, s); ctx.Err() != nil {
				return ctx.Err()
			} else if errors.Is(err, archive.ErrUnavailable) {
				return fmt.Errorf("reading the archive of %s: %w", p, err)
			} else if err != nil {
				status.Faults = append(status.Faults, err.Error())
			}
		}
		if err := visit(status); err != nil {
			return err
		}
	}
	return nil
}

// PrunedTopic is what was deleted of a topic of an archive, or would be.
type PrunedTopic struct {
	Topic    string `json:"topic"`
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	// UpTo is the time of the newest record among them.
	UpTo time.Time `json:"upTo"`
}

// PruneArchive deletes the oldest ticks and prices of the archive in a store until it is at most limit bytes large, or with
// dryRun only says what it would delete. An archiver may run meanwhile.
func PruneArchive(ctx context.Context, store archive.Store, limit int64, dryRun bool) ([]PrunedTopic, error) {
	act := archive.Prune
	if dryRun {
		act = archive.Excess
	}
	segments, err := act(ctx, store, limit, schemas.BudgetTopics()...)
	pruned := map[string]*PrunedTopic{}
	for _, s := range segments {
		of := pruned[s.Topic]
		if of == nil {
			of = &PrunedTopic{Topic: s.Topic}
			pruned[s.Topic] = of
		}
		of.Segments++
		of.Bytes += s.Size
		if at := time.UnixMilli(s.MaxTime).UTC(); at.After(of.UpTo) {
			of.UpTo = at
		}
	}
	var list []PrunedTopic
	for _, topic := range slices.Sorted(maps.Keys(pruned)) {
		list = append(list, *pruned[topic])
	}
	return list, err
}
