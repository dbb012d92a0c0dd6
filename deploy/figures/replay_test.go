package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
)

const (
	replayRounds = 3
	// replayFed is how long the simulator fills the log that is replayed.
	replayFed = 2 * time.Minute
)

// BenchmarkReplay asks how many records of the log a second `marketlog replay --verify` folds into
// prices and candles, writes beside the live rows and compares with them. The limit is a reader that
// only polls the same records.
func BenchmarkReplay(b *testing.B) {
	binary := build(b)
	in := newInstance(b, binary)
	began := time.Now()
	p := in.start(b, "sim")
	in.await(b, p, "/api/v1/prices/BTC", began)
	pause(b.Context(), time.Now().Add(replayFed))
	p.stop()
	p = in.start(b, "none")
	in.await(b, p, "/readyz", time.Now())
	for b.Loop() {
		var rates, bare, ratio []float64
		rows, records := int64(0), int64(0)
		for range replayRounds {
			var took time.Duration
			records, took = readAll(b, in.kafka, schemas.TopicTicks)
			bare = append(bare, float64(records)/took.Seconds())
			result := replay(b, in)
			rows = result.Compared
			rates = append(rates, float64(records)/result.Seconds)
			ratio = append(ratio, rates[len(rates)-1]/bare[len(bare)-1])
		}
		b.ReportMetric(middle(rates), "records/s")
		b.ReportMetric(middle(bare), "bare-records/s")
		b.ReportMetric(middle(ratio), "of-bare")
		b.ReportMetric(float64(records), "records")
		b.ReportMetric(float64(rows), "rows-compared")
	}
	p.stop()
}

type replayed struct {
	Compared, Differing int64
	Seconds             float64
}

func replay(b *testing.B, in *instance) (last replayed) {
	b.Helper()
	command := exec.CommandContext(b.Context(), in.binary, "replay", "--view", "all", "--verify", "-o", "json", "--data-dir", in.dir)
	command.Env = append(command.Environ(), in.environment...)
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		b.Fatalf("replaying: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Compared == 0 || last.Differing > 0 {
		b.Fatalf("the replay ends with %s: %v", lines[len(lines)-1], err)
	}
	return last
}

// readAll reads a topic from its beginning to its present end.
func readAll(b *testing.B, broker, topic string) (records int64, took time.Duration) {
	b.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(b.Context(), topic)
	if err != nil {
		b.Fatal(err)
	}
	ends, err := admin.ListEndOffsets(b.Context(), topic)
	if err != nil {
		b.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(topic, end.Partition)
		left += end.Offset - start.Offset
	})
	began := time.Now()
	for records < left {
		fetches := client.PollFetches(b.Context())
		if err := fetches.Err(); err != nil {
			b.Fatalf("reading %s: %v", topic, err)
		}
		records += int64(fetches.NumRecords())
	}
	return records, time.Since(began)
}
