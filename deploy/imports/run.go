package imports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
)

// Importer imports. Of one log one may work at a time; its methods are used by one goroutine.
type Importer struct {
	Log   Log
	Store *history.Store
	Clock producers.Clock
	// Room waits while the disk has no room for more, and is false once ctx has ended.
	Room func(ctx context.Context) bool
	// Emit receives Progress and FileLine.
	Emit func(line any) error
}

// Progress is how far an import is: in lines of a file while it is checked and candles while it is written.
type Progress struct {
	processors.ReplayProgress
	// Bytes of TotalBytes of all files are done.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
}

// States of a file.
const (
	StateImported = "imported"
	// StateKnown: it was imported before.
	StateKnown = "known"
	// StateChecked: a dry run found nothing against it.
	StateChecked = "checked"
	StateRefused = "refused"
)

// FileLine is what became of a file.
type FileLine struct {
	File   string `json:"file"` // its path
	State  string `json:"state"`
	SHA256 string `json:"sha256,omitempty"`
	// Reason is why it was refused.
	Reason string `json:"reason,omitempty"`
	// Name and Imported are what a known file was called, and when.
	Name     string    `json:"name,omitempty"`
	Imported time.Time `json:"imported,omitzero"`
	// Markets are the first twenty of MarketCount.
	Markets     []MarketLine `json:"markets,omitempty"`
	MarketCount int          `json:"marketCount,omitempty"`
	Rows        int64        `json:"rows"`
	// Written candles are now in the log that were not before: fewer than Rows if an import was resumed.
	Written int64 `json:"written"`
	BadRows int64 `json:"badRows"`
	// Passed are the first twenty of PassedCount markets that were passed over, since their coin or quote asset is not known; PassedLines are
	// how many lines are theirs.
	Passed      []PassedLine `json:"passed,omitempty"`
	PassedCount int          `json:"passedCount,omitempty"`
	PassedLines int64        `json:"passedLines,omitempty"`
	// Replaces is the SHA-256 of the file of the same name whose candles it replaces, and Withdrawn how many of these it no longer has.
	Replaces  string `json:"replaces,omitempty"`
	Withdrawn int64  `json:"withdrawn,omitempty"`
}

