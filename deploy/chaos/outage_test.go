package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

const (
	// stretch is how long a store is away in one manner, by the clock of the processes and venues; longer than a price is fresh. Four of them
	// are longer than awayFor.
	stretch = views.StaleAfter + 5*time.Second
	// awayFor is how long each store is away at least, by that clock.
	awayFor = 2 * time.Minute
	// passesBy is how far that clock is put forward at each look, lookPause how long there is between two: it goes about twenty times as fast.
	passesBy  = 2 * time.Second
	lookPause = 100 * time.Millisecond
	// promptly is how soon health is to be answered on a busy machine: nothing in it may wait for a store, whose own limits are longer.
	promptly = 4 * time.Second
)

// manners are what a store suffers: it is named as away through all of them, and not where it is only slow.
var manners = []manner{hang, refuse, cut, slow}

// outage is the roles apart, one process of each, with ways between them and their stores that can be disturbed.
type outage struct {
	*scene
	cluster *cluster
	by      *ways
	key     string
	rest    *reader
	jump    string // the file of the clock
	ahead   time.Duration
}

// Kafka, ClickHouse and Redis are away in turn, for minutes: they hang, refuse, break off and are slow. Meanwhile every process lives and reports
// it at once; what it reports of being ready is what docs/operations.md promises; current prices are answered with their age, and what needs the
// store is a 503 that gives the reason. Afterwards all is there.
func TestStoresAwayForMinutes(t *testing.T) {
	o := newOutage(t)
	t.Run("clickhouse", func(t *testing.T) {
		o.away(t, o.by.clickhouse, away{
			// REST has prices, and the process that cannot write says what it waits for.
			ready: func(m manner) error {
				return o.says(processNodeA, m != slow, "sink/prices.v1", "waiting for a store")
			},
			tables: true,
		})
	})
	t.Run("redis", func(t *testing.T) {
		o.away(t, o.by.redis, away{
			ready: func(m manner) error {
				return o.says(processNodeA, m != slow, "sink/prices.v1", "waiting for a store")
			},
		})
	})
	t.Run("kafka", func(t *testing.T) {
		o.away(t, o.by.kafka, away{
			// Without the log there are no new prices: what is served is old, and said to be.
			ready: func(m manner) error { return o.says(queryNodeA, m != slow, "prices", "all prices are stale") },
			old:   true,
		})
	})
	o.check(t)
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	ctx, seed, began := t.Context(), seedOf(t), time.Now()
	t.Logf("seed %d", seed)
	o := &outage{scene: newScene(ctx, t, seed), by: newWays(t), jump: filepath.Join(t.TempDir(), "jump")}
	o.cluster = newCluster(t, build(t), o.scene, true, o.by)
	plans := filepath.Join(o.cluster.dir, "plans.yaml")
	if err := os.WriteFile(plans, []byte(unlimited), 0o600); err != nil {
		t.Fatal(err)
	}
	o.pass(0)
	for name, n := range o.cluster.nodes {
		n.environment = append(slices.Clone(n.environment), setting("plans_file", plans), "MARKETLOG_FAULT_CLOCK_FILE="+o.jump)
		switch name {
		case engineNode, produceNode, processNodeA, queryNodeA:
			n.start(t, "")
		}
	}
	o.cluster.awaitReady(t)
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	query := o.cluster.nodes[queryNodeA]
	o.key = o.cluster.key(t, query)
	o.rest = readAs(ctx, query.rest, o.key)
	o.rest.starts(o.ahead)
	return o
}

