package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/marketlog/marketlog/schemas/events"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
)

// descriptorSet is the file of all schemas, by which values are read without this program.
const descriptorSet = "events.binpb"

// openArchive makes what left the brokers readable, if the log is archived.
func (in *Instance) openArchive() error {
	if !in.Config.Archive.Enabled {
		return nil
	}
	store, err := archive.NewDir(in.Config.ArchiveDir())
	if err != nil {
		return err
	}
	in.archive = store
	in.Stream.Archive = archive.NewLog(store, in.Stream, in.Config.ArchiveRules())
	return nil
}

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
		return nil, err
	}
	return &archive.Archiver{Log: in.Stream, Store: in.archive, Topics: in.Config.ArchiveRules(), Schema: digest, Logger: in.Log}, nil
}

// Consumed is the offset of each partition of a topic below which every consumer group of the roles has had its effect;
// a partition that none has committed is missing.
func (in *Instance) Consumed(ctx context.Context, topic string) (map[int32]int64, error) {
	client, err := in.Stream.NewClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	groups, err := admin.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the consumer groups: %w", err)
	}
	own := groups.Groups()
	consumed := map[int32]int64{}
	for _, group := range own {
		if !isOwnGroup(group) {
			continue
		}
		offsets, err := admin.FetchOffsetsForTopics(ctx, group, topic)
		if err != nil {
			return nil, fmt.Errorf("reading the offsets of group %s: %w", group, err)
		}
		for _, o := range offsets.Offsets()[topic] {
			if o.At < 0 {
				continue // the group does not read this topic
			}
			if at, ok := consumed[o.Partition]; !ok || o.At < at {
				consumed[o.Partition] = o.At
			}
		}
	}
	return consumed, nil
}

// DeleteBefore deletes the records of a partition below an offset from the broker.
func (in *Instance) DeleteBefore(ctx context.Context, topic string, partition int32, offset int64) error {
	client, err := in.Stream.NewClient()
	if err != nil {
		return err
	}
	defer client.Close()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, partition, offset, -1)
	answers, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("deleting %s/%d up to %d: %w", topic, partition, offset, err)
	}
	return nil
}

// ArchivedUpTo is the offset behind the last archived record of a partition.
func (in *Instance) ArchivedUpTo(ctx context.Context, topic string, partition int32) (int64, error) {
	ids, err := stream.TopicIDs(ctx, in.Stream, topic)
	if err != nil {
		return 0, err
	}
	catalog, err := archive.Load(ctx, in.archive, archive.Partition{Topic: topic, TopicID: ids[topic], Number: partition})
	return catalog.Next(), err
}

// PruneArchive deletes the oldest ticks and prices beyond the archive's bound.
func (in *Instance) PruneArchive(ctx context.Context, topics ...string) error {
	deleted, err := archive.Prune(ctx, in.archive, in.Config.Archive.Bytes, topics...)
	if n := len(deleted); n > 0 {
		in.Log.Info("the archive reached its bound: its oldest segments were deleted", "segments", n,
			"up_to", time.UnixMilli(deleted[n-1].MaxTime).UTC(), "bound_bytes", in.Config.Archive.Bytes)
	}
	return err
}