// MarketLine is a market in a file.
type MarketLine struct {
	Venue    string    `json:"venue"`
	Symbol   string    `json:"symbol"`
	Base     string    `json:"base"`
	Quote    string    `json:"quote"`
	Coin     string    `json:"coin"`
	Interval string    `json:"interval"`
	Rows     int64     `json:"rows"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	// Compared says how its prices lie to what was known; empty if nothing was.
	Compared string `json:"compared,omitempty"`
}

// PassedLine is a market that was passed over, and why.
type PassedLine struct {
	Venue  string `json:"venue"`
	Symbol string `json:"symbol"`
	Reason string `json:"reason"`
}

// Result sums up a command.
type Result struct {
	Files    int     `json:"files"`
	Imported int     `json:"imported"`
	Known    int     `json:"known"`
	Checked  int     `json:"checked"`
	Refused  int     `json:"refused"`
	Rows     int64   `json:"rows"`
	Written  int64   `json:"written"`
	BadRows  int64   `json:"badRows"`
	Seconds  float64 `json:"seconds"`
}

const (
	// shownMarkets bounds a line.
	shownMarkets = 20
	// atOnce is how many records are written at once.
	atOnce = 2000
	// maxBehind is how many records of a partition may be in the log that the tables do not have yet: the embedded broker keeps some
	// megabytes only.
	maxBehind = 50_000
	// patience is how long the tables may make no progress meanwhile.
	patience = 30 * time.Second
)

// refusal is of one file: others may be imported.
type refusal struct{ error }

// Run imports the files, one after the other. One that is refused does not keep others from being imported; the error names how many
// there were.
func (x *Importer) Run(ctx context.Context, r Request) (Result, error) {
	if err := r.Validate(); err != nil {
		return Result{}, err
	}
	began := time.Now()
	known, err := readState(ctx, x.Log)
	if err != nil {
		return Result{}, err
	}
	j := &job{Importer: x, request: r, known: known, began: began, ends: map[int32]int64{}}
	for _, path := range r.Files {
		if info, err := os.Stat(path); err == nil {
			j.total += info.Size()
		}
	}
	result := Result{Files: len(r.Files)}
	for _, path := range r.Files {
		line, err := j.file(ctx, path)
		var refused refusal
		if errors.As(err, &refused) && ctx.Err() == nil {
			line.State, line.Reason, err = StateRefused, refused.Error(), nil
		}
		if err != nil {
			return result, fmt.Errorf("importing %s: %w", path, err)
		}
		for state, count := range map[string]*int{StateImported: &result.Imported, StateKnown: &result.Known, StateChecked: &result.Checked, StateRefused: &result.Refused} {
			if line.State == state {
				*count++
			}
		}
		if line.State != StateRefused {
			result.Rows, result.Written, result.BadRows = result.Rows+line.Rows, result.Written+line.Written, result.BadRows+line.BadRows
		}
		j.done += j.size
		j.size = 0
		if err := x.Emit(line); err != nil {
			return result, err
		}
	}
	result.Seconds = time.Since(began).Seconds()
	return result, nil
}

// job is an import at work.
type job struct {
	*Importer
	request Request
	known   *state
	// ends are the offsets after what was written, by partition.
	ends map[int32]int64

	began, reported time.Time
	// done of total bytes are of finished files, size of the one at work.
	done, size, total int64
}

func (j *job) file(ctx context.Context, path string) (FileLine, error) {
	line := FileLine{File: path}
	file, err := open(ctx, path)
	if err != nil {
		return line, refusal{err}
	}
	defer file.Close()
	j.size = file.size
	line.SHA256 = file.sha256.String()
	if f := j.known.whole(file.sha256); f != nil {
		line.State, line.Name, line.Imported, line.BadRows = StateKnown, f.Name, time.Unix(0, f.IngestTime).UTC(), int64(f.BadRows)
		for _, of := range j.known.files[file.sha256] {
			line.Rows += int64(of.Rows)
		}
		return line, nil
	}
	now := j.Clock.Now()
	found, err := newSurvey(ctx, j.request, file, now, func(rows, read int64) error {
		return j.report("check "+file.name, rows, rows*max(file.unpacked, 1)/max(read, 1), float64(read)/float64(max(file.unpacked, 1))/2)
	})
	if err != nil {
		return line, refusal{err}
	}
	line.Rows, line.BadRows, line.MarketCount = found.rows, found.bad, len(found.order)
	line.PassedCount, line.PassedLines = len(found.passed), found.passedLines
	for _, p := range found.passed[:min(len(found.passed), shownMarkets)] {
		line.Passed = append(line.Passed, PassedLine{p.venue, p.symbol, p.why.Error()})
	}
	if f := j.known.all(file.sha256, found); f != nil {
		line.State, line.Name, line.Imported = StateKnown, f.Name, time.Unix(0, f.IngestTime).UTC()
		return line, nil
	}
	if err := j.compare(ctx, found, &line); err != nil {
		return line, err
	}
	w := &writing{job: j, file: file, found: found, now: now, replaced: map[marketKey]*eventsv1.ImportFile{}, of: map[marketKey]*surveyed{}}
	for _, of := range found.order {
		key := of.finalKey()
		w.of[key] = of
		if f := j.known.replaced(file.name, file.sha256, key, of.first, of.last); f != nil {
			w.replaced[key] = f
			line.Replaces = digest(f.Sha256).String()
		}
	}
	if j.request.DryRun {
		line.State = StateChecked
		return line, nil
	}
	line.State = StateImported
	line.Written, line.Withdrawn, err = w.run(ctx)
	return line, err
}

// finalKey is the key of a market whose interval was found.
func (s *surveyed) finalKey() marketKey { return marketKey{s.venue, s.symbol, s.interval} }

// compare refuses prices that are far from what is known, unless they are confirmed.
func (j *job) compare(ctx context.Context, found *survey, line *FileLine) error {
	compared, err := knownPrices{j.Store}.compare(ctx, found.order)
	if err != nil {
		return err
	}
	for i, of := range found.order {
		c := compared[i]
		if len(line.Markets) < shownMarkets {
			m := MarketLine{
				Venue: of.venue, Symbol: of.symbol, Base: of.base, Quote: of.quote, Coin: of.coinID, Interval: adapter.Interval(of.interval), Rows: int64(of.rows),
				First: time.Unix(0, of.first).UTC(), Last: time.Unix(0, of.last).UTC(),
			}
			if c.compared > 0 {
				m.Compared = c.String()
			}
			line.Markets = append(line.Markets, m)
		}
		if c.far() && !j.request.Confirm {
			return refusal{fmt.Errorf("%s: %s; if the file is right, import it with --confirm", of.market, c)}
		}
	}
	return nil
}

// report emits the progress, about once a second; share is how much of the file is done.
func (j *job) report(step string, done, total int64, share float64) error {
	if time.Since(j.reported) < time.Second {
		return nil
	}
	j.reported = time.Now()
	p := Progress{ReplayProgress: processors.ReplayProgress{Step: step, Done: done, Total: max(total, done)}, TotalBytes: max(j.total, j.done+j.size)}
	p.Bytes = min(j.done+int64(share*float64(j.size)), p.TotalBytes)
	if seconds := time.Since(j.began).Seconds(); seconds > 0 && p.Bytes > 0 {
		p.Left = seconds * float64(p.TotalBytes-p.Bytes) / float64(p.Bytes)
		p.Rate = float64(done) / seconds
	}
	return j.Emit(p)
}

// awaitTables waits while the tables lack more than maxBehind records of a partition.
func (j *job) awaitTables(ctx context.Context) error {
	var behind int64
	advanced := time.Now()
	for {
		at, err := j.Store.Progress(ctx, schemas.TopicBackfillRaw, 0)
		if err != nil {
			return err
		}
		most := int64(0)
		for partition, end := range j.ends {
			most = max(most, end-at[partition].Next)
		}
		switch {
		case most <= maxBehind:
			return nil
		case most != behind:
			behind, advanced = most, time.Now()
		case time.Since(advanced) > patience:
			return fmt.Errorf("the tables lack %d records of %s and take no more: start the instance, or look at its health; given again, the import goes on", most, schemas.TopicBackfillRaw)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// write writes records once there is room for them, and the tables are not too far behind.
func (j *job) write(ctx context.Context, recs []*eventsv1.BackfillRecord) error {
	if len(recs) == 0 {
		return nil
	}
	if !j.Room(ctx) {
		return ctx.Err()
	}
	if err := j.awaitTables(ctx); err != nil {
		return err
	}
	ends, err := j.Log.Write(ctx, recs)
	if err != nil {
		return err
	}
	maps.Copy(j.ends, ends)
	return nil
}

// writing is the second reading of a file.
type writing struct {
	*job
	file     *opened
	found    *survey
	now      time.Time
	of       map[marketKey]*surveyed
	replaced map[marketKey]*eventsv1.ImportFile
}

// run writes what the log does not have of the file, and returns how many candles were written, and how many of a file that it replaces
// are gone.
func (w *writing) run(ctx context.Context) (written, withdrawn int64, err error) {
	if err := w.deadLetters(ctx); err != nil {
		return 0, 0, err
	}
	gone := map[marketKey]map[int64]standing{}
	if len(w.replaced) > 0 {
		if gone, err = standings(ctx, w.Log, w.file.sha256, w.replaced, w.of); err != nil {
			return 0, 0, err
		}
	}
	if written, err = w.candles(ctx, gone); err != nil {
		return written, 0, err
	}
	// What was hashed first and what was written must be one file.
	switch sum, err := w.file.hash(ctx); {
	case err != nil:
		return written, 0, err
	case sum != w.file.sha256:
		return written, 0, fmt.Errorf("the file was changed while it was read: import it again; what it had before stays unfinished")
	}
	if err := w.withdraw(ctx, gone); err != nil {
		return written, 0, err
	}
	for _, starts := range gone {
		withdrawn += int64(len(starts))
	}
	return written, withdrawn, w.finish(ctx, gone)
}

// deadLetters writes the dead letters of bad lines that the log does not have.
func (w *writing) deadLetters(ctx context.Context) error {
	if len(w.found.letters) == 0 {
		return nil
	}
	there := map[[16]byte]bool{}
	err := w.Log.DeadLetters(ctx, source, func(l *eventsv1.DeadLetter) {
		if len(l.EventId) == 16 {
			there[[16]byte(l.EventId)] = true
		}
	})
	if err != nil {
		return err
	}
	letters := slices.DeleteFunc(w.found.letters, func(l *eventsv1.DeadLetter) bool { return there[[16]byte(l.EventId)] })
	if len(letters) == 0 {
		return nil
	}
	return w.Log.WriteDeadLetters(ctx, letters)
}

// candles writes those after the last line of each market that the log has, and takes the starts that the file has out of gone.
func (w *writing) candles(ctx context.Context, gone map[marketKey]map[int64]standing) (written int64, err error) {
	reading, err := newReading(w.request, w.file, w.now, w.found)
	if err != nil {
		return 0, err
	}
	rows := int64(0)
	batch := make([]*eventsv1.BackfillRecord, 0, atOnce)
	write := func(of completed) error {
		rows++
		m, c := of.market, of.candle
		key := marketKey{m.venue, m.symbol, m.interval}
		delete(gone[key], c.Start)
		if there := w.known.markets[fileMarket{w.file.sha256, key}]; there != nil && of.line <= there.line {
			return nil
		}
		c.File, c.Line, c.IngestTime = w.file.sha256[:], of.line, w.Clock.Now().UnixNano()
		if batch = append(batch, record(&eventsv1.BackfillRecord_Candle{Candle: c})); len(batch) < atOnce {
			return nil
		}
		if err := w.write(ctx, batch); err != nil {
			return err
		}
		written, batch = written+int64(len(batch)), batch[:0]
		return w.report("import "+w.file.name, rows, w.found.rows, 0.5+float64(rows)/float64(w.found.rows)/2)
	}
	err = w.file.lines(ctx, func(number uint64, fields []string, _ string, _ int64) error {
		// The survey has put bad lines into the dead letters.
		if _, err := reading.next(number, fields, write); err != nil && !isLine(err) && !errors.Is(err, errPassed) {
			return fmt.Errorf("line %d: %w", number, err)
		}
		return nil
	})
	if err == nil {
		if err = reading.finish(write); isLine(err) {
			err = nil
		}
	}
	if err != nil {
		return written, err
	}
	return written + int64(len(batch)), w.write(ctx, batch)
}

func record(candle *eventsv1.BackfillRecord_Candle) *eventsv1.BackfillRecord {
	return &eventsv1.BackfillRecord{Producer: source, Body: candle}
}

// withdraw records that candles that an earlier file of the name had and this one has not are gone.
func (w *writing) withdraw(ctx context.Context, gone map[marketKey]map[int64]standing) error {
	var batch []*eventsv1.BackfillRecord
	for _, of := range w.found.order {
		starts := gone[of.finalKey()]
		for _, start := range slices.Sorted(maps.Keys(starts)) {
			if starts[start] != ofEarlier {
				continue
			}
			batch = append(batch, record(&eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
				Venue: of.venue, Symbol: of.symbol, Base: of.base, Quote: of.quote, Start: start, Interval: uint32(of.interval / time.Second),
				IngestTime: w.Clock.Now().UnixNano(), Origin: string(schemas.OriginImport), File: w.file.sha256[:], Withdrawn: true,
			}}))
			if len(batch) < atOnce {
				continue
			}
			if err := w.write(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return w.write(ctx, batch)
}

// finish records for every market that its candles are written.
func (w *writing) finish(ctx context.Context, gone map[marketKey]map[int64]standing) error {
	var batch []*eventsv1.BackfillRecord
	for _, of := range w.found.order {
		key := of.finalKey()
		if w.known.files[w.file.sha256][key] != nil {
			continue
		}
		f := &eventsv1.ImportFile{
			Name: w.file.name, Sha256: w.file.sha256[:], Size: uint64(w.file.size), Format: w.request.Format,
			Venue: of.venue, Symbol: of.symbol, Base: of.base, Quote: of.quote, Interval: uint32(of.interval / time.Second),
			Rows: of.rows, FirstTime: of.first, LastTime: of.last, Markets: uint32(len(w.found.order)), BadRows: uint64(w.found.bad),
			PassedMarkets: uint32(len(w.found.passed)), Withdrawn: uint64(len(gone[key])), IngestTime: w.Clock.Now().UnixNano(),
		}
		if earlier := w.replaced[key]; earlier != nil {
			f.Replaces = earlier.Sha256
		}
		batch = append(batch, &eventsv1.BackfillRecord{Producer: source, Body: &eventsv1.BackfillRecord_ImportFile{ImportFile: f}})
	}
	for part := range slices.Chunk(batch, atOnce) {
		if err := w.write(ctx, part); err != nil {
			return err
		}
	}
	for _, rec := range batch {
		w.known.apply(rec)
	}
	return nil
}
