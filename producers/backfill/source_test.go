package backfill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// tape is a log in memory that dies at a record: of what comes then and later it takes nothing.
type tape struct {
	mu     sync.Mutex
	diesAt int // -1: never
	ranges []*eventsv1.BackfillRecord
	values []*eventsv1.ReferenceRecord
	dead   []*eventsv1.DeadLetter
}

var errDied = errors.New("died")

func (l *tape) alive() bool {
	if l.diesAt == 0 {
		return false
	}
	l.diesAt--
	return true
}

// Read is for Log.
func (l *tape) Read(_ context.Context, visit func(*eventsv1.BackfillRecord) error) error {
	for _, rec := range l.ranges {
		if err := visit(rec); err != nil {
			return err
		}
	}
	return nil
}

// lines is the way of ranges, readings that of values onto a tape.
type (
	lines    struct{ *tape }
	readings struct{ *tape }
)

func (l lines) Append(_ context.Context, _, _ string, recs []*eventsv1.BackfillRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rec := range recs {
		if !l.alive() {
			return errDied
		}
		l.ranges = append(l.ranges, rec)
	}
	return nil
}

func (l readings) Append(_ context.Context, recs ...*eventsv1.ReferenceRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rec := range recs {
		if !l.alive() {
			return errDied
		}
		l.values = append(l.values, rec)
	}
	return nil
}

func (l readings) Dead(_ context.Context, letter *eventsv1.DeadLetter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = append(l.dead, letter)
	return nil
}

// archive is a source that has a value of each hour since some time, apart from an hour in which it told none. It answers
// from its newest on, the other way round, or whole.
type archive struct {
	mu     sync.Mutex
	asked  []string
	before func(n int, path string) (string, error) // instead of an answer, where it says something
}

var (
	archived = now.Truncate(day).Add(-60 * time.Hour)
	untold   = archived.Add(20 * time.Hour)
)

func archiveSource(past producers.Past) producers.Source {
	past.Interval = time.Hour
	past.Series = func([]*eventsv1.ReferenceRecord) []producers.Series { return nil }
	past.Path = func(s producers.Series, from, to time.Time) string {
		return fmt.Sprintf("/%s/%d/%d", s.ID, from.Unix(), to.Unix())
	}
	return producers.Source{Slug: "archive", Version: 1, Past: &past, Decode: func(path string, body []byte, out *producers.Readings) error {
		var told map[string]string
		if err := json.Unmarshal(body, &told); err != nil {
			return producers.Unreadable("parsing: %w", err)
		}
		for _, second := range slices.Sorted(maps.Keys(told)) {
			at, _ := strconv.ParseInt(second, 10, 64)
			out.Rate(&eventsv1.Rate{
				Pool: strings.Split(path, "/")[1], Symbol: "USDC", Category: schemas.RateLending, Raw: told[second], RawUnit: "apy_percent",
				Past: true, EventTime: at * int64(time.Second),
			})
		}
		return nil
	}}
}

// Fetch is for producers.Fetcher.
func (a *archive) Fetch(_ context.Context, _, url string) ([]byte, error) {
	path := strings.TrimPrefix(url, "http://archive")
	a.mu.Lock()
	a.asked = append(a.asked, path)
	n, before := len(a.asked), a.before
	a.mu.Unlock()
	if before != nil {
		if body, err := before(n, path); body != "" || err != nil {
			return []byte(body), err
		}
	}
	parts := strings.Split(path, "/")
	rows, _ := strconv.Atoi(parts[0])
	_ = rows
	return nil, errors.New("replaced by the job")
}

// answers is an archive whose answers hold so many rows.
func (a *archive) answers(past producers.Past) producers.Fetcher {
	return fetchFunc(func(ctx context.Context, method, url string) ([]byte, error) {
		path := strings.TrimPrefix(url, "http://archive")
		a.mu.Lock()
		a.asked = append(a.asked, path)
		n, before := len(a.asked), a.before
		a.mu.Unlock()
		if before != nil {
			if body, err := before(n, path); body != "" || err != nil {
				return []byte(body), err
			}
		}
		parts := strings.Split(path, "/")
		from, _ := strconv.ParseInt(parts[2], 10, 64)
		to, _ := strconv.ParseInt(parts[3], 10, 64)
		var told []time.Time
		for at := archived; at.Before(now); at = at.Add(time.Hour) {
			switch {
			case at.Equal(untold), past.Rows > 0 && !at.Before(time.Unix(to, 0)), past.OldestFirst && at.Before(time.Unix(from, 0)):
			default:
				told = append(told, at)
			}
		}
		if past.Rows > 0 && len(told) > past.Rows {
			if past.OldestFirst {
				told = told[:past.Rows]
			} else {
				told = told[len(told)-past.Rows:]
			}
		}
		body := map[string]string{}
		for _, at := range told {
			body[strconv.FormatInt(at.Unix(), 10)] = worth(parts[1], at)
		}
		return json.Marshal(body)
	})
}

// worth is the value of a series at a time.
func worth(series string, at time.Time) string {
	return fmt.Sprintf("%d.%d", len(series), at.Unix()/3600%97+1)
}

type fetchFunc func(ctx context.Context, method, url string) ([]byte, error)

func (f fetchFunc) Fetch(ctx context.Context, method, url string) ([]byte, error) {
	return f(ctx, method, url)
}
