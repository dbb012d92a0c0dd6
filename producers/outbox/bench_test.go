package outbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/producers"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// brokerProcess runs kfake as a process of its own, as the producers' machine would not run it.
func brokerProcess(b *testing.B) string {
	b.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestServeBenchmarks$")
	child.Env = append(os.Environ(), "BENCH_BROKER="+b.TempDir())
	hold, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = hold.Close() // the child ends with its standard input
		_ = child.Wait()
	})
	var addr string
	if _, err := fmt.Fscan(out, &addr); err != nil {
		b.Fatal(err)
	}
	return addr
}

// TestServeBenchmarks is the process that brokerProcess starts.
func TestServeBenchmarks(t *testing.T) {
	if os.Getenv("BENCH_BROKER") == "" {
		t.Skip("not applicable: only for benchmarks")
	}
	broker := newFakeBroker(t)
	broker.dir = os.Getenv("BENCH_BROKER")
	broker.start()
	fmt.Println(broker.Addr())
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// benchTicks are 20 venues × 1000 coins.
func benchTicks() []*eventsv1.Tick {
	ticks := make([]*eventsv1.Tick, 20_000)
	for i := range ticks {
		t := tickNumber(fmt.Sprintf("venue%02d", i%20), i, time.Now())
		t.Base = fmt.Sprintf("COIN%03d", i/20)
		t.Symbol = t.Base + "-USD"
		ticks[i] = t
	}
	return ticks
}

// BenchmarkWriter asks what the writer costs beside the client alone: the same ticks, encoded and
// produced in a bare loop. One op is one acknowledged tick.
func BenchmarkWriter(b *testing.B) {
	addr := brokerProcess(b)
	ticks := benchTicks()
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ticks/s")
		b.ReportAllocs()
	}
	bare := func(b *testing.B, value func(*eventsv1.Tick) []byte) {
		client, err := testConfig(b, addr).Log.NewClient(append(ProducerOptions(), kgo.MaxBufferedRecords(100_000))...)
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		b.ResetTimer()
		for i := range b.N {
			t := ticks[i%len(ticks)]
			r := &kgo.Record{Topic: topicNames[topicTicks], Key: []byte(t.Venue + "|" + t.Base), Value: value(t), Timestamp: time.Unix(0, t.IngestTime)}
			r.Partition = int32(keyPartitioner.Partition(r, int(partitionCounts[topicTicks])))
			client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
				if err != nil {
					b.Error(err)
				}
			})
		}
		if err := client.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
		report(b)
	}
	encode := func(t *eventsv1.Tick) []byte {
		raw := eventsv1.RawRecord{Producer: t.Venue, Epoch: 1, Body: &eventsv1.RawRecord_Tick{Tick: t}}
		value, err := raw.MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		return value
	}
	b.Run("bare", func(b *testing.B) {
		bare(b, func(t *eventsv1.Tick) []byte {
			t.IngestTime = time.Now().UnixNano()
			return encode(t)
		})
	})
	// The limit: nothing is encoded while the clock runs.
	b.Run("encoded-before", func(b *testing.B) {
		values := map[*eventsv1.Tick][]byte{}
		for _, t := range ticks {
			values[t] = encode(t)
		}
		bare(b, func(t *eventsv1.Tick) []byte { return values[t] })
	})
	b.Run("writer", func(b *testing.B) {
		w, stop := running(b, testConfig(b, addr))
		defer stop()
		outs := map[string]producers.Outbox{}
		for _, t := range ticks {
			outs[t.Venue] = w.Source(t.Venue)
		}
		b.ResetTimer()
		for i := range b.N {
			t := ticks[i%len(ticks)]
			t.IngestTime = time.Now().UnixNano()
			outs[t.Venue].Tick(t)
			// A source that could outrun the broker would go through the spool: this asks about the direct way.
			for i%256 == 0 && w.Stats().QueueBytes > 4<<20 {
				runtime.Gosched()
			}
		}
		for w.Stats().Acked < uint64(b.N) {
			time.Sleep(time.Millisecond)
		}
		report(b)
		if s := w.Stats(); s.Spooled > 0 || s.Dropped > 0 {
			b.Errorf("stats = %+v, want nothing spooled or dropped", s)
		}
	})
	b.Run("spool", func(b *testing.B) {
		cfg := testConfig(b, "127.0.0.1:1") // nobody there
		cfg.DrainTimeout = time.Millisecond
		cfg.MemoryBytes = 8 << 20
		w, stop := running(b, cfg)
		defer stop()
		outs := map[string]producers.Outbox{}
		for _, t := range ticks {
			outs[t.Venue] = w.Source(t.Venue)
		}
		b.ResetTimer()
		for i := range b.N {
			t := ticks[i%len(ticks)]
			t.IngestTime = time.Now().UnixNano()
			outs[t.Venue].Tick(t)
		}
		report(b)
	})
}
