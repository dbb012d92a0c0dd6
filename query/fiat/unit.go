// Package fiat answers for government currencies: what one US dollar costs in each, blended from the sources that publish
// it, with what each of them published. All is read from memory.
package fiat

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	tag = "fiat currencies"
	// base is what all rates are against.
	base = schemas.USD
	// maxAge is how long a client may reuse an answer; rates are read about as often.
	maxAge = 15 * time.Minute
	// syncInterval is how often rates are read at least, where no source says that it is read more often.
	syncInterval = 15 * time.Minute
)

// Unit answers the endpoints of fiat currencies.
type Unit struct {
	coins   *schemas.CoinTable
	catalog *views.Catalog
	rated   *views.Rates
	past    *views.PastCurrencies
	history History
	held    query.ResponseCache[version, key]
	// since is when each currency was first published, by code, as far as it was read.
	since atomic.Pointer[map[string]time.Time]
}

// New makes the unit. Names of currencies are those of the coin table.
func New(coins *schemas.CoinTable, catalog *views.Catalog, past *views.PastCurrencies, history History) *Unit {
	return &Unit{coins: coins, catalog: catalog, past: past, rated: views.NewFiatRates(coins, catalog), history: history}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{u.list(), u.one(), u.rates(), u.stats(), u.status()}
}

// version is what answers are made from: facts, and the minute, since currencies grow stale.
type version struct {
	snapshot *views.Snapshot
	since    *map[string]time.Time
	minute   int64
}

// key names an answer.
type key struct{ operation, code string }

// current is what is known of all currencies at the minute of a request.
type current struct {
	minute     time.Time
	currencies []schemas.FiatRate
	sync       sync
	since      map[string]time.Time
	simulated  bool
	// attributions are to be shown with the rates.
	attributions []Attribution
	// at is the last clock of the sources.
	at int64
}

// sync is how the reading of rates goes.
type sync struct {
	// last is when a source was last read, zero before the first time.
	last     time.Time
	interval time.Duration
	// alive means that the process which reads the sources has written its clock lately.
	alive bool
}

// aliveFor is for how long a clock of the sources' process says that it runs: it writes one each ten seconds.
const aliveFor = time.Minute

func (s sync) next() time.Time { return s.last.Add(s.interval) }

var asOfParam = query.AsOfParam("Point in time. The answer that was given then. createdAt is what is known of it now. Default: now.")

// answer gives what make makes of the currencies, which is kept until they change; or of those of the instant that a request asks for.
func (u *Unit) answer(ctx context.Context, r *query.Request, k key, make func(*current) (any, error)) (query.Answer, error) {
	if asOf, past := r.Time("asOf"); past {
		snapshot, err := u.past.At(ctx, asOf)
		if err != nil {
			return query.Answer{}, query.FaultOfPast(err, asOf)
		}
		return encode(u.blend(version{snapshot, u.since.Load(), asOf.Truncate(time.Minute).Unix()}, u.rated.Past), make)
	}
	v := version{u.catalog.Snapshot(), u.since.Load(), r.Now.Truncate(time.Minute).Unix()}
	return u.held.Get(v, k, func() (query.Answer, error) { return encode(u.blend(v, u.rated.Of), make) })
}

func encode(now *current, make func(*current) (any, error)) (query.Answer, error) {
	if len(now.currencies) == 0 {
		return query.Answer{}, query.Starting("no rate of a currency was read yet")
	}
	body, err := make(now)
	if err != nil {
		return query.Answer{}, err
	}
	answer, err := query.Encode(body)
	answer.Simulated = now.simulated
	return answer, err
}

// blend makes the rates of all currencies whose names are known, from what the sources published last, by rates.
func (u *Unit) blend(v version, rates func(*views.Snapshot, time.Time) []schemas.FiatRate) *current {
	now := &current{minute: time.Unix(v.minute, 0).UTC(), at: v.snapshot.SourcesTime, sync: sync{interval: syncInterval}}
	if v.since != nil {
		now.since = *v.since
	}
	received := map[string]bool{}
	for id := range v.snapshot.Fixings {
		if received[id.Source] {
			continue
		}
		notice := v.snapshot.Notices[id.Source]
		read := v.snapshot.Read[id.Source]
		received[id.Source] = true
		now.simulated = now.simulated || notice.GetSimulated()
		if read > 0 && time.Unix(0, read).After(now.sync.last) {
			now.sync.last = time.Unix(0, read).UTC()
		}
		if interval := time.Duration(notice.GetInterval()); interval > 0 {
			now.sync.interval = min(now.sync.interval, interval)
		}
	}
	now.sync.alive = now.minute.UnixNano()-now.at < int64(aliveFor)
	now.currencies = slices.Clone(rates(v.snapshot, now.minute))
	if len(now.currencies) > 0 {
		now.addBase()
	}
	now.attributions = attributions(v.snapshot, received)
	return now
}

// addBase adds the US dollar, which costs one of itself, in its place by code.
func (c *current) addBase() {
	i, _ := slices.BinarySearchFunc(c.currencies, base, func(rate schemas.FiatRate, code string) int { return strings.Compare(rate.Code, code) })
	c.currencies = slices.Insert(c.currencies, i, schemas.FiatRate{Code: base, Rate: 1, Time: c.newest()})
}

// stale counts the currencies whose rate is too old.
func (c *current) stale() int {
	n := 0
	for _, rate := range c.currencies {
		if rate.Stale {
			n++
		}
	}
	return n
}

// newest is the time of the newest rate.
func (c *current) newest() int64 {
	newest := int64(0)
	for _, rate := range c.currencies {
		newest = max(newest, rate.Time)
	}
	return newest
}
