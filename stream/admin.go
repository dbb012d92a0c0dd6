package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/marketlog/marketlog/schemas"
)

// TopicConfigs gives the settings that a topic is created with.
type TopicConfigs func(schemas.Topic) map[string]string

// ClusterTopicConfigs are the settings of a topic on a Kafka cluster. Age is by the records' timestamps, which writers
// set to their log time.
func ClusterTopicConfigs(t schemas.Topic) map[string]string {
	configs := map[string]string{
		"cleanup.policy":         "delete",
		"retention.ms":           "-1",
		"retention.bytes":        "-1",
		"message.timestamp.type": "CreateTime",
		// The producers' own compression is kept, so that the broker never encodes again.
		"compression.type": "producer",
	}
	if t.Retention > 0 {
		configs["retention.ms"] = strconv.FormatInt(t.Retention.Milliseconds(), 10)
	}
	if t.Compacted {
		configs["cleanup.policy"] = "compact"
	}
	return configs
}

// PartitionCountError means that a topic has another number of partitions than the topic table. It cannot be mended in
// place: a key would find its older records on another partition.
type PartitionCountError struct {
	Topic       string
	Has, Wanted int32
}

func (e *PartitionCountError) Error() string {
	return fmt.Sprintf("topic %s has %d partitions, the topic table wants %d: records of one key would lie on two partitions; "+
		"use a fresh cluster (or data directory), or copy the topic into one with %d partitions under this name",
		e.Topic, e.Has, e.Wanted, e.Wanted)
}

// MissingTopicError means that a topic of the table does not exist.
type MissingTopicError struct{ Topic string }

func (e *MissingTopicError) Error() string {
	return fmt.Sprintf("topic %s does not exist; `marketlog migrate` creates it", e.Topic)
}

// TopicConfigError means that a topic has another setting than the one it would be created with.
type TopicConfigError struct{ Topic, Key, Has, Wanted string }

func (e *TopicConfigError) Error() string {
	return fmt.Sprintf("topic %s has %s=%s, the topic table has %s", e.Topic, e.Key, e.Has, e.Wanted)
}

// CreateTopics creates the missing topics of table and refuses those with another number of partitions, naming all of
// them at once. Several processes may do it at the same time. A replication factor of -1 is the broker's default.
func CreateTopics(ctx context.Context, client *kgo.Client, table []schemas.Topic, replication int16, configs TopicConfigs) error {
	existing, err := partitionCountsWithRetry(ctx, client, table)
	if err != nil {
		return err
	}
	for _, t := range table {
		if _, ok := existing[t.Name]; ok {
			continue
		}
		settings := make(map[string]*string)
		for key, value := range configs(t) {
			settings[key] = &value
		}
		_, err := kadm.NewClient(client).CreateTopic(ctx, t.Partitions, replication, settings, t.Name)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) { // another process may have been faster
			return fmt.Errorf("creating topic %s: %w", t.Name, err)
		}
	}
	if existing, err = awaitTopics(ctx, client, table); err != nil {
		return err
	}
	return errors.Join(countFaults(table, existing)...)
}

const (
	// startPatience is how long a start asks a broker that fails: one that is being restarted ends connections.
	startPatience = 30 * time.Second
	startPause    = 250 * time.Millisecond
)

// insistentCounts are partitionCounts, asked for again while they cannot be had.
func partitionCountsWithRetry(ctx context.Context, client *kgo.Client, table []schemas.Topic) (map[string]int32, error) {
	for deadline := time.Now().Add(startPatience); ; {
		existing, err := partitionCounts(ctx, client, table)
		if err == nil || time.Now().After(deadline) {
			return existing, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(startPause):
		}
	}
}

// awaitTopics waits until the broker knows all topics: on a cluster the controller makes them, and brokers learn of it
// some moments later.
func awaitTopics(ctx context.Context, client *kgo.Client, table []schemas.Topic) (map[string]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		existing, err := partitionCountsWithRetry(ctx, client, table)
		if err != nil || len(existing) == len(table) {
			return existing, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %d created topics to appear: %w", len(table)-len(existing), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// SetTopicConfigs gives existing topics the settings that they would be created with today.
func SetTopicConfigs(ctx context.Context, client *kgo.Client, table []schemas.Topic, configs TopicConfigs) error {
	faults, err := configFaults(ctx, client, table, configs)
	if err != nil {
		return err
	}
	for _, fault := range faults {
		change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: fault.Key, Value: &fault.Wanted}}
		answers, err := kadm.NewClient(client).AlterTopicConfigs(ctx, change, fault.Topic)
		if err == nil {
			_, err = answers.On(fault.Topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
		}
		if err != nil {
			return fmt.Errorf("setting %s of topic %s: %w", fault.Key, fault.Topic, err)
		}
	}
	return nil
}

// CheckTopics compares a broker with table. Its faults are of the types PartitionCountError, MissingTopicError and
// TopicConfigError; the error means that the broker could not be asked.
func CheckTopics(ctx context.Context, client *kgo.Client, table []schemas.Topic, configs TopicConfigs) (faults []error, err error) {
	existing, err := partitionCounts(ctx, client, table)
	if err != nil {
		return nil, err
	}
	present := slices.DeleteFunc(slices.Clone(table), func(t schemas.Topic) bool {
		_, ok := existing[t.Name]
		if !ok {
			faults = append(faults, &MissingTopicError{t.Name})
		}
		return !ok
	})
	faults = append(faults, countFaults(table, existing)...)
	settings, err := configFaults(ctx, client, present, configs)
	for _, fault := range settings {
		faults = append(faults, fault)
	}
	return faults, err
}

func countFaults(table []schemas.Topic, existing map[string]int32) (faults []error) {
	for _, t := range table {
		if has, ok := existing[t.Name]; ok && has != t.Partitions {
			faults = append(faults, &PartitionCountError{Topic: t.Name, Has: has, Wanted: t.Partitions})
		}
	}
	return faults
}

// partitionCounts asks the broker itself: kadm would answer from memory, where a topic that was just created is
// missing still.
func partitionCounts(ctx context.Context, client *kgo.Client, table []schemas.Topic) (map[string]int32, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, t := range table {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &t.Name
		request.Topics = append(request.Topics, topic)
	}
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	counts := make(map[string]int32)
	for _, t := range answer.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
		case err != nil:
			return nil, fmt.Errorf("listing topic %s: %w", *t.Topic, err)
		default:
			counts[*t.Topic] = int32(len(t.Partitions))
		}
	}
	return counts, nil
}

func configFaults(ctx context.Context, client *kgo.Client, table []schemas.Topic, configs TopicConfigs) ([]*TopicConfigError, error) {
	if len(table) == 0 {
		return nil, nil // asked about no topic, a broker answers about all
	}
	names := make([]string, len(table))
	for i, t := range table {
		names[i] = t.Name
	}
	described, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("reading topic settings: %w", err)
	}
	var faults []*TopicConfigError
	for _, t := range table {
		answer, err := described.On(t.Name, nil)
		if err == nil {
			err = answer.Err
		}
		if err != nil {
			return nil, fmt.Errorf("reading the settings of topic %s: %w", t.Name, err)
		}
		wanted := configs(t)
		for _, key := range slices.Sorted(maps.Keys(wanted)) {
			has := ""
			for _, c := range answer.Configs {
				if c.Key == key {
					has = c.MaybeValue()
				}
			}
			if has != wanted[key] {
				faults = append(faults, &TopicConfigError{Topic: t.Name, Key: key, Has: has, Wanted: wanted[key]})
			}
		}
	}
	return faults, nil
}
