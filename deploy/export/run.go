package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
)

// Disk says what is free where files are written.
type Disk interface {
	// Lacks is how many bytes the disk of a directory lacks to be as free as ingest needs it; 0: none.
	Lacks(dir string) (int64, error)
}

// Exporter exports. Its methods are used by one goroutine.
type Exporter struct {
	Store *history.Store
	Disk  Disk
	// Now is the time of the clock, beyond which nothing is exported.
	Now func() time.Time
	// Sources are the polled sources that the program knows, with their terms.
	Sources []poll.Source
	// Emit receives *processors.ReplayProgress and FileLine.
	Emit func(line any) error
}

// FileLine is one finished file.
type FileLine struct {
	File  string `json:"file"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	// Kept means that it was finished before, and found unchanged.
	Kept bool `json:"kept,omitempty"`
}

// Result is what an export has come to.
type Result struct {
	Exported string    `json:"exported"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	// Files are all of them, Kept those that were there before.
	Files int   `json:"files"`
	Kept  int   `json:"kept"`
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
	// LeftOut are sources whose rows are not in the files, since their terms forbid to pass them on.
	LeftOut []string `json:"leftOut,omitempty"`
	Seconds float64  `json:"seconds"`
}

const (
	// settle is how long after a time of the log all rows of that time are in the tables: a minute of a fold is many rows, with
	// the time of its end each.
	settle = 2 * time.Minute
	// attempts are made at a file whose rows change meanwhile.
	attempts = 3
)

// Run exports what is asked for. It resumes an export that was ended.
func (x *Exporter) Run(ctx context.Context, r Request) (Result, error) {
	began := time.Now()
	if err := r.Validate(); err != nil {
		return Result{}, err
	}
	d, _ := DatasetNamed(r.Dataset)
	f, _ := FormatNamed(r.Format)
	dir, release, err := openDir(r.Dir)
	if err != nil {
		return Result{}, err
	}
	defer release()
	manifest, err := readManifest(dir, r.OwnUse)
	if err != nil {
		return Result{}, err
	}
	if r.lake && manifest.has(r) { // by another process, since it was looked
		return Result{Exported: d.Name, From: r.From.UTC(), To: r.To.UTC()}, nil
	}
	if other := manifest.otherFormat(r); r.lake && other != "" {
		return Result{}, fmt.Errorf("the lake in %s has %s as %s, and %s is asked for, which readers cannot take from one directory: name another directory in lake.dir, or %s in lake.format",
			r.Dir, d.Name, other, f.Name, other)
	}
	position, closed, err := x.position(ctx, d)
	if err != nil {
		return Result{}, err
	}
	if r.To.IsZero() {
		r.To = closed.Truncate(day)
	}
	if err := complete(r, closed); err != nil {
		return Result{}, err
	}
	terms, leftOut, err := x.terms(ctx, d, r)
	if err != nil {
		return Result{}, err
	}
	columns, err := columnsOf(ctx, x.Store, d, f)
	if err != nil {
		return Result{}, err
	}
	pieces, err := plan(ctx, x.Store, d, f, r, leftOut)
	if err != nil {
		return Result{}, err
	}
	job := &job{Exporter: x, request: r, dataset: d, format: f, dir: dir, manifest: manifest, position: position, terms: terms, leftOut: leftOut, columns: columns, began: began}
	result := Result{Exported: d.Name, From: r.From.UTC(), To: r.To.UTC(), LeftOut: leftOut}
	switch {
	case len(pieces) == 0 && r.lake: // it may get rows: a lake has no word on it
		return result, nil
	case len(pieces) == 0: // that there is nothing is an answer too
		return result, manifest.write(dir)
	}
	for _, p := range pieces {
		job.total += p.rows
	}
	for _, p := range pieces {
		line, err := job.file(ctx, p)
		if err != nil {
			return result, err
		}
		result.Files, result.Rows, result.Bytes = result.Files+1, result.Rows+line.Rows, result.Bytes+line.Bytes
		if line.Kept {
			result.Kept++
		}
		job.done += p.rows
		if err := errors.Join(x.Emit(line), job.report(0)); err != nil {
			return result, err
		}
	}
	if r.lake {
		manifest.Days = append(manifest.Days, Day{Dataset: d.Name, Date: r.From.UTC().Format(time.DateOnly), Files: result.Files, Rows: result.Rows})
		if err := manifest.write(dir); err != nil {
			return result, err
		}
	}
	result.Seconds = time.Since(began).Seconds()
	return result, nil
}

// openDir makes the directory, which one export uses at a time.
func openDir(name string) (*os.Root, func(), error) {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, nil, fmt.Errorf("making the directory of the export: %w", err)
	}
	lock := flock.New(filepath.Join(name, ".lock"))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another export is writing into it")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("locking %s: %w", name, err)
	}
	dir, err := os.OpenRoot(name)
	if err != nil {
		_ = lock.Unlock()
		return nil, nil, fmt.Errorf("opening the directory of the export: %w", err)
	}
	return dir, func() { _, _ = dir.Close(), lock.Unlock() }, nil
}

