package corrections_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/corrections"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newFixture has a line for records of corrections.v1: time, from and to (- for none), and the rest in protobuf's text form.
func newFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.Open(enginetest.Migrated(t))
	w.Lines["record"] = func(words []string) {
		rec := &eventsv1.CorrectionRecord{}
		w.Must(prototext.Unmarshal([]byte(strings.Join(words[4:], " ")), rec))
		rec.Time = w.Time(words[1]).UnixNano()
		for i, at := range []*int64{&rec.From, &rec.To} {
			if text := words[2+i]; text != "-" {
				*at = w.Time(text).UnixNano()
			}
		}
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicCorrections, Offset: w.Offset()}, rec)
		w.Must(b.Insert(t.Context(), w.Store, ""))
	}
	w.Serve(corrections.New(w.History(), func() bool { return false }).Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
