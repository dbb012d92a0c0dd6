package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/stream/retry"
)

// Lake exports each finished UTC day of some datasets by itself, once: as soon as the tables have the day whole, the newest first,
// since the oldest would else keep it waiting until the tables drop it. A day that was missed while nobody ran follows, if it is
// within Days and the tables have it whole. What fails is tried again later, and nothing else waits for it.
//
// The files are in directories that readers of hive partitions know, dataset=prices/date=2026-11-25, and in no other state than whole.
// The manifest names a day once all of its files are there; such a day is never written again.
type Lake struct {
	// Exporter reads the tables; what it emits is not used.
	Exporter *Exporter
	// Dir is an absolute path, Datasets and Format are names of Datasets and Formats.
	Dir      string
	Datasets []string
	Format   string
	// OwnUse exports values too whose terms forbid to pass them on.
	OwnUse bool
	// Days is how many finished days are looked at, at least 1; older ones are not exported.
	Days int
	// KeepDays is how many finished days stay in the lake, at least Days; 0: all.
	KeepDays int
	// Turns order its exports and those that people ask for.
	Turns *Turns
	// Hold says why nothing is to be exported yet; empty: it may.
	Hold func() string
	Log  *slog.Logger

	store lakeStore // what a test puts in place of the tables and the directory
	mu    sync.Mutex
	of    map[string]*lakeDataset
	// pruned is the midnight at which old days were removed last, and pruneAt when that is tried again after a failure.
	pruned, pruneAt time.Time
}

// lakeDataset is how one dataset fares.
type lakeDataset struct {
	// until and since are what the tables had at asked, by the machine's clock: they are not asked for each of many empty days.
	until, since, asked time.Time
	// settled is the midnight before which nothing is left to export.
	settled time.Time
	// empty are finished days that have no rows, by what was looked at since the midnight in emptyAt.
	empty   map[time.Time]bool
	emptyAt time.Time
	// newest is the newest day that the lake has, due how many finished days it lacks.
	newest time.Time
	due    int
	// failing is what the last attempt failed with, failed when the first of them did; retryAt is when it is tried again, by the machine's clock.
	failing  error
	failed   time.Time
	retryAt  time.Time
	backoff  *retry.Backoff
	failures int
	bytes    int64
}

// lakeStore is what a lake asks of the tables and of its directory.
type lakeStore interface {
	// finished is the time up to which the tables have all rows of a dataset, and the start of the oldest day that they have whole,
	// zero if they keep all.
	finished(ctx context.Context, dataset string) (until, since time.Time, err error)
	// exported are the days that are in the lake.
	exported() (map[lakeDay]bool, error)
	export(ctx context.Context, d lakeDay) (Result, error)
	// prune removes the days before one.
	prune(before time.Time) (days int, err error)
}

// lakeDay is a day of a dataset.
type lakeDay struct {
	dataset string
	day     time.Time
}

const (
	// lakeEvery is how often it is looked whether a day is finished.
	lakeEvery = time.Minute
	// lakeFirstPause and lakeLongestPause are how long a dataset is left alone that failed.
	lakeFirstPause   = time.Minute
	lakeLongestPause = time.Hour
)

// Run exports until ctx ends.
func (l *Lake) Run(ctx context.Context) error {
	for {
		if l.Hold() == "" {
			l.round(ctx)
		}
		if retry.Wait(ctx, lakeEvery) != nil {
			return nil
		}
	}
}

// round exports what is due, until nothing is that has not failed.
func (l *Lake) round(ctx context.Context) {
	var have map[lakeDay]bool
	for ctx.Err() == nil {
		next, ok := l.next(ctx, &have)
		if !ok {
			l.prune()
			return
		}
		turn, done, err := l.Turns.ofLake(ctx)
		if err != nil {
			return
		}
		result, err := l.access().export(turn, next)
		yielded := errors.Is(context.Cause(turn), errYielded)
		done()
		switch {
		case ctx.Err() != nil: // it goes on at the next start
		case err != nil && yielded:
			l.Log.Info("lake export interrupted", "dataset", next.dataset, "day", next.day.Format(time.DateOnly), "reason", errYielded)
		case err != nil:
			l.failed(next.dataset, fmt.Errorf("exporting %s of %s: %w", next.dataset, next.day.Format(time.DateOnly), err))
		default:
			if l.exported(next, result); result.Files > 0 {
				have[next] = true
			}
		}
	}
}

