package stream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// goesOn is a member of which one partition goes on and the other does not, until the group was notified often enough.
type goesOn struct {
	at     int64
	enough func() bool
}

var errNotifiedEnough = errors.New("the group was told often enough")

func (*goesOn) Assigned(_ context.Context, partitions []int32) (map[int32]int64, error) {
	starts := map[int32]int64{}
	for _, p := range partitions {
		starts[p] = 0
	}
	return starts, nil
}
func (*goesOn) Records(context.Context, int32, []*kgo.Record) error { return nil }
func (*goesOn) Full() []int32                                       { return nil }
func (*goesOn) Lost(context.Context, []int32)                       {}

func (h *goesOn) Due(context.Context) error {
	if h.enough() {
		return errNotifiedEnough
	}
	return nil
}

func (h *goesOn) Done() map[int32]int64 {
	h.at++
	return map[int32]int64{0: 7, 1: h.at}
}

// A group is notified of an offset where it changed, and of all again where it refused: a partition without records would show a lag for ever.
func TestGroupsAreToldWhatChangedAndWhatTheyRefused(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "ticks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	var mu sync.Mutex
	var told [][]int32
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		cluster.KeepControl()
		request := req.(*kmsg.OffsetCommitRequest)
		partitions := map[int32]bool{}
		for _, topic := range request.Topics {
			for _, p := range topic.Partitions {
				partitions[p.Partition] = true
			}
		}
		told = append(told, slices.Sorted(maps.Keys(partitions)))
		if len(told) > 1 {
			return nil, nil, false // the broker answers
		}
		response := request.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, topic := range request.Topics {
			answered := kmsg.NewOffsetCommitResponseTopic()
			answered.Topic, answered.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				refused := kmsg.NewOffsetCommitResponseTopicPartition()
				refused.Partition, refused.ErrorCode = p.Partition, kerr.RebalanceInProgress.Code
				answered.Partitions = append(answered.Partitions, refused)
			}
			response.Topics = append(response.Topics, answered)
		}
		return response, nil, true
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := &goesOn{enough: func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) >= 3
	}}
	if err := RunGroup(ctx, Config{Brokers: cluster.ListenAddrs(), ClientID: "test"}, "group", "ticks", h); !errors.Is(err, errNotifiedEnough) {
		t.Fatalf("the member ended with %v after the group was told of %v", err, told)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := [][]int32{{0, 1}, {0, 1}, {1}}; !slices.EqualFunc(told, want, slices.Equal) {
		t.Errorf("the group was told of partitions %v, want %v", told, want)
	}
}
