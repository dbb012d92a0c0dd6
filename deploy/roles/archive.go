package roles

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/schemas"
)

// retentionInterval is how often the embedded broker is cut back to its bounds, and the archive to its own.
const retentionInterval = 30 * time.Second

// archiveRole writes what the topic table says to the archive, and lets the embedded broker delete what is there.
func archiveRole(in *instance.Instance) supervise.Role {
	return supervise.Role{Name: "archive", Run: func(ctx context.Context) error {
		archiver, err := in.Archiver(ctx)
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return archiver.Run(ctx) })
		group.Go(func() error {
			ticker := time.NewTicker(retentionInterval)
			defer ticker.Stop()
			for {
				if err := retain(ctx, in); err != nil {
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

// retain deletes what exceeds the bounds: from the broker only what is archived and was consumed by all who read it.
func retain(ctx context.Context, in *instance.Instance) error {
	var budget []string
	for _, topic := range schemas.Topics {
		if topic.Archive == schemas.ArchiveBudget {
			budget = append(budget, topic.Name)
		}
		if broker := in.EmbeddedBroker(); broker == nil || topic.Archive == schemas.ArchiveNever {
			continue
		}
		if err := retainTopic(ctx, in, topic); err != nil {
			return err
		}
	}
	return in.PruneArchive(ctx, budget...)
}

func retainTopic(ctx context.Context, in *instance.Instance, topic schemas.Topic) error {
	var consumed map[int32]int64
	for partition := range topic.Partitions {
		wanted, err := in.EmbeddedBroker().Excess(topic.Name, partition, in.Config.PartitionLimit(topic))
		if err != nil {
			return err
		}
		if wanted == 0 {
			continue
		}
		if consumed == nil {
			if consumed, err = in.Consumed(ctx, topic.Name); err != nil {
				return err
			}
		}
		archived, err := in.ArchivedUpTo(ctx, topic.Name, partition)
		if err != nil {
			return err
		}
		upTo := min(wanted, archived)
		if at, ok := consumed[partition]; ok {
			upTo = min(upTo, at)
		}
		if far, err := in.EmbeddedBroker().Excess(topic.Name, partition, 2*in.Config.PartitionLimit(topic)); err != nil {
			return err
		} else if upTo < far {
			in.Log.Warn("the log is twice as large as its bound: records are not archived or not consumed yet", "topic", topic.Name, "partition", partition,
				"wanted", wanted, "archived", archived, "consumed", consumed[partition])
		}
		if upTo == 0 {
			continue
		}
		if err := in.DeleteBefore(ctx, topic.Name, partition, upTo); err != nil {
			return err
		}
	}
	return nil
}
