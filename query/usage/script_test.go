package usage_test

import (
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/usage"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newFixture has a limiter that requests are counted in by lines; those of the script itself count nowhere, since the endpoint is
// not counted. All of them are of one budget, the one of a server without keys.
func newFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.Open(enginetest.Migrated(t))
	w.Now = w.Time("2026-11-20T10:00:00Z")
	const budget = "open"
	now := func() time.Time { return w.Now }
	limiter := limits.NewLimiter(now, nil)
	plan := &limits.Plan{Name: limits.PlanPro}
	plan.PerMinute, plan.PerMonth, plan.ChartsPerMinute = 300, 1_000_000, 30
	w.Lines["requests"] = func(words []string) { // number, class
		class := limits.Plain
		if len(words) > 2 && words[2] == "charts" {
			class = limits.Charts
		}
		for range w.Integer(words[1]) {
			limiter.Admit(budget, plan, class, w.Now)
		}
	}
	w.Lines["used"] = func(words []string) { // replica, its number, day, requests, charts, and the budget if it is another
		rec := &eventsv1.UsageRecord{Replica: words[1], Number: int64(w.Integer(words[2])), Budget: budget, Plan: "pro", Day: w.Time(words[3] + "T00:00:00Z").UnixNano(),
			Requests: uint64(w.Integer(words[4])), Charts: uint64(w.Integer(words[5])), Time: w.Now.UnixNano()}
		if len(words) > 6 {
			rec.Budget = words[6]
		}
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicUsage, Offset: w.Offset()}, rec)
		w.Must(b.Insert(t.Context(), w.Store, ""))
	}
	w.Serve(usage.New(planned{limiter, plan}, w.History(), now).Endpoints())
	return w
}

// planned reports of the plan of the script: that of the server has no limits.
type planned struct {
	*limits.Limiter
	plan *limits.Plan
}

func (p planned) Windows(budget string, _ *limits.Plan, now time.Time) []limits.Standing {
	return p.Limiter.Windows(budget, p.plan, now)
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
