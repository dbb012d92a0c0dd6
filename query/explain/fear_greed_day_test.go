package explain_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// feared is what a source publishes of a day.
func (w *fixture) feared(day *eventsv1.FearGreed) {
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_FearGreed{FearGreed: day}}
	w.append(schemas.TopicReferenceRaw, 0, day.Source, day.IngestTime, rec)
	w.flush()
	w.Said(rec)
}

// Values of the history are those of the records in which their source reports them.
func TestDaysOfFearAndGreedAreThoseOfTheirSource(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for i := range 3 {
		w.feared(&eventsv1.FearGreed{Source: "alternative", Value: uint32(40 + i), EventTime: w.Now.Truncate(24*time.Hour).AddDate(0, 0, i-2).UnixNano(), IngestTime: w.Now.UnixNano() + int64(i)})
	}
	for i, day := range []string{"2026-11-18T00:00:00.000Z", "2026-11-19T00:00:00Z", fmt.Sprint(w.Now.Truncate(24 * time.Hour).Unix())} {
		n := w.ask("fear-greed/days/"+day, "")
		if n.Reproduced != nil || n.Note == "" || *n.Value != float64(40+i) || len(n.Inputs) != 1 || n.Inputs[0].Records[0].Topic != schemas.TopicReferenceRaw {
			t.Errorf("got %+v, want %d and its record", n, 40+i)
		}
	}
	changed := &eventsv1.FearGreed{Source: "alternative", Value: 99, EventTime: w.Now.Truncate(24 * time.Hour).UnixNano(), IngestTime: w.Now.UnixNano() + 2}
	w.Said(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_FearGreed{FearGreed: proto.CloneOf(changed)}})
	if n := w.reproduced("fear-greed/days/2026-11-20T00:00:00Z", "", false); n.Recomputed == nil || *n.Recomputed != 42 {
		t.Errorf("got %+v, want the 42 of the log", n)
	}
	w.answered(map[string]int{
		"fear-greed/days/2026-11-17T00:00:00Z": http.StatusNotFound,
		"fear-greed/days/today":                http.StatusBadRequest,
		"fear-greed/days":                      http.StatusNotFound,
	})
}
