package roles

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

// retentionInterval is how often the embedded broker is cut back to its bounds, and the archive to its own.
const retentionInterval = 10 * time.Second

// archiveRole writes what the topic table has to the archive, and lets the embedded broker delete what is there.
func archiveRole(in *instance.Instance) supervise.Role {
	return supervise.Role{Name: "archive", Run: func(ctx context.Context) error {
		archiver, err := in.Archiver(ctx)
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return archiver.Run(ctx) })
		group.Go(func() error {
			client, err := in.Stream.NewClient()
			if err != nil {
				return err
			}
			defer client.Close()
			ticker := time.NewTicker(retentionInterval)
			defer ticker.Stop()
			for {
				if err := retain(ctx, in, client); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-ticker.C:
				}
			}
		})
		return group.Wait()
	}}
}

// keepsUp is how far those who read raw ticks may be behind for older ones to be deleted: they go on from a checkpoint before.
const keepsUp = time.Minute

// retain deletes what exceeds the bounds: from the broker only what is archived and was consumed by all who read it.
func retain(ctx context.Context, in *instance.Instance, client *kgo.Client) error {
	beyond := ""
	var consumed map[string]map[int32]int64
	consumedOnce := func() (_ map[string]map[int32]int64, err error) {
		if consumed == nil {
			consumed, err = in.Consumed(ctx, client)
		}
		return consumed, err
	}
	for _, topic := range schemas.Topics {
		if in.EmbeddedBroker() == nil || topic.Archive == schemas.ArchiveNever && topic.NearBytes == 0 {
			continue
		}
		waits, err := (&retention{in: in, client: client, topic: topic, bounds: in.Config.PartitionBounds(topic), allConsumed: consumedOnce}).cut(ctx)
		if err != nil {
			return err
		}
		beyond = cmp.Or(beyond, waits)
	}
	in.LogBeyond(beyond)
	if err := in.PruneArchive(ctx); err != nil { // it is tried again, and the log does not depend on it
		in.Log.Error("pruning the archive failed", "error", err)
	}
	return nil
}

// retention cuts one topic of the embedded log back.
type retention struct {
	in     *instance.Instance
	client *kgo.Client
	topic  schemas.Topic
	bounds config.PartitionBounds
	// allConsumed is what consumed is of all topics; it is asked for once for all of them.
	allConsumed func() (map[string]map[int32]int64, error)
	// starts are the first offsets that the broker has.
	starts map[int32]int64
	// consumed are the offsets below which all who read the topic have used it; recent those of records that stay for their
	// age, late those that were written since all should have read what is before.
	consumed     map[int32]int64
	recent, late map[int32]int64
}

// cut deletes what may be deleted. It returns what keeps it from that, if the log is far beyond its bound.
func (r *retention) cut(ctx context.Context) (beyond string, err error) {
	cuts := map[int32]int64{}
	for partition := range r.topic.Partitions {
		wanted, err := r.in.EmbeddedBroker().Excess(r.topic.Name, partition, r.bounds.Near)
		if err != nil {
			return "", err
		}
		if wanted == 0 {
			continue
		}
		if err := r.look(ctx); err != nil {
			return "", err
		}
		upTo := int64(0)
		if r.topic.Archive == schemas.ArchiveNever {
			upTo = r.used(partition)
		} else {
			waits := ""
			if upTo, waits, err = r.archived(ctx, partition); err != nil {
				return "", err
			}
			beyond = cmp.Or(beyond, waits)
		}
		if upTo = min(upTo, wanted); upTo <= r.starts[partition] {
			continue // gone already, or never there
		}
		cuts[partition] = upTo
	}
	if len(cuts) == 0 {
		return beyond, nil
	}
	return beyond, r.in.DeleteBefore(ctx, r.client, r.topic.Name, cuts)
}

// used is the offset below which records of a partition that no archive has may be deleted before the broker's own bound does
// it: those that are old, if all who read the topic keep up.
func (r *retention) used(partition int32) int64 {
	if r.consumed[partition] < r.late[partition] {
		return 0
	}
	return min(r.consumed[partition], r.recent[partition])
}

// archived is the offset below which records of a partition may be deleted that an archive is to have, and what is waited for
// if it is far beyond its bound. At the bound that it has without an archive its oldest records are given up: to
// end for want of room would lose what comes as well.
func (r *retention) archived(ctx context.Context, partition int32) (upTo int64, beyond string, err error) {
	archived, err := r.in.ArchivedUpTo(ctx, r.topic.Name, partition)
	if err != nil {
		return 0, "", err
	}
	held := max(archived, r.starts[partition]) // what was given up is waited for no more
	if at, ok := r.consumed[partition]; ok {
		held = min(held, max(at, r.starts[partition]))
	}
	upTo = held
	if at, ok := r.recent[partition]; ok {
		upTo = min(upTo, at)
	}
	report, most := max(r.bounds.Most/2, 2*r.bounds.Near), max(r.bounds.Most, 3*r.bounds.Near)
	far, err := r.in.EmbeddedBroker().Excess(r.topic.Name, partition, report)
	if err != nil || far <= upTo {
		return upTo, "", err
	}
	if far <= held { // what is only recent gives way
		return far, "", nil
	}
	r.in.Log.Warn("the log is far beyond its bound: records are not archived or not consumed yet", "topic", r.topic.Name, "partition", partition,
		"wanted", far, "archived", archived, "consumed", r.consumed[partition])
	beyond = fmt.Sprintf("%s/%d is larger than %d bytes: it is archived up to offset %d and consumed up to %d; beyond %d bytes its oldest records are given up",
		r.topic.Name, partition, report, archived, r.consumed[partition], most)
	worst, err := r.in.EmbeddedBroker().Excess(r.topic.Name, partition, most)
	if err != nil || worst <= held {
		return held, beyond, err
	}
	// What was not archived is missing in the archive from here on: the archiver finds the missing offsets, and writes the gap.
	r.in.Log.Error("records of the log are given up", "topic", r.topic.Name, "partition", partition, "up_to", far,
		"archived", archived, "consumed", r.consumed[partition])
	return far, beyond, nil
}

// look asks once for what counts for all partitions.
func (r *retention) look(ctx context.Context) (err error) {
	if r.starts != nil {
		return nil
	}
	starts, _, err := stream.Bounds(ctx, r.client, r.topic.Name)
	if err != nil {
		return err
	}
	r.starts = starts[r.topic.Name]
	consumed, err := r.allConsumed()
	if r.consumed = consumed[r.topic.Name]; err != nil || r.topic.Near == 0 {
		return err
	}
	if r.recent, err = r.in.OffsetsBefore(ctx, r.client, r.topic.Name, r.topic.Near); err == nil && r.topic.Archive == schemas.ArchiveNever {
		r.late, err = r.in.OffsetsBefore(ctx, r.client, r.topic.Name, keepsUp)
	}
	return err
}
