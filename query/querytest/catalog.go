package querytest

import (
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// Said publishes what sources state, which is in the catalog and in the store; it is seen from the next clock of
// the sources or minute on.
func (w *Fixture) Said(rec *eventsv1.ReferenceRecord) { w.SaidAt(w.Offset(), rec) }

// SaidAt is Said of a record that lies in the log at an offset.
func (w *Fixture) SaidAt(offset int64, rec *eventsv1.ReferenceRecord) {
	value, err := rec.MarshalVT()
	w.Must(err)
	if w.Store != nil {
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: offset}, rec)
		w.Must(b.Insert(w.T.Context(), w.Store, ""))
	}
	w.Must(w.Catalog.ApplyReference(views.TailRecord{Offset: offset, Value: value}))
}

// Minute publishes the end of a minute of the markets fold, and a clock of the sources at that time.
func (w *Fixture) Minute(at time.Time) {
	w.Said(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: at.UnixNano()}}})
	pulse := &eventsv1.Pulse{Now: at.UnixNano(), Watermark: at.UnixNano()}
	w.Folded(at, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: pulse}})
}

// Folded publishes a record of the markets fold, which is in the catalog and in the store.
func (w *Fixture) Folded(at time.Time, rec *eventsv1.MarketRecord) {
	rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: at.Unix() / 60, Index: uint32(w.Offset())}
	offset := w.Offset()
	if w.Store != nil {
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicMarkets, Offset: offset}, rec)
		w.Must(b.Insert(w.T.Context(), w.Store, ""))
	}
	w.Must(w.Catalog.ApplyMarkets(views.TailRecord{Offset: offset, Marked: rec}))
}

func (w *Fixture) said(text string) {
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1}
	w.read(text, rec)
	w.Said(rec)
}

func (w *Fixture) row(text string) {
	row := &eventsv1.Market{Time: w.Now.UnixNano()}
	w.read(text, row)
	w.Folded(time.Unix(0, row.Time), &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: row}})
}

func (w *Fixture) summary(text string) {
	summary := &eventsv1.Summary{Time: w.Now.UnixNano()}
	w.read(text, summary)
	w.Folded(time.Unix(0, summary.Time), &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: summary}})
}

// read merges a text into a message, whose own values are kept where the text gives none.
func (w *Fixture) read(text string, into proto.Message) {
	message := into.ProtoReflect().New().Interface()
	if err := prototext.Unmarshal([]byte(text), message); err != nil {
		w.T.Fatalf("script: reading %q: %v", text, err)
	}
	proto.Merge(into, message)
}
