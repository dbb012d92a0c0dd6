package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/schemas/events"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/faults"
)

// descriptorSet is the file of all schemas, by which values are read without this program.
const descriptorSet = "events.binpb"

// openArchive makes the archive writable, if the log is archived.
func (in *Instance) openArchive() (err error) {
	if in.Archived, err = in.Config.Archived(in.Stream); in.Archived == nil {
		return err
	}
	in.Stream.Archive = in.Archived
	if in.archive, err = in.Config.ArchiveStore(); err != nil {
		return err
	}
	store, ok := in.archive.(*archive.Dir)
	if !ok { // what was sent to a bucket in part is not there
		return nil
	}
	// Of a cluster, other processes may be writing at this moment.
	before := time.Now()
	if len(in.Config.Kafka.Brokers) > 0 {
		before = before.Add(-unfinishedFor)
	}
	if err := store.Sweep(before); err != nil {
		in.Log.Warn("sweeping the archive", "error", err)
	}
	return nil
}

// unfinishedFor is how long a file of a cluster's archive may be written by another process.
const unfinishedFor = time.Hour

// Archiver writes the log to the archive; nil where it is not archived. It is run by one goroutine.
func (in *Instance) Archiver(ctx context.Context) (*archive.Archiver, error) {
	if in.archive == nil {
		return nil, nil
	}
	descriptors, err := events.Files.ReadFile(descriptorSet)
	if err != nil {
		return nil, err
	}
	digest, err := archive.WriteSchema(ctx, in.archive, descriptors)
	if err != nil {
		in.archiving.Failed(err)
		return nil, err
	}
	in.archiving.works()
	return &archive.Archiver{
		Log: in.Stream, Store: in.archive, Topics: in.Config.ArchiveRules(), Schema: digest, Logger: in.Log, Observer: in.archiving,
	}, nil
}

// Consumed is the offset of each partition, by topic, below which every consumer group of the roles has had its effect; a
// partition that none has committed is missing.
func (in *Instance) Consumed(ctx context.Context, client *kgo.Client) (map[string]map[int32]int64, error) {
	admin := kadm.NewClient(client)
	groups, err := admin.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the consumer groups: %w", err)
	}
	consumed := map[string]map[int32]int64{}
	for _, group := range groups.Groups() {
		if !isOwnGroup(group) {
			continue
		}
		offsets, err := admin.FetchOffsets(ctx, group)
		if err != nil {
			return nil, fmt.Errorf("reading the offsets of group %s: %w", group, err)
		}
		offsets.Each(func(o kadm.OffsetResponse) {
			if o.At < 0 {
				return // the group does not read this topic
			}
			if consumed[o.Topic] == nil {
				consumed[o.Topic] = map[int32]int64{}
			}
			if at, ok := consumed[o.Topic][o.Partition]; !ok || o.At < at {
				consumed[o.Topic][o.Partition] = o.At
			}
		})
	}
	return consumed, nil
}

// DeleteBefore deletes the records of partitions of a topic below offsets from the broker.
func (in *Instance) DeleteBefore(ctx context.Context, client *kgo.Client, topic string, upTo map[int32]int64) error {
	var offsets kadm.Offsets
	for partition, offset := range upTo {
		offsets.AddOffset(topic, partition, offset, -1)
	}
	answers, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("deleting %s up to %v: %w", topic, upTo, err)
	}
	faults.Hit("archive.deleted")
	return nil
}

// OffsetsBefore are the offsets of a topic's partitions whose records are of the given last time, by the instance's clock.
func (in *Instance) OffsetsBefore(ctx context.Context, client *kgo.Client, topic string, last time.Duration) (map[int32]int64, error) {
	offsets, err := stream.OffsetsFrom(ctx, client, in.Clock.Now().Add(-last), topic)
	return offsets[topic], err
}

// ArchivedUpTo is the offset after the last archived record of a partition. Of a bucket it is what this process, whose log it is,
// saw committed: to list it each time is a load for its server, and it may be away.
func (in *Instance) ArchivedUpTo(ctx context.Context, topic string, partition int32) (int64, error) {
	if in.Config.ArchiveInBucket() {
		return in.archiving.upTo(topic, partition), nil
	}
	catalog, err := in.Archived.Catalog(ctx, topic, partition)
	return catalog.Next(), err
}

// LogBeyond notes by what the embedded log exceeds its bound, for those who ask whether the instance is ready; empty: it does not.
func (in *Instance) LogBeyond(text string) { in.archiving.setBeyond(text) }

// PruneArchive deletes the oldest ticks and prices beyond the archive's bound, and what its disk lacks: before ingest is
// paused for want of room, the archive gives way.
func (in *Instance) PruneArchive(ctx context.Context) error {
	lacks := int64(0)
	if !in.Config.ArchiveInBucket() {
		var err error
		lacks, err = in.Disk.Lacks(in.Config.ArchiveDir())
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing is archived yet
		}
		if err != nil {
			return err
		}
	}
	if known := in.archiving.size(); lacks == 0 && known < in.Config.ArchiveBound()/10*9 {
		return nil // a large archive takes a while to be listed
	}
	size, err := archive.Size(ctx, in.archive)
	if err != nil {
		return err
	}
	limit := min(in.Config.ArchiveBound(), size-lacks)
	if size <= limit {
		return nil
	}
	deleted, err := archive.Prune(ctx, in.archive, limit, schemas.BudgetTopics()...)
	in.archiving.pruned(deleted)
	if n := len(deleted); n > 0 {
		in.Log.Info("the archive reached its bound: its oldest segments were deleted", "segments", n,
			"up_to", time.UnixMilli(deleted[n-1].MaxTime).UTC(), "bound_bytes", in.Config.ArchiveBound(), "disk_lacks_bytes", lacks)
	}
	return err
}
