package processors_test

import (
	"os"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// clocksFold puts out where the clocks of a raw partition stand whenever one of them moves.
type clocksFold struct{ clocks processors.Clocks }

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
