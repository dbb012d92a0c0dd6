package imports_test

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/deploy/imports"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/restate"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a log in a broker, tables in an engine, and an importer between them.
type fixture struct {
	*testing.T
	cfg   stream.Config
	log   *cutLog
	store *history.Store
	dir   string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{T: t, cfg: stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}, dir: t.TempDir()}
	client, err := w.cfg.NewProducer()
	w.must(err)
	defer client.Close()
	w.must(stream.CreateTopics(t.Context(), client, schemas.Topics, 1, stream.ClusterTopicConfigs))
	log, err := outbox.NewImportLog(w.cfg, producers.WallClock{})
	w.must(err)
	t.Cleanup(log.Close)
	w.log = &cutLog{ImportLog: log, left: -1}
	w.newTables()
	return w
}

// tables are those of all tests: to make them takes longer than a test.
var tables struct {
	once  sync.Once
	store *history.Store
}

// newTables begins with empty tables.
func (w *fixture) newTables() {
	w.Helper()
	tables.once.Do(func() {
		database, way := enginetest.KeptDatabase(w.T)
		store, err := history.Open(w.Context(), history.Config{Database: database, Transport: way})
		w.must(err)
		_, err = store.Migrate(w.Context())
		w.must(err)
		tables.store = store
	})
	if w.store = tables.store; w.store == nil {
		w.Fatal("there are no tables: an earlier test says why")
	}
	for _, table := range []string{"backfill", "past_marks", "past_folds", "past_candles", "imports", "dead_letters", "restatements"} {
		w.must(w.store.Conn().Exec(w.Context(), "TRUNCATE TABLE "+table))
	}
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// cutLog ends after some more records, as a death does: what came before is kept.
type cutLog struct {
	*outbox.ImportLog
	left int // -1: never
}

var errCut = errors.New("cut")

func (l *cutLog) take(n int) int {
	if l.left < 0 || l.left >= n {
		if l.left >= 0 {
			l.left -= n
		}
		return n
	}
	n, l.left = l.left, 0
	return n
}

func (l *cutLog) Write(ctx context.Context, recs []*eventsv1.BackfillRecord) (map[int32]int64, error) {
	n := l.take(len(recs))
	ends, err := l.ImportLog.Write(ctx, recs[:n])
	if err == nil && n < len(recs) {
		err = errCut
	}
	return ends, err
}

func (l *cutLog) WriteDeadLetters(ctx context.Context, letters []*eventsv1.DeadLetter) error {
	n := l.take(len(letters))
	err := l.ImportLog.WriteDeadLetters(ctx, letters[:n])
	if err == nil && n < len(letters) {
		err = errCut
	}
	return err
}

// run imports and brings the tables to the end of the log.
func (w *fixture) run(r imports.Request) (lines []imports.FileLine, result imports.Result, err error) {
	w.Helper()
	lines, result, err = w.attempt(r)
	w.sink()
	return lines, result, err
}

// attempt imports into the log alone.
func (w *fixture) attempt(r imports.Request) (lines []imports.FileLine, result imports.Result, err error) {
	w.Helper()
	importer := &imports.Importer{
		Log: w.log, Store: w.store, Clock: producers.WallClock{}, Room: func(context.Context) bool { return true },
		Emit: func(line any) error {
			if l, ok := line.(imports.FileLine); ok {
				lines = append(lines, l)
			}
			return nil
		},
	}
	result, err = importer.Run(w.Context(), r)
	return lines, result, err
}

// imported is run for one file that is imported.
func (w *fixture) imported(r imports.Request) imports.FileLine {
	w.Helper()
	lines, _, err := w.run(r)
	w.must(err)
	if len(lines) != 1 || lines[0].State != imports.StateImported {
		w.Fatalf("importing %v: got %+v", r.Files, lines)
	}
	return lines[0]
}

// sink fills the tables with all that the log has, records what is restated by it, and folds the past.
func (w *fixture) sink() {
	w.Helper()
	batch := w.read(schemas.TopicBackfillRaw, schemas.TopicReferenceRawDead)
	restatements := restate.Sources{Log: w.cfg, History: w.store, Logger: slog.New(slog.DiscardHandler)}
	w.must(restatements.Record(w.Context(), batch))
	w.must(restatements.Close(w.Context()))
	w.must(batch.Insert(w.Context(), w.store, ""))
	w.must(w.read(schemas.TopicRestatements).Insert(w.Context(), w.store, ""))
	fold := past.NewFold(w.store)
	for folded := -1; folded != 0; {
		var err error
		folded, err = fold.Pass(w.Context())
		w.must(err)
	}
}

// read makes a batch of all that the log has of topics.
func (w *fixture) read(topics ...string) *rows.Batch {
	w.Helper()
	batch := &rows.Batch{}
	for _, name := range topics {
		starts, ends, err := w.cfg.LogBounds(w.Context(), name)
		w.must(err)
		for p := range starts[name] {
			w.must(stream.ReadRange(w.Context(), w.cfg, name, p, starts[name][p], ends[name][p], func(r *kgo.Record) error {
				record, err := schemas.DecodeRecord(name, r.Value)
				if err == nil {
					batch.Add(rows.Place{Topic: name, Partition: p, Offset: r.Offset}, record)
				}
				return err
			}))
		}
	}
	return batch
}

// table reads a statement, each row as a line.
func (w *fixture) table(query string) string {
	w.Helper()
	out, err := w.store.Output(w.Context(), query+" FORMAT TSV")
	w.must(err)
	defer out.Close()
	var text strings.Builder
	buffer := make([]byte, 64<<10)
	for {
		n, err := out.Read(buffer)
		text.Write(buffer[:n])
		if err != nil {
			return text.String()
		}
	}
}

// all is what the tables say of imports, but for when that was and where it lies in the log.
func (w *fixture) all() string {
	w.Helper()
	db := w.store.Database()
	return w.table("SELECT coin_id, quote_id, producer, venue, symbol, seconds, start, base, quote, open, high, low, close, volume, file, line, withdrawn FROM "+db+".backfill FINAL ORDER BY ALL") +
		w.table("SELECT coin_id, seconds, start, open, high, low, close, volume, volume_usd, priced, imported, quotes, rates FROM "+db+".past_candles FINAL ORDER BY ALL") +
		w.table("SELECT file, name, size, format, venue, symbol, base, quote, coin_id, seconds, rows, first_start, last_start, markets, bad_rows, replaces, withdrawn FROM "+db+".imports FINAL ORDER BY ALL") +
		w.table("SELECT event_id, source, reason, detail, payload, count() FROM "+db+".dead_letters FINAL GROUP BY ALL ORDER BY ALL")
}

// file writes a file to import.
func (w *fixture) file(name, content string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.WriteFile(path, []byte(content), 0o600))
	return path
}

// zipped writes a zip file with files, by their names.
func (w *fixture) zipped(name string, files map[string]string) string {
	w.Helper()
	f, err := os.Create(filepath.Join(w.dir, name))
	w.must(err)
	defer f.Close()
	archive := zip.NewWriter(f)
	for _, inside := range slices.Sorted(maps.Keys(files)) {
		entry, err := archive.Create(inside)
		w.must(err)
		_, err = fmt.Fprint(entry, files[inside])
		w.must(err)
	}
	w.must(archive.Close())
	return f.Name()
}

func sample(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (w *fixture) klines(files ...string) imports.Request {
	return imports.Request{Format: "binance-klines", Files: files}
}

func (w *fixture) plain(files ...string) imports.Request {
	return imports.Request{Format: "candles", Files: files}
}
