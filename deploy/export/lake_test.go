package export_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/marketlog/marketlog/deploy/export"
)

// lake is one of the fixture's in a directory, an hour after the last of its days has ended.
func (w *fixture) lake(dir string, datasets ...string) *export.Lake {
	return &export.Lake{
		Exporter: w.exporter, Dir: dir, Datasets: datasets, Format: "parquet", OwnUse: true, Days: 3, Turns: &export.Turns{},
		Hold: func() string { return "" }, Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
	}
}

// round lets a lake export what is due, once.
func (w *fixture) round(l *export.Lake) []export.LakeStatus {
	w.Helper()
	export.Round(w.Context(), l)
	return l.Status()
}

// whole lets a lake export all of its days.
func (w *fixture) whole(l *export.Lake) {
	w.Helper()
	for _, s := range w.round(l) {
		if s.Due > 0 || !s.Newest.Equal(lastDay.AddDate(0, 0, -1)) {
			w.Errorf("the lake came to %+v", s)
		}
	}
}

// The days of the tables come into directories that readers of hive partitions know, and nothing else does; given to a new process,
// they are not written again. What is older than is kept goes.
func TestALakeIsReadByItsPartitions(t *testing.T) {
	w := sharedFixture(t)
	dir := filepath.Join(t.TempDir(), "lake")
	if all := w.round(w.lake(dir, "prices", "trades", "sentiment")); all[0].Due+all[1].Due+all[2].Due > 0 || !all[2].Newest.IsZero() || all[2].Failing != "" {
		t.Errorf("the lake came to %+v", all)
	}
	var want []string
	for _, date := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
		want = append(want, "dataset=prices/date="+date+"/prices.parquet", "dataset=trades/date="+date+"/binance.parquet", "dataset=trades/date="+date+"/okx.parquet")
	}
	slices.Sort(want)
	files := func() (found []string) {
		for name := range w.tree(dir) {
			if name != ".lock" && name != export.ManifestFile {
				found = append(found, name)
			}
		}
		return slices.Sorted(slices.Values(found))
	}
	if diff := cmp.Diff(want, files()); diff != "" {
		t.Fatalf("the files differ (-want +got):\n%s", diff)
	}
	m := w.manifest(dir)
	whole := []export.Day{
		{Dataset: "prices", Date: "2026-03-03", Files: 1, Rows: 40}, {Dataset: "trades", Date: "2026-03-03", Files: 2, Rows: 80},
		{Dataset: "prices", Date: "2026-03-02", Files: 1, Rows: 40}, {Dataset: "trades", Date: "2026-03-02", Files: 2, Rows: 80},
		{Dataset: "prices", Date: "2026-03-01", Files: 1, Rows: 40}, {Dataset: "trades", Date: "2026-03-01", Files: 2, Rows: 80},
	}
	if diff := cmp.Diff(whole, m.Days); diff != "" {
		t.Errorf("the days differ (-want +got):\n%s", diff)
	}
	for _, e := range m.Files {
		if e.SHA256 != w.tree(dir)[e.Path] || len(e.Sources) == 0 || len(e.Position) == 0 || e.To.Sub(e.From) != 24*time.Hour {
			t.Errorf("the manifest has %+v", e)
		}
	}
	type trade struct {
		Venue string    `parquet:"venue"`
		At    time.Time `parquet:"ingest_time,timestamp(nanosecond)"`
	}
	rows := 0
	for _, name := range want {
		if !strings.HasPrefix(name, "dataset=trades/") {
			continue
		}
		trades, err := parquet.ReadFile[trade](filepath.Join(dir, name))
		w.must(err)
		for _, row := range trades {
			if !strings.Contains(name, "/date="+row.At.UTC().Format(time.DateOnly)+"/"+row.Venue+".") {
				t.Errorf("%s has %+v", name, row)
			}
		}
		rows += len(trades)
	}
	if rows != 240 {
		t.Errorf("the partitions of trades have %d rows, want 240", rows)
	}

	// A day that was taken away is not exported again; a file that a kill left unfinished is, and the files of another export stay.
	w.run(request("fiat", "parquet", dir))
	w.must(os.RemoveAll(filepath.Join(dir, "dataset=prices", "date=2026-03-01")))
	before := w.tree(dir)
	w.whole(w.lake(dir, "prices", "trades"))
	if diff := cmp.Diff(before, w.tree(dir)); diff != "" {
		t.Errorf("a second process wrote (-before +after):\n%s", diff)
	}
	l := w.lake(dir, "prices", "trades")
	l.Days, l.KeepDays = 1, 2
	w.whole(l)
	if days := w.manifest(dir).Days; len(days) != 4 {
		t.Errorf("the manifest keeps the days %+v, want four", days)
	}
	left := slices.DeleteFunc(files(), func(name string) bool { return strings.HasPrefix(name, "fiat/") })
	if diff := cmp.Diff(slices.DeleteFunc(want, func(name string) bool { return strings.Contains(name, "03-01") }), left); diff != "" {
		t.Errorf("the files that are kept differ (-want +got):\n%s", diff)
	}
}