// position is how far the tables of a dataset have come in the log, and the time before which they have every row.
func (x *Exporter) position(ctx context.Context, d Dataset) (map[string][]Offset, time.Time, error) {
	closed := x.Now()
	if d.minutes {
		until, err := read.From(x.Store).ClosedUntil(ctx)
		if err != nil {
			return nil, closed, err
		}
		closed = earlier(closed, until)
	}
	position := map[string][]Offset{}
	for _, name := range d.Topics {
		topic, err := schemas.TopicNamed(name)
		if err != nil {
			return nil, closed, err
		}
		at, err := x.Store.Progress(ctx, name, 0)
		if err != nil {
			return nil, closed, err
		}
		position[name] = []Offset{}
		for partition := range topic.Partitions {
			p, ok := at[partition]
			if ok {
				position[name] = append(position[name], Offset{partition, p.Next})
			}
			if !topic.Clockless { // where no clock is written, silence means nothing
				closed = earlier(closed, time.Unix(0, p.LogTime).Add(-settle))
			}
		}
	}
	return position, closed.UTC(), nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// complete fails where a range ends after what the tables have whole.
func complete(r Request, closed time.Time) error {
	until := closed.Truncate(time.Second)
	switch {
	case !until.After(time.Unix(0, 0)):
		return fmt.Errorf("the tables do not have all partitions of the log of %s yet: wait until the instance is ready", r.Dataset)
	case !r.From.Before(r.To):
		return fmt.Errorf("no whole day of %s has ended since --from %s: the tables are complete up to %s; name the end with --to",
			r.Dataset, r.From.UTC().Format(time.RFC3339), until.Format(time.RFC3339))
	case r.To.After(until):
		return fmt.Errorf("--to %s is too late: the tables of %s are complete up to %s", r.To.UTC().Format(time.RFC3339), r.Dataset, until.Format(time.RFC3339))
	}
	return nil
}

// job is an export at work.
type job struct {
	*Exporter
	request  Request
	dataset  Dataset
	format   Format
	dir      *os.Root
	manifest *Manifest
	position map[string][]Offset
	terms    map[string]SourceTerms
	leftOut  []string
	columns  []column

	began, reported time.Time
	// done of total rows are finished; wrote rows in bytes since it began, without those that were kept.
	done, total, wrote, bytes int64
}

// file makes one file, unless it is there.
func (j *job) file(ctx context.Context, p piece) (FileLine, error) {
	if e, ok := j.manifest.entry(p.path); ok && holds(j.dir, e) {
		return FileLine{File: e.Path, Rows: e.Rows, Bytes: e.Bytes, Kept: true}, nil
	}
	if err := room(func() (int64, error) { return j.Disk.Lacks(j.dir.Name()) }); err != nil {
		return FileLine{}, err
	}
	sources, err := j.sourcesOf(ctx, p)
	if err != nil {
		return FileLine{}, err
	}
	got, err := j.write(ctx, p)
	for n := 1; n < attempts && isRows(err); n++ {
		var again []piece
		if again, err = plan(ctx, j.Store, j.dataset, j.format, Request{From: p.from, To: p.to, lake: j.request.lake}, j.leftOut); err != nil {
			break
		}
		i := slices.IndexFunc(again, func(q piece) bool { return q.path == p.path })
		if i < 0 {
			return FileLine{}, fmt.Errorf("the rows of %s went while it was written", p.path)
		}
		p.rows = again[i].rows
		got, err = j.write(ctx, p)
	}
	if err != nil {
		return FileLine{}, err
	}
	name, schema := schemaOf(j.columns)
	j.manifest.enter(Entry{
		Path: p.path, Dataset: j.dataset.Name, Format: j.format.Name, Venue: p.venue, From: p.from, To: p.to, Rows: got.rows, Bytes: got.bytes, SHA256: got.sha256,
		Schema: name, Position: j.position, Logic: logic(j.dataset), Sources: sources,
	}, schema, j.terms)
	if err := j.manifest.write(j.dir); err != nil {
		return FileLine{}, err
	}
	j.wrote, j.bytes = j.wrote+got.rows, j.bytes+got.bytes
	return FileLine{File: p.path, Rows: got.rows, Bytes: got.bytes}, nil
}

func isRows(err error) bool {
	var rows *rowsError
	return errors.As(err, &rows)
}

func (j *job) write(ctx context.Context, p piece) (writtenFile, error) {
	rows, err := j.Store.Output(ctx, selectOf(j.Store, j.dataset, j.format, j.columns, p, j.leftOut))
	if err != nil {
		return writtenFile{}, fmt.Errorf("reading the rows of %s: %w", p.path, err)
	}
	got, err := j.writeFile(ctx, j.dir, p.path, rows, j.format, namesOf(j.columns), p.rows, func(bytes int64) {
		if time.Since(j.reported) >= time.Second {
			j.reported = time.Now()
			_ = j.report(min(p.rows, j.about(bytes))) // who listens has gone: the next line reports it
		}
	})
	return got, errors.Join(err, closing(rows, err))
}

// closing gives a statement back; how it ended matters only where nothing failed before.
func closing(rows io.Closer, before error) error {
	if err := rows.Close(); before == nil {
		return err
	}
	return nil
}

// about is how many rows so many bytes are, by the files that are finished.
func (j *job) about(bytes int64) int64 {
	if j.bytes == 0 {
		return 0
	}
	return int64(float64(bytes) * float64(j.wrote) / float64(j.bytes))
}

// report writes the progress, with some rows of a file that is being written.
func (j *job) report(more int64) error {
	line := &processors.ReplayProgress{Step: "export " + j.dataset.Name, Done: j.done + more, Total: j.total}
	if seconds := time.Since(j.began).Seconds(); seconds > 0 && line.Done > 0 {
		line.Rate = float64(line.Done) / seconds
		line.Left = math.Max(0, float64(line.Total-line.Done)/line.Rate)
	}
	return j.Emit(line)
}

// logic is the version of the logic of each derived topic of a dataset.
func logic(d Dataset) map[string]uint32 {
	versions := map[string]uint32{}
	for _, name := range d.Topics {
		if topic, err := schemas.TopicNamed(name); err == nil && topic.Logic > 0 {
			versions[name] = topic.Logic
		}
	}
	return versions
}

// sourcesOf are the sources of a file's rows.
func (j *job) sourcesOf(ctx context.Context, p piece) ([]string, error) {
	if j.dataset.ByVenue {
		return []string{p.venue}, nil
	}
	return sourcesOf(ctx, j.Store, j.dataset, p.from, p.to, j.leftOut)
}

func sourcesOf(ctx context.Context, store *history.Store, d Dataset, from, to time.Time, leftOut []string) ([]string, error) {
	found := map[string]bool{}
	err := each(ctx, store, "SELECT source, '' FROM ("+inDatabase(store, d.sourcesWithin(from, to, leftOut))+") SETTINGS "+bounds, func(row [2]string) {
		if row[0] != "" {
			found[row[0]] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sources of %s: %w", d.Name, err)
	}
	return slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(found)))), nil
}

