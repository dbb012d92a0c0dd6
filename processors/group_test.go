package processors_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// memberOf names the broker in the environment of a process that is a member and no test.
const memberOf = "MARKETLOG_TEST_MEMBER_OF"

// rawPartitions is how many the topic table has; a scenario fills two of them, clocks go to all.
const rawPartitions = 8

// Two members share the partitions. One is killed while it writes, its successor leaves in good order,
// the other is killed too: after the duplicates are dropped by their marks, the outputs on the broker are
// those of folds that nobody ever stopped.
func TestKilledMembersLeaveTheLogWhole(t *testing.T) {
	if addr := os.Getenv(memberOf); addr != "" {
		beMember(t, addr)
		return
	}
	t.Run(streamtest.TierEmbedded, func(t *testing.T) { testKilledMembers(t, streamtest.Kfake(t)) })
	t.Run(streamtest.TierKafka, func(t *testing.T) { testKilledMembers(t, streamtest.StartKafka(t).Addr()) })
}

func testKilledMembers(t *testing.T, addr string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cfg := stream.Config{Brokers: []string{addr}, ClientID: "test"}
	b := openBroker(ctx, t, cfg)
	raw := rawLog(calmScenario(1800))
	resolved := map[int32]memoryLog{}
	total := 0
	for p, input := range raw {
		resolved[p] = fold(t, resolveUnit(), input)
		total += len(input)
	}
	t.Logf("%d raw records", total)

	feed := func(from, to float64) {
		for _, input := range raw {
			b.write(ctx, t, input[int(from*float64(len(input))):int(to*float64(len(input)))])
		}
	}
	// Half an hour of log time keeps the members busy for some seconds; each is killed while the
	// outputs grow, and between two kills the groups have settled.
	first, second := startMember(t, addr), startMember(t, addr)
	b.settled(ctx, t, first, second)
	grown := b.growth(ctx, t, schemas.TopicCandles)
	feed(0, 0.5)
	grown()
	first.kill()
	third := startMember(t, addr)
	b.settled(ctx, t, second, third)
	grown = b.growth(ctx, t, schemas.TopicCandles)
	feed(0.5, 0.7)
	grown()
	third.leave(t)
	b.settled(ctx, t, second)
	grown = b.growth(ctx, t, schemas.TopicPrices)
	feed(0.7, 0.9)
	grown()
	second.kill()
	startMember(t, addr)
	feed(0.9, 1)

	// ticks.v1: what the folds of the raw partitions write is known.
	ticks := memoryLog{}
	for partition := range int32(rawPartitions) {
		at := place{schemas.TopicTicks, partition}
		for p := range raw {
			want := resolved[p][at]
			b.awaitMark(ctx, t, at, p, decode(want[len(want)-1]).GetMark())
		}
		ticks[at] = b.read(ctx, t, at)
		for p := range raw {
			wantSameRecords(t, "resolve", at, readers(from(ticks[at], p)), resolved[p][at], false)
		}
	}
	// prices.v1 and candles.v1: what a fold of ticks.v1, as it lies there with its duplicates, writes in one go.
	duplicates := 0
	for partition := range int32(rawPartitions) {
		input := ticks[place{schemas.TopicTicks, partition}]
		duplicates += len(input) - len(readers(input))
		want := fold(t, pricesUnit(rawPartitions), input)
		for _, topic := range []string{schemas.TopicPrices, schemas.TopicCandles} {
			at := place{topic, partition}
			b.awaitMark(ctx, t, at, partition, decode(want[at][len(want[at])-1]).GetMark())
			got := b.read(ctx, t, at)
			duplicates += len(got) - len(readers(got))
			wantSameRecords(t, "prices", at, readers(got), want[at], false)
		}
	}
	t.Logf("%d duplicates", duplicates)
}

// rawLog spreads a scenario over the partitions that the topic table has.
func rawLog(s *scenario) map[int32][]*kgo.Record {
	raw := map[int32][]*kgo.Record{}
	for p := range int32(rawPartitions) {
		if p < scenarioPartitions {
			raw[p] = s.raw[p]
			continue
		}
		for _, rec := range s.raw[0] {
			record := &eventsv1.RawRecord{}
			if err := record.UnmarshalVT(rec.Value); err != nil {
				panic(err)
			}
			if record.GetClock() != nil {
				raw[p] = append(raw[p], &kgo.Record{Topic: rec.Topic, Partition: p, Offset: int64(len(raw[p])), Value: rec.Value})
			}
		}
	}
	return raw
}

// from is what the given input partition caused.
func from(records []*kgo.Record, origin int32) []*kgo.Record {
	var caused []*kgo.Record
	for _, rec := range records {
		if decode(rec).GetMark().Partition == origin {
			caused = append(caused, rec)
		}
	}
	return caused
}

