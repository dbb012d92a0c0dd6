package outbox

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/producers"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// queued decodes what sources left in the queue.
func queued(t *testing.T, w *Writer) (raws []*eventsv1.RawRecord, partitions []int32) {
	t.Helper()
	for _, r := range w.queue.take(nil) {
		raw := new(eventsv1.RawRecord)
		if err := raw.UnmarshalVT(r.kgo.Value); err != nil {
			t.Fatal(err)
		}
		raws, partitions = append(raws, raw), append(partitions, r.partition)
	}
	return raws, partitions
}

func TestClockIsWrittenAtEveryFullSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := NewWriter(testConfig(t, "127.0.0.1:1"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // sources start between two seconds
		w.Source("alpha")
		w.Source("beta")
		start := time.Now().Truncate(time.Second)
		go w.writeClocks(t.Context())
		time.Sleep(2900 * time.Millisecond)
		raws, partitions := queued(t, w)
		n := int(partitionCounts[topicTicks])
		if len(raws) != 3*2*n {
			t.Fatalf("%d records in 3 s, want one of each of 2 sources on each of %d partitions a second", len(raws), n)
		}
		for i, raw := range raws {
			second, producer := 1+i/(2*n), []string{"alpha", "beta"}[i/n%2]
			want := start.Add(time.Duration(second) * time.Second).UnixNano()
			if raw.Producer != producer || raw.GetClock().GetTime() != want || partitions[i] != int32(i%n) || raw.Epoch != start.Add(300*time.Millisecond).UnixNano() {
				t.Errorf("record %d on partition %d = %v, want %s's clock %d on partition %d", i, partitions[i], raw, producer, want, i%n)
			}
		}
	})
}

func TestTickBehindItsClockGetsTheNextNanosecond(t *testing.T) {
	w, err := NewWriter(testConfig(t, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0)
	out := w.Source("alpha")
	other := w.Source("beta")
	out.(*source).putClock(at, true)
	out.(*source).putClock(at.Add(-time.Hour), true) // the machine's clock was set back: no clock at all
	out.Tick(tickNumber("alpha", 1, at))             // read at the clock's time or before, handed over after it
	out.Tick(tickNumber("alpha", 2, at.Add(5)))
	other.Tick(tickNumber("beta", 3, at)) // another producer's clock does not count for it
	raws, _ := queued(t, w)
	raws = raws[partitionCounts[topicTicks]:]
	for i, want := range []time.Time{at.Add(1), at.Add(5), at} {
		if got := raws[i].GetTick().GetIngestTime(); got != want.UnixNano() {
			t.Errorf("ingest time of tick %d = %d, want %d", i, got, want.UnixNano())
		}
	}
}

func TestFullQueueWaitsForTheDispatcherOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t, "127.0.0.1:1")
		cfg.MemoryBytes = 64 * recordOverhead
		w, err := NewWriter(cfg)
		if err != nil {
			t.Fatal(err)
		}
		out, handed := w.Source("alpha"), 0
		go func() {
			for i := range 100 {
				out.Tick(tickNumber("alpha", i, time.Now()))
				handed++
			}
		}()
		synctest.Wait()
		if handed == 0 || handed > 16 {
			t.Fatalf("%d ticks fit into a queue of 16 records' memory", handed)
		}
		before := handed
		for _, r := range w.queue.take(nil) {
			w.queue.release(r.weight())
		}
		synctest.Wait()
		if handed <= before {
			t.Errorf("no tick was taken after the queue was emptied")
		}
		w.queue.close()
		synctest.Wait()
		if s := w.Stats(); handed != 100 || s.Accepted+s.Refused != 100 || s.Refused == 0 {
			t.Errorf("after the end %d ticks returned, %+v; want all of 100, some refused", handed, s)
		}
	})
}

// A clock that waits for its writer moves on as soon as a source has joined, which may be before the writer
// runs: were that second left out, both would wait for ever.
func TestClockThatMovedOnBeforeItsWriterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(-time.Hour)
		cfg := testConfig(t, "127.0.0.1:1")
		clock := producers.NewVirtualClock(start, 100)
		cfg.Clock = clock
		w, err := NewWriter(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.Source("alpha")
		go clock.Run(t.Context())
		time.Sleep(time.Second) // it has long come as far as it can
		go w.writeClocks(t.Context())
		for second := int64(1); second <= 3; second++ {
			time.Sleep(time.Second)
			raws, _ := queued(t, w)
			if want := start.Unix() + second; len(raws) == 0 || raws[0].GetClock().GetTime() != want*1e9 {
				t.Fatalf("second %d: got %v, want a clock record of %d", second, raws, want)
			}
			clock.Finished(writerName, start.Add(time.Duration(second)*time.Second))
		}
	})
}

// movingClock moves on by a second whenever somebody sets a timer, and wakes nobody.
type movingClock struct{ now time.Time }

func (c *movingClock) Now() time.Time { return c.now }

func (c *movingClock) After(time.Duration) <-chan time.Time {
	c.now = c.now.Add(time.Second)
	return nil
}

func TestSleepUntilMissesNoTimeThatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Unix(1_700_000_000, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := producers.SleepUntil(ctx, &movingClock{start}, start.Add(time.Second)); err != nil {
			t.Errorf("got %v for a second that the clock has shown, want nil", err)
		}
	})
}