// next is the newest day that is due, of the first dataset that lacks it. What the lake has is read once a round.
func (l *Lake) next(ctx context.Context, have *map[lakeDay]bool) (newest lakeDay, ok bool) {
	midnight := l.midnight()
	for _, dataset := range l.Datasets {
		if !l.open(dataset, midnight) {
			continue
		}
		until, since, err := l.finished(ctx, dataset)
		if err == nil && *have == nil {
			*have, err = l.access().exported()
		}
		if err != nil {
			if ctx.Err() == nil {
				l.failed(dataset, err)
			}
			continue
		}
		due := l.due(dataset, midnight, until, since, *have)
		if newest := until.UTC().Truncate(day).AddDate(0, 0, -1); newest.Before(since) && !(*have)[lakeDay{dataset, newest}] {
			l.failed(dataset, fmt.Errorf("the tables have %s since %s only, and not all of %s: its oldest hours were dropped to stay within the disk budget; raise retention.disk_bytes",
				dataset, since.Format(time.RFC3339), newest.Format(time.DateOnly)))
			continue
		}
		if len(due) > 0 && (!ok || due[0].After(newest.day)) {
			newest, ok = lakeDay{dataset, due[0]}, true
		}
	}
	return newest, ok
}

// finished asks the tables, at most as often as it is looked.
func (l *Lake) finished(ctx context.Context, dataset string) (until, since time.Time, err error) {
	l.mu.Lock()
	s := l.state(dataset)
	until, since, asked := s.until, s.since, s.asked
	l.mu.Unlock()
	if !asked.IsZero() && time.Since(asked) < lakeEvery {
		return until, since, nil
	}
	if until, since, err = l.access().finished(ctx, dataset); err != nil {
		return until, since, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.until, s.since, s.asked = until, since, time.Now()
	return until, since, nil
}

func (l *Lake) midnight() time.Time { return l.Exporter.Now().UTC().Truncate(day) }

// open reports whether a dataset may have something to export and is not left alone after a failure.
func (l *Lake) open(dataset string, midnight time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state(dataset)
	if !s.emptyAt.Equal(midnight) { // a back-fill may have filled them since
		s.empty, s.emptyAt = map[time.Time]bool{}, midnight
	}
	return !s.settled.Equal(midnight) && !time.Now().Before(s.retryAt)
}

// due are the days of a dataset that can be exported and are not in the lake, the newest first.
func (l *Lake) due(dataset string, midnight, until, since time.Time, have map[lakeDay]bool) (due []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state(dataset)
	end := until.UTC().Truncate(day)
	first := later(end.AddDate(0, 0, -l.Days), since)
	for d := end.AddDate(0, 0, -1); !d.Before(first); d = d.AddDate(0, 0, -1) {
		if !have[lakeDay{dataset, d}] && !s.empty[d] {
			due = append(due, d)
		}
	}
	s.newest = time.Time{}
	for at := range have {
		if at.dataset == dataset {
			s.newest = later(s.newest, at.day)
		}
	}
	if s.due = len(due); s.due == 0 {
		s.failing = nil
		if !end.Before(midnight) {
			s.settled = midnight
		}
	}
	return due
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// exported notes that a day is in the lake, or has no rows.
func (l *Lake) exported(d lakeDay, r Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state(d.dataset)
	s.failing = nil
	s.backoff.Reset()
	s.due = max(0, s.due-1)
	if r.Files == 0 {
		s.empty[d.day] = true
		return
	}
	s.newest = later(s.newest, d.day)
	s.bytes += r.Bytes
	l.Log.Info("lake export finished", "dataset", d.dataset, "day", d.day.Format(time.DateOnly), "files", r.Files, "rows", r.Rows, "bytes", r.Bytes,
		"seconds", r.Seconds, "left_out", strings.Join(r.LeftOut, " "))
}

func (l *Lake) failed(dataset string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state(dataset)
	if s.failing == nil {
		s.failed = time.Now()
	}
	pause := s.backoff.Next()
	s.failing, s.retryAt = err, time.Now().Add(pause)
	s.failures++
	l.Log.Warn("lake export failed", "dataset", dataset, "error", err, "retry_in", pause.Round(time.Second))
}

// prune removes what is older than the lake keeps, once a day.
func (l *Lake) prune() {
	midnight := l.midnight()
	if l.KeepDays == 0 || l.pruned.Equal(midnight) || time.Now().Before(l.pruneAt) {
		return
	}
	days, err := l.access().prune(midnight.AddDate(0, 0, -l.KeepDays))
	if err != nil {
		l.pruneAt = time.Now().Add(lakeLongestPause)
		l.Log.Warn("removing old days of the lake failed", "error", err, "retry_in", lakeLongestPause)
		return
	}
	l.pruned = midnight
	if days > 0 {
		l.Log.Info("old days of the lake removed", "days", days, "before", midnight.AddDate(0, 0, -l.KeepDays).Format(time.DateOnly))
	}
}

// state is that of a dataset; the caller holds the lock.
func (l *Lake) state(dataset string) *lakeDataset {
	s := l.of[dataset]
	if s == nil {
		if l.of == nil {
			l.of = map[string]*lakeDataset{}
		}
		s = &lakeDataset{backoff: retry.New(lakeFirstPause, lakeLongestPause)}
		l.of[dataset] = s
	}
	return s
}

// LakeStatus is how one dataset of a lake fares.
type LakeStatus struct {
	Dataset string `json:"dataset"`
	// Newest is the newest day that the lake has; zero where it has none, or nothing was looked at yet.
	Newest time.Time `json:"newest,omitzero"`
	// Due is how many finished days it lacks, with those that are still to be looked at for rows.
	Due int `json:"due"`
	// Failing is what the last attempt failed with, and Since the time of the first that failed; empty: it did not fail.
	Failing string    `json:"failing,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Status is how the datasets fare, in the order in which they are configured. Safe for concurrent use.
func (l *Lake) Status() (all []LakeStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, dataset := range l.Datasets {
		s := l.state(dataset)
		line := LakeStatus{Dataset: dataset, Newest: s.newest, Due: s.due}
		if s.failing != nil {
			line.Failing, line.Since = s.failing.Error(), s.failed.UTC()
		}
		all = append(all, line)
	}
	return all
}

func (l *Lake) access() lakeStore {
	if l.store != nil {
		return l.store
	}
	return (*lakeTables)(l)
}

// lakeTables are the tables and the directory of a lake.
type lakeTables Lake

func (l *lakeTables) finished(ctx context.Context, dataset string) (until, since time.Time, err error) {
	d, err := DatasetNamed(dataset)
	if err != nil {
		return until, since, err
	}
	if _, until, err = l.Exporter.position(ctx, d); err != nil {
		return until, since, err
	}
	since, err = l.Exporter.Store.KeptSince(ctx, d.expires, until)
	return until, since, err
}

func (l *lakeTables) exported() (map[lakeDay]bool, error) {
	have := map[lakeDay]bool{}
	dir, err := os.OpenRoot(l.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return have, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening lake.dir: %w", err)
	}
	defer dir.Close()
	m, err := readManifest(dir, l.OwnUse)
	if err != nil {
		return nil, err
	}
	for _, d := range m.Days {
		at, err := time.Parse(time.DateOnly, d.Date)
		if err != nil {
			return nil, fmt.Errorf("the manifest in %s names the day %.20q, which is not a date: correct it, or name another lake.dir", l.Dir, d.Date)
		}
		have[lakeDay{d.Dataset, at}] = true
	}
	return have, nil
}

func (l *lakeTables) export(ctx context.Context, d lakeDay) (Result, error) {
	x := *l.Exporter
	x.Emit = func(any) error { return nil }
	return x.Run(ctx, Request{Dataset: d.dataset, Format: l.Format, From: d.day, To: d.day.AddDate(0, 0, 1), Dir: l.Dir, OwnUse: l.OwnUse, lake: true})
}

// prune removes the files first: what is ended in between is removed again.
func (l *lakeTables) prune(before time.Time) (days int, err error) {
	if _, err := os.Stat(l.Dir); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	dir, release, err := openDir(l.Dir)
	if err != nil {
		return 0, err
	}
	defer release()
	m, err := readManifest(dir, l.OwnUse)
	if err != nil {
		return 0, err
	}
	folders := map[string]bool{}
	var kept []Entry
	for _, e := range m.Files {
		folder := path.Dir(e.Path)
		date, dated := strings.CutPrefix(path.Base(folder), "date=")
		if at, err := time.Parse(time.DateOnly, date); !dated || !strings.HasPrefix(folder, lakeFolder) || err != nil || !at.Before(before) {
			kept = append(kept, e)
			continue
		}
		folders[folder] = true
		if err := dir.Remove(e.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("removing a file of the lake: %w", err)
		}
	}
	for folder := range folders {
		_ = dir.Remove(folder) // which somebody else may have put a file into
	}
	if len(folders) == 0 {
		return 0, nil
	}
	m.Files = kept
	m.Days = slices.DeleteFunc(m.Days, func(d Day) bool { return d.Date < before.Format(time.DateOnly) })
	return len(folders), m.write(dir)
}