// terms are those of all sources, and which of them are left out. It fails where rows are made of values that must not be
// passed on.
func (x *Exporter) terms(ctx context.Context, d Dataset, r Request) (map[string]SourceTerms, []string, error) {
	terms, err := x.allTerms(ctx)
	if err != nil || r.OwnUse || d.ByVenue {
		return terms, nil, err
	}
	used, err := sourcesOf(ctx, x.Store, d, r.From, r.To, nil)
	if err != nil {
		return nil, nil, err
	}
	var leftOut, reasons []string
	for _, name := range used {
		if t := terms[name]; t.OwnUse != "" && !t.Simulated {
			leftOut = append(leftOut, name)
			reasons = append(reasons, name+" ("+t.OwnUse+")")
		}
	}
	if len(leftOut) > 0 && d.source == "" {
		allowing := "--own-use"
		if r.lake {
			allowing = "lake.own_use"
		}
		return nil, nil, fmt.Errorf("%s is made of values that must not be passed on, of %s; %s exports it for your own use", d.Name, strings.Join(reasons, ", "), allowing)
	}
	return terms, leftOut, nil
}

// allTerms are what sources declared of themselves last, with what the program knows of them.
func (x *Exporter) allTerms(ctx context.Context) (map[string]SourceTerms, error) {
	terms := map[string]SourceTerms{}
	rows, err := x.Store.Conn().Query(ctx, "SELECT toString(source), name, license, terms, attribution, simulated FROM sources FINAL")
	if err != nil {
		return nil, fmt.Errorf("reading the terms of the sources: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var source string
		var t SourceTerms
		if err := rows.Scan(&source, &t.Name, &t.License, &t.Terms, &t.Attribution, &t.Simulated); err != nil {
			return nil, fmt.Errorf("reading the terms of the sources: %w", err)
		}
		terms[source] = t
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the terms of the sources: %w", err)
	}
	for _, s := range x.Sources {
		t, ok := terms[s.Slug]
		if !ok { // not yet declared in this log
			t = SourceTerms{Name: s.Name, License: s.License, Terms: s.Terms, Attribution: s.Attribution}
		}
		t.OwnUse = s.OwnUse
		terms[s.Slug] = t
	}
	return terms, nil
}
