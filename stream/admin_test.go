package stream

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func testClient(t *testing.T, addr string) *kgo.Client {
	t.Helper()
	client, err := Config{Brokers: []string{addr}, ClientID: "test"}.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestTopicsAreCreatedByTheTable(t *testing.T) {
	streamtest.Backends(t, func(t *testing.T, addr string) {
		table := []schemas.Topic{
			{Name: streamtest.Name(t, "ticks"), Partitions: 3, Retention: 24 * time.Hour},
			{Name: streamtest.Name(t, "keys"), Partitions: 1, Compacted: true},
		}
		client := testClient(t, addr)
		before, err := CheckTopics(t.Context(), client, table, ClusterTopicConfigs)
		if missing := (*MissingTopicError)(nil); err != nil || len(before) != 2 || !errors.As(before[0], &missing) || missing.Topic != table[0].Name {
			t.Fatalf("before: got %v, %v, want both missing", before, err)
		}
		// Several processes start at the same time.
		var starting sync.WaitGroup
		for range 3 {
			starting.Go(func() {
				if err := CreateTopics(t.Context(), testClient(t, addr), table, -1, ClusterTopicConfigs); err != nil {
					t.Error(err)
				}
			})
		}
		starting.Wait()
		if faults, err := CheckTopics(t.Context(), client, table, ClusterTopicConfigs); err != nil || len(faults) > 0 {
			t.Errorf("after: got %v, %v, want no faults", faults, err)
		}
	})
}

func TestChangedPartitionCountIsRefused(t *testing.T) {
	streamtest.Backends(t, func(t *testing.T, addr string) {
		table := []schemas.Topic{
			{Name: streamtest.Name(t, "a"), Partitions: 2}, {Name: streamtest.Name(t, "b"), Partitions: 2}, {Name: streamtest.Name(t, "c"), Partitions: 2},
		}
		client := testClient(t, addr)
		if err := CreateTopics(t.Context(), client, table, -1, ClusterTopicConfigs); err != nil {
			t.Fatal(err)
		}
		table[0].Partitions, table[2].Partitions = 4, 1
		err := CreateTopics(t.Context(), client, table, -1, ClusterTopicConfigs)
		var count *PartitionCountError
		if !errors.As(err, &count) || *count != (PartitionCountError{Topic: table[0].Name, Has: 2, Wanted: 4}) {
			t.Fatalf("got %v, want the count of %s", err, table[0].Name)
		}
		if !strings.Contains(err.Error(), table[2].Name+" has 2 partitions, the topic table wants 1") || strings.Contains(err.Error(), table[1].Name+" has") {
			t.Errorf("got %v, want %s named too and not %s", err, table[2].Name, table[1].Name)
		}
	})
}

func TestSettingsAreBroughtUpToDate(t *testing.T) {
	streamtest.Backends(t, func(t *testing.T, addr string) {
		table := []schemas.Topic{{Name: streamtest.Name(t, "ticks"), Partitions: 1, Retention: time.Hour}}
		client := testClient(t, addr)
		if err := CreateTopics(t.Context(), client, table, -1, ClusterTopicConfigs); err != nil {
			t.Fatal(err)
		}
		today := func(topic schemas.Topic) map[string]string {
			configs := maps.Clone(ClusterTopicConfigs(topic))
			configs["retention.bytes"] = "1048576"
			return configs
		}
		faults, err := CheckTopics(t.Context(), client, table, today)
		want := TopicConfigError{Topic: table[0].Name, Key: "retention.bytes", Has: "-1", Wanted: "1048576"}
		if config := (*TopicConfigError)(nil); err != nil || len(faults) != 1 || !errors.As(faults[0], &config) || *config != want {
			t.Fatalf("before: got %v, %v, want %v", faults, err, &want)
		}
		if err := SetTopicConfigs(t.Context(), client, table, today); err != nil {
			t.Fatal(err)
		}
		// The controller has acknowledged them; a broker lists them as soon as it has read its metadata so far.
		for deadline := time.Now().Add(time.Minute); ; {
			faults, err := CheckTopics(t.Context(), client, table, today)
			if err == nil && len(faults) == 0 {
				return
			}
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("after: got %v, %v, want no faults", faults, err)
			}
		}
	})
}