// broker is the test's own way to what lies on a broker.
type broker struct {
	cfg      stream.Config
	producer *kgo.Client
	admin    *kadm.Client
}

func openBroker(ctx context.Context, t *testing.T, cfg stream.Config) *broker {
	t.Helper()
	producer, err := cfg.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	// The script's day is long past: by its times a broker would delete it at once.
	forEver := func(schemas.Topic) map[string]string { return map[string]string{"retention.ms": "-1"} }
	if err := stream.CreateTopics(ctx, producer, schemas.Topics, 1, forEver); err != nil {
		t.Fatal(err)
	}
	return &broker{cfg, producer, kadm.NewClient(producer)}
}

func (b *broker) write(ctx context.Context, t *testing.T, records []*kgo.Record) {
	t.Helper()
	var copies []*kgo.Record
	for _, rec := range records {
		copies = append(copies, &kgo.Record{Topic: rec.Topic, Partition: rec.Partition, Value: rec.Value})
	}
	if err := b.producer.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) end(ctx context.Context, t *testing.T, at place) int64 {
	t.Helper()
	ends, err := b.admin.ListEndOffsets(ctx, at.topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(at.topic, at.partition)
	return end.Offset
}

func (b *broker) read(ctx context.Context, t *testing.T, at place) (records []*kgo.Record) {
	t.Helper()
	err := stream.ReadRange(ctx, b.cfg, at.topic, at.partition, 0, b.end(ctx, t, at), func(rec *kgo.Record) error {
		records = append(records, rec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// settled waits until the groups of both units have exactly these members.
func (b *broker) settled(ctx context.Context, t *testing.T, members ...*memberProcess) {
	t.Helper()
	var want []string
	for _, m := range members {
		want = append(want, clientID(m.command.Process.Pid))
	}
	slices.Sort(want)
	b.poll(ctx, t, fmt.Sprintf("groups of the members %v", want), func() bool {
		groups, err := b.admin.DescribeGroups(ctx, resolveUnit().Name, pricesUnit(rawPartitions).Name)
		if err != nil {
			return false // a fresh broker has no coordinator yet
		}
		for _, group := range groups {
			var got []string
			for _, m := range group.Members {
				got = append(got, m.ClientID)
			}
			slices.Sort(got)
			if group.State != "Stable" || !slices.Equal(got, want) {
				return false
			}
		}
		return true
	})
}

func clientID(pid int) string { return fmt.Sprint("member-", pid) }

// growth returns what waits until a topic holds more than it does now.
func (b *broker) growth(ctx context.Context, t *testing.T, topic string) (await func()) {
	t.Helper()
	held := func() (n int64) {
		for partition := range int32(rawPartitions) {
			n += b.end(ctx, t, place{topic, partition})
		}
		return n
	}
	before := held()
	return func() { b.poll(ctx, t, "more records of "+topic, func() bool { return held() > before }) }
}

// awaitMark waits until a partition holds what an input partition caused, up to the mark.
func (b *broker) awaitMark(ctx context.Context, t *testing.T, at place, origin int32, mark *eventsv1.Mark) {
	t.Helper()
	origins := int32(1)
	if at.topic == schemas.TopicTicks {
		origins = rawPartitions
	}
	b.poll(ctx, t, "the last mark of "+at.topic, func() bool {
		applied, err := stream.LastApplied(ctx, b.cfg, at.topic, []int32{at.partition}, origins)
		if err != nil {
			t.Fatal(err)
		}
		return !mark.After(applied[at.partition][origin].Mark)
	})
}

func (b *broker) poll(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// memberProcess is this test binary again, as a member of the groups of both units.
type memberProcess struct {
	command *exec.Cmd
	stdin   io.Closer
}

func startMember(t *testing.T, addr string) *memberProcess {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestKilledMembersLeaveTheLogWhole$", "-test.v")
	command.Env = append(os.Environ(), memberOf+"="+addr)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	m := &memberProcess{command: command, stdin: stdin}
	t.Cleanup(m.kill)
	return m
}

// kill ends it as kill -9 does: nothing is flushed, nobody is notified.
func (m *memberProcess) kill() {
	_ = m.command.Process.Kill()
	_ = m.command.Wait()
}

// leave lets it write what it has folded and leave the groups.
func (m *memberProcess) leave(t *testing.T) {
	t.Helper()
	if err := m.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.command.Wait(); err != nil {
		t.Errorf("a member that was asked to leave: %v", err)
	}
}

// beMember folds until the parent closes the pipe, also by its death.
func beMember(t *testing.T, addr string) {
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	cfg := stream.Config{Brokers: []string{addr}, ClientID: clientID(os.Getpid())}
	for _, unit := range []processors.Unit{resolveUnit(), pricesUnit(rawPartitions)} {
		g.Go(func() error {
			return (&processors.Runner{Unit: unit, Log: cfg, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
