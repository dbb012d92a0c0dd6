package restatements_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/restatements"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newFixture has a line for records of restatements.v1: run, attempt, time, and the body in protobuf's text form.
func newFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,"))
	w.Open(enginetest.Migrated(t))
	w.Lines["record"] = func(words []string) {
		rec := &eventsv1.RestatementRecord{}
		w.Must(prototext.Unmarshal([]byte(strings.Join(words[4:], " ")), rec))
		rec.Run, rec.Attempt, rec.Time = words[1], uint32(w.Integer(words[2])), w.Time(words[3]).UnixNano()
		if row := rec.GetRestatement(); row != nil {
			row.EventTime = w.Time("2026-03-01T12:00:00Z").UnixNano()
		}
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicRestatements, Offset: w.Offset()}, rec)
		w.Must(b.Insert(t.Context(), w.Store, ""))
	}
	w.Serve(restatements.New(w.Catalog, w.History(), func() bool { return false }).Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