// pass puts the clocks of all processes, venues and of the reader forward. The file is replaced in one step: processes read it all the time.
func (o *outage) pass(by time.Duration) {
	o.t.Helper()
	o.ahead += by
	err := os.WriteFile(o.jump+".new", []byte(o.ahead.String()), 0o600)
	if err == nil {
		err = os.Rename(o.jump+".new", o.jump)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	o.shift(o.ahead)
	if o.rest != nil {
		o.rest.shift.Store(int64(o.ahead))
	}
}

// away is what must hold while a store is.
type away struct {
	// ready is nil once the processes state what they promise to, in each manner.
	ready func(manner) error
	// tables is whether statements need the store.
	tables bool
	// old is whether prices grow old; else they are served all the time, and go on.
	old bool
}

// away has a store be away in all manners, one after the other, and sees that the product is well afterwards.
func (o *outage) away(t *testing.T, w *way, want away) {
	began, before := time.Now(), o.ahead
	defer w.be(open)
	for _, m := range manners {
		start, since := o.ahead, time.Now()
		w.be(m)
		var statement chan response
		if want.tables && m != slow {
			statement = o.state()
		}
		looks, old, first := 0, false, o.look(t, want).at
		met := func() error {
			p := o.look(t, want)
			old = old || p.stale || p.status == http.StatusServiceUnavailable
			switch looks++; {
			case m != refuse && w.hurt() == 0:
				return fmt.Errorf("nobody has noticed that it %s", m)
			case want.old && m != slow && !old:
				return errors.New("no price is old")
			case !want.old && !p.at.After(first):
				return errors.New("prices do not go on")
			}
			return want.ready(m)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(lookPause) {
			err := met()
			if err == nil && o.ahead-start >= stretch {
				break
			}
			if t.Failed() || err != nil && time.Now().After(deadline) {
				t.Fatalf("it %s for %s, and %v", m, o.ahead-start, err)
			}
			o.pass(passesBy)
		}
		t.Logf("it %s: %s by its clock, %d looks, in %s", m, o.ahead-start+time.Since(since).Round(time.Second), looks, time.Since(since).Round(time.Millisecond))
		if statement == nil {
			continue
		}
		if m == hang {
			w.be(refuse) // which ends what hangs, and so the statement
		}
		if got := <-statement; got.err != nil || got.status != http.StatusServiceUnavailable && got.status != http.StatusGatewayTimeout {
			t.Errorf("a statement while it %s: got %d %.300s, %v, want 503 or 504", m, got.status, got.body, got.err)
		} else if err := got.isUnavailable(); err != nil && got.status == http.StatusServiceUnavailable {
			t.Errorf("a statement while it %s: %v", m, err)
		}
	}
	if lasted := o.ahead - before; lasted < awayFor {
		t.Errorf("it was away for %s, want at least %s", lasted, awayFor)
	}
	w.be(open)
	eventually(t, "being ready again", time.Minute, func() error {
		o.cluster.awaitReady(t)
		p, err := o.price()
		if err == nil && (p.status != http.StatusOK || p.stale) {
			err = fmt.Errorf("a price is answered %d, stale %t: %.300s", p.status, p.stale, p.body)
		}
		return err
	})
	o.catchUpLive()
	t.Logf("away for %s, whole again %s after it began", o.ahead-before, time.Since(began).Round(time.Millisecond))
}

// look asks every process once how it is, and REST for a price.
func (o *outage) look(t *testing.T, want away) priced {
	t.Helper()
	for name, n := range o.cluster.nodes {
		if n.life == nil {
			continue
		}
		if n.life.ended(0) {
			t.Fatalf("%s ended by itself: %v\n%s", name, n.life.state, n.tail())
		}
		addrs := []string{n.metrics}
		if name == queryNodeA {
			addrs = append(addrs, n.rest)
		}
		for _, addr := range addrs {
			for path, right := range map[string][]int{"/healthz": {http.StatusOK}, "/readyz": {http.StatusOK, http.StatusServiceUnavailable}} {
				if got := ask(http.MethodGet, "http://"+addr+path, "", "", promptly); got.err != nil || !slices.Contains(right, got.status) {
					t.Errorf("%s of %s: got %d %.300s, %v, want one of %v within %s", path, name, got.status, got.body, got.err, right, promptly)
				}
			}
		}
	}
	p, err := o.price()
	if err == nil {
		err = p.isHonest()
	}
	if err == nil && !want.old {
		err = errors.Join(p.isServed(), o.staysReady())
	}
	if err != nil {
		t.Errorf("a price: %v", err)
	}
	return p
}

// staysReady is nil if the process that serves lacks nothing but, where this machine cannot keep up with the clock, fresh prices.
func (o *outage) staysReady() error {
	n := o.cluster.nodes[queryNodeA]
	got, missing := o.missing("http://" + n.rest)
	delete(missing, "prices")
	if got.err != nil || len(missing) > 0 {
		return fmt.Errorf("/readyz of %s answers %d %.500s, %v, and prices are served", n.name, got.status, got.body, got.err)
	}
	return nil
}

// missing is what /readyz of an address names, by part.
func (o *outage) missing(base string) (got response, missing map[string][]string) {
	got = ask(http.MethodGet, base+"/readyz", "", "", promptly)
	var body struct {
		Missing map[string][]string
		Error   struct{ Errors map[string][]string }
	}
	if got.err == nil {
		got.err = json.Unmarshal(got.body, &body)
	}
	missing = map[string][]string{}
	maps.Copy(missing, body.Missing)
	maps.Copy(missing, body.Error.Errors)
	return got, missing
}

// says is nil if a process is not ready for a reason that a part names, at REST where it has that, or if that is not wanted.
func (o *outage) says(name string, wanted bool, part, why string) error {
	if !wanted {
		return nil
	}
	n := o.cluster.nodes[name]
	addr := n.metrics
	if name == queryNodeA {
		addr = n.rest
	}
	got, missing := o.missing("http://" + addr)
	named := slices.ContainsFunc(missing[part], func(r string) bool { return strings.Contains(r, why) })
	if got.err == nil && (got.status != http.StatusServiceUnavailable || !named) {
		return fmt.Errorf("/readyz of %s answers %d %.500s, want %s of %s", name, got.status, got.body, why, part)
	}
	return got.err
}

// priced is an answer of a current price. before is what the clock of whoever answered said at least.
type priced struct {
	response
	before time.Time
	at     time.Time
	stale  bool
}

func (o *outage) price() (priced, error) {
	p := priced{before: time.Now().Add(o.ahead)}
	p.response = ask(http.MethodGet, o.rest.base+"/api/v1/prices/BTC", "", o.key, promptly)
	if p.err != nil || p.status != http.StatusOK {
		return p, p.err
	}
	list, err := readPrice(p.body)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("got %d prices in %.300s", len(list), p.body)
	}
	if err == nil {
		p.at, p.stale = list[0].at, list[0].stale
	}
	return p, err
}

func (p priced) isServed() error {
	if p.status != http.StatusOK {
		return fmt.Errorf("got %d %.300s, want 200", p.status, p.body)
	}
	return nil
}

// isHonest is nil if the answer says its age, or that there is none.
func (p priced) isHonest() error {
	switch age := p.before.Sub(p.at); {
	case p.status == http.StatusOK && age > views.StaleAfter && !p.stale:
		return fmt.Errorf("it is %s old and not stale: %.300s", age, p.body)
	case p.status == http.StatusOK:
		return nil
	}
	return p.isUnavailable()
}

// isUnavailable is nil if the answer is a 503 that says why.
func (r response) isUnavailable() error {
	var body struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(r.body, &body); err != nil || r.status != http.StatusServiceUnavailable || body.Error.Code == "" || body.Error.Message == "" {
		return fmt.Errorf("got %d %.300s, want a 503 with a code and a message", r.status, r.body)
	}
	return nil
}

// state runs a statement over the API, which only ClickHouse can answer.
func (o *outage) state() chan response {
	answered := make(chan response, 1) // one result
	go func() {
		answered <- ask(http.MethodPost, o.rest.base+"/api/v1/sql?format=CSVWithNames", "SELECT count() AS n FROM v_prices", o.key, time.Minute)
	}()
	return answered
}

// response is what was answered to a request, read to its end.
type response struct {
	status int
	body   []byte
	err    error
}

// ask asks on a connection of its own, within a limit.
func ask(method, url, body, key string, limit time.Duration) (r response) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return response{err: err}
	}
	defer answer.Body.Close()
	r.status = answer.StatusCode
	r.body, r.err = io.ReadAll(answer.Body)
	return r
}

// check asks whether anything was lost or changed by the outages.
func (o *outage) check(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return
	}
	o.cluster.nodes[produceNode].life.stop(t)
	o.settle()
	var result report
	o.checkEvents(&result)
	o.checkReceived(&result, receivedByAll)
	o.checkViews(&result)
	o.checkAcknowledged()
	o.rest.check(t)
	for _, name := range []string{queryNodeA, processNodeA, engineNode} {
		o.cluster.nodes[name].life.stop(t)
	}
}
