//go:build linux || darwin

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pool lends connections, one statement each at a time. Idle ones remember their session, so that requests that are
// alike, as those of one program are, need no SET before them.
type pool struct {
	lib       *library
	arguments []string      // of every connection
	fixed     bool          // for analysts: settings cannot be changed after opening (readonly), so open another instead
	wait      time.Duration // for a free connection; 0 means for ever
	slots     chan struct{}
	rules     rules    // of a fixed pool
	hidden    []string // tables that a fixed pool's statements may not name

	mu     sync.Mutex
	idle   []*member
	closed chan struct{}
}

// member is a connection with the session it is in.
type member struct {
	*conn
	session session
	spoiled bool // its state is not known any more: close it instead of lending it again
}

func newPool(lib *library, size int, fixed bool, arguments ...string) *pool {
	return &pool{lib: lib, arguments: arguments, fixed: fixed, slots: make(chan struct{}, size), closed: make(chan struct{})}
}

// take waits for a free connection and puts it into the wanted session. An error of the engine means that it does
// not accept the session, for example for an unknown setting.
func (p *pool) take(ctx context.Context, want session) (*member, error) {
	var late <-chan time.Time
	if p.wait > 0 {
		timer := time.NewTimer(p.wait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.closed:
		return nil, errClosed
	case <-late:
		return nil, exception(codeTooManyQueries, "Too many simultaneous queries. Maximum: "+strconv.Itoa(cap(p.slots)))
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a connection of the engine: %w", ctx.Err())
	}
	m, err := p.ready(want)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return m, nil
}

func (p *pool) ready(want session) (*member, error) {
	m, err := p.pick(want)
	if err != nil {
		return nil, err
	}
	if m != nil && p.fixed && !slices.Equal(m.session.settings, want.settings) {
		m.close()
		m = nil
	}
	if m == nil {
		if m, err = p.open(want); err != nil {
			return nil, err
		}
	}
	if err := m.enter(want); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// pick prefers an idle connection that is in the session already.
func (p *pool) pick(want session) (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() {
		return nil, errClosed
	}
	n := len(p.idle)
	if n == 0 {
		return nil, nil
	}
	at := slices.IndexFunc(p.idle, func(m *member) bool { return m.session.equal(want) })
	if at < 0 {
		at = n - 1
	}
	m := p.idle[at]
	p.idle = slices.Delete(p.idle, at, at+1)
	return m, nil
}

func (p *pool) open(want session) (*member, error) {
	arguments := p.arguments
	m := &member{session: session{database: "default"}}
	if p.fixed {
		arguments = slices.Clone(arguments)
		for _, s := range want.settings {
			arguments = append(arguments, "--"+s.name+"="+s.value)
		}
		m.session.settings = want.settings
	}
	c, err := p.lib.open(arguments...)
	if err != nil && len(arguments) > len(p.arguments) {
		return nil, exception(codeBadArguments, "the engine does not take the value of a setting")
	}
	if err != nil {
		return nil, err
	}
	m.conn = c
	return m, nil
}

// give takes a connection back.
func (p *pool) give(m *member) {
	p.mu.Lock()
	if m.spoiled || p.isClosed() {
		p.mu.Unlock()
		m.close()
	} else {
		p.idle = append(p.idle, m)
		p.mu.Unlock()
	}
	<-p.slots
}

func (p *pool) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// close waits until every connection is back and closes them.
func (p *pool) close() {
	p.mu.Lock()
	close(p.closed)
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, m := range idle {
		m.close()
	}
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
}

func (m *member) enter(want session) error {
	if m.session.equal(want) {
		return nil
	}
	if want.database != m.session.database {
		if err := m.do("USE " + quoteName(want.database)); err != nil {
			return err
		}
		m.session.database = want.database
	}
	var set []string
	for _, s := range m.session.settings {
		if !slices.ContainsFunc(want.settings, func(w setting) bool { return w.name == s.name }) {
			set = append(set, s.name+" = DEFAULT")
		}
	}
	for _, s := range want.settings {
		if !slices.Contains(m.session.settings, s) {
			set = append(set, s.name+" = "+quoteString(s.value))
		}
	}
	if len(set) > 0 {
		if err := m.do("SET " + strings.Join(set, ", ")); err != nil {
			return err
		}
	}
	m.session.settings = want.settings
	return nil
}

// do runs a statement whose output does not matter.
func (m *member) do(sql string) error {
	r, err := m.run(sql, "Null", nil)
	if err != nil {
		return err
	}
	r.close()
	return nil
}

// settings reads what every setting of the pool's connections is.
func (p *pool) settings(e *Engine) (map[string]string, error) {
	text, err := e.Ask("SELECT name, value FROM system.settings", "JSONCompactEachRow")
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for line := range strings.Lines(text) {
		var row [2]string
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, fmt.Errorf("reading the settings: %w", err)
		}
		values[row[0]] = row[1]
	}
	for _, argument := range p.arguments {
		if name, value, ok := strings.Cut(strings.TrimPrefix(argument, "--"), "="); ok {
			values[name] = value
		}
	}
	return values, nil
}
