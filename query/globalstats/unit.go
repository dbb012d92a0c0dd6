// Package globalstats answers for the whole market: its sums and shares, now and in the past, how many coins rose and
// fell, which moved most, and fear and greed. What is current is the last minute that the markets fold ended, and is
// read from memory; only the past of metrics is read from history. The same of DeFi is another unit, over another fold.
package globalstats

import (
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const tag = "global statistics"

// Unit answers the endpoints of global statistics.
type Unit struct {
	catalog *views.Catalog
	served  Served
	history History
	held    query.ResponseCache[version, key]
	series  *series
	// past are the days of fear and greed that history holds, oldest first.
	past atomic.Pointer[[]*eventsv1.FearGreed]
}

// Served is where it is read what was served at past instants: summaries as the log has them, which a replay may have changed in history since, the rows of
// coins, and what sources stated of fear and greed.
type Served struct {
	Summaries *views.PastSummaries
	Coins     *views.PastCoins
	Sources   *views.PastCurrencies
}

// New makes the unit.
func New(catalog *views.Catalog, served Served, history History) *Unit {
	u := &Unit{catalog: catalog, served: served, history: history}
	u.series = u.newSeries()
	return u
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{
		u.summary(), u.metrics(), u.metricHistory(), u.metricOHLC(), u.fearGreed(),
		u.sentiment(), u.sentimentOf(), u.movers(), u.moversOf(),
	}
}

// version is what current answers are made from. They hold ages and times to come, both served to the minute.
type version struct {
	snapshot *views.Snapshot
	past     *[]*eventsv1.FearGreed
	age      query.Age
	minute   int64
}

// key names a current answer.
type key struct {
	operation, segment string
	view               query.View
	limit, offset      int64
	minVolume          int64
}

// current is the market as it represents one request.
type current struct {
	*views.Snapshot
	past []*eventsv1.FearGreed
	age  query.Age
	// minute is that of the request, by the query's clock.
	minute time.Time
}

// answer gives what make makes of the current market, which is kept until it changes. Before its first minute there
// is nothing to serve.
func (u *Unit) answer(r *query.Request, k key, make func(current) (any, error)) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	if !folded(snapshot) {
		return query.Answer{}, errNoMinute
	}
	return u.answerOf(snapshot, r, k, make)
}

var errNoMinute = query.Starting("no minute in which a coin had a market cap was folded yet")

// folded means that a minute of the whole market was folded which says something: those before any source has reported a
// supply sum up to nothing.
func folded(s *views.Snapshot) bool { return s.Summary.GetTotalMarketCap() > 0 }

// answerOf is answer for what sources alone may report.
func (u *Unit) answerOf(snapshot *views.Snapshot, r *query.Request, k key, make func(current) (any, error)) (query.Answer, error) {
	now := current{Snapshot: snapshot, age: query.AgeOf(snapshot.Summary.GetTime(), r.Now, views.StatisticsStaleAfter), minute: r.Now.Truncate(time.Minute)}
	v := version{snapshot: snapshot, past: u.past.Load(), age: now.age, minute: now.minute.Unix()}
	if v.past != nil {
		now.past = *v.past
	}
	k.view = r.View
	encode := func() (query.Answer, error) {
		body, err := make(now)
		if err != nil {
			return query.Answer{}, err
		}
		answer, err := query.Encode(body)
		answer.Simulated = snapshot.Summary.GetSimulated() || snapshot.Simulated
		return answer, err
	}
	if r.Clamped() != nil {
		return encode() // it reports what was asked for
	}
	return u.held.Get(v, k, encode)
}

// meta counts the rows of an answer.
func (c current) meta(r *query.Request, count int) Meta {
	return Meta{query.Meta{Count: count, LastUpdated: query.FormatTime(c.Summary.Time), Clamped: r.Clamped()}, c.age.Meta()}
}

// Meta describes an answer, and how old it is.
type Meta struct {
	query.Meta
	query.AgeMeta
}
