package processors_test

import (
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// clocksFold puts out the clocks of a raw partition whenever one of them moves.
type clocksFold struct{ clocks schemas.Clocks }

func (f *clocksFold) Clocks() (now, watermark int64) { return f.clocks.Now(), f.clocks.Watermark() }

func (f *clocksFold) Apply(in processors.Input, out *processors.Outputs) error {
	rec := &eventsv1.RawRecord{}
	if err := rec.UnmarshalVT(in.Value); err != nil {
		return err
	}
	if clock := rec.GetClock(); clock != nil && f.clocks.Observe(rec.Producer, rec.Epoch, clock.Time) {
		emitPulse(out, f.clocks.Now(), f.clocks.Watermark())
	}
	return nil
}

// originsFold is the same for a partition that several others are folded into.
type originsFold struct{ *processors.Origins }

func (f originsFold) Clocks() (now, watermark int64) { return f.Now(), f.Watermark() }

func (f originsFold) Apply(in processors.Input, out *processors.Outputs) error {
	rec := in.Record.(*eventsv1.ResolvedRecord)
	if pulse := rec.GetPulse(); pulse != nil && f.Observe(rec.Mark.Partition, pulse.Now, pulse.Watermark) {
		emitPulse(out, f.Now(), f.Watermark())
	}
	return nil
}

func emitPulse(out *processors.Outputs, now, watermark int64) {
	out.Emit(schemas.TopicPrices, 0, "", now, &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{
		Pulse: &eventsv1.Pulse{Now: now, Watermark: watermark},
	}})
}

func TestClocks(t *testing.T) {
	foldtest.Run(t, scripts(t), "clocks.txt", foldtest.Script{
		Topic: schemas.TopicTicksRaw, Pulses: true,
		New: func() processors.Fold { return &clocksFold{} },
	})
}

func TestOrigins(t *testing.T) {
	foldtest.Run(t, scripts(t), "origins.txt", foldtest.Script{
		Topic: schemas.TopicTicks, Pulses: true,
		New: func() processors.Fold { return originsFold{processors.NewOrigins(3)} },
	})
}

func scripts(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// Whatever producers write, neither clock goes back, the watermark is never ahead of now, and the same
// records in the same order give the same clocks.
func TestClocksNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var clocks, again schemas.Clocks
		base := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC).UnixNano()
		for range rapid.IntRange(1, 200).Draw(t, "records") {
			now, watermark := clocks.Now(), clocks.Watermark()
			producer := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "producer")
			epoch := rapid.Int64Range(0, 1).Draw(t, "epoch")
			base += rapid.SampledFrom([]int64{0, 1e8, 1e9, 1e9, 35e9, 70e9}).Draw(t, "step")
			at := base + rapid.SampledFrom([]int64{0, 0, 0, 3e8, -2e9, -29e9, -31e9, 9e9, 11e9, 3600e9, -3600e9}).Draw(t, "skew")
			moved := clocks.Observe(producer, epoch, at)
			again.Observe(producer, epoch, at)
			if clocks.Now() < now || clocks.Watermark() < watermark {
				t.Fatalf("went back: now from %d to %d, watermark from %d to %d", now, clocks.Now(), watermark, clocks.Watermark())
			}
			if clocks.Watermark() > clocks.Now() {
				t.Fatalf("watermark %d is ahead of now %d", clocks.Watermark(), clocks.Now())
			}
			if moved != (clocks.Now() != now || clocks.Watermark() != watermark) {
				t.Fatalf("moved=%v where now went from %d to %d, the watermark from %d to %d", moved, now, clocks.Now(), watermark, clocks.Watermark())
			}
			if again.Now() != clocks.Now() || again.Watermark() != clocks.Watermark() {
				t.Fatalf("the same records gave now %d and %d, watermark %d and %d", clocks.Now(), again.Now(), clocks.Watermark(), again.Watermark())
			}
		}
	})
}