// A kill in the middle of a day leaves no day that looks whole; the next process goes on with what is finished.
func TestALakeGoesOnAfterAKill(t *testing.T) {
	w := sharedFixture(t)
	whole, dir := t.TempDir(), t.TempDir()
	w.whole(w.lake(whole, "trades"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.asked = 0
	w.lacks = func(n int) int64 {
		if n == 4 { // before the second file of the second day
			cancel()
		}
		return 0
	}
	export.Round(ctx, w.lake(dir, "trades"))
	w.must(os.WriteFile(filepath.Join(dir, "file.partial"), []byte("PAR1"), 0o600))
	if m := w.manifest(dir); len(m.Days) != 1 || m.Days[0].Date != "2026-03-03" || len(m.Files) < 3 || len(m.Files) > 4 {
		t.Errorf("after the kill the manifest has %+v and %d files", m.Days, len(m.Files))
	}
	w.lacks = nil
	w.whole(w.lake(dir, "trades"))
	if diff := cmp.Diff(w.tree(whole), w.tree(dir)); diff != "" {
		t.Errorf("the lakes differ (-whole +killed):\n%s", diff)
	}
}

// A full disk, a directory that cannot be written, terms and another format are stated, and nothing is written.
func TestALakeStatesWhatFails(t *testing.T) {
	w := sharedFixture(t)
	fails := func(l *export.Lake, want string) {
		t.Helper()
		if all := w.round(l); !strings.Contains(all[0].Failing, want) {
			t.Errorf("the lake came to %+v, want %q", all, want)
		}
	}
	full := w.lake(t.TempDir(), "trades")
	w.lacks = func(int) int64 { return 4096 }
	fails(full, "exporting trades of 2026-03-03: the disk lacks 4096 bytes")
	w.lacks = nil

	file := filepath.Join(t.TempDir(), "file")
	w.must(os.WriteFile(file, nil, 0o600))
	fails(w.lake(filepath.Join(file, "lake"), "trades"), "not a directory")

	terms := w.lake(t.TempDir(), "defi")
	terms.OwnUse = false
	fails(terms, "must not be passed on, of closed (its terms forbid it); lake.own_use exports it")

	dir := t.TempDir()
	w.whole(w.lake(dir, "trades"))
	other := w.lake(dir, "trades")
	other.Format, other.Days = "csv", 3
	m := w.manifest(dir)
	w.must(os.WriteFile(filepath.Join(dir, export.ManifestFile), []byte(strings.Replace(w.text(dir), `"date": "2026-03-03"`, `"date": "2026-02-28"`, 1)), 0o600))
	fails(other, "has trades as parquet, and csv is asked for")
	if len(w.manifest(dir).Files) != len(m.Files) {
		t.Errorf("files of another format came into the lake: %+v", w.manifest(dir).Files)
	}
}

func (w *fixture) text(dir string) string {
	w.Helper()
	content, err := os.ReadFile(filepath.Join(dir, export.ManifestFile))
	w.must(err)
	return string(content)
}
