package export_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/schemas"
)

// Each dataset has the rows of its table in it, whatever the format; each file says what its columns mean, whose values it has
// and how far the log was read.
func TestEveryDatasetIsExported(t *testing.T) {
	var names []string
	for _, d := range export.Datasets {
		names = append(names, d.Name)
	}
	if want := schemas.Datasets(); !slices.Equal(names, want) {
		t.Errorf("the datasets are %q, want %q", names, want)
	}
	w := sharedFixture(t)
	rows := map[string]int64{"markets": 3, "coverage": 3, "fixings": 3, "trades": 240, "quotes": 240, "tickers": 240, "venue_candles_1m": 240, "fiat": 240, "sentiment": 0}
	for _, d := range export.Datasets {
		dir := t.TempDir()
		formats := []string{"parquet"}
		if d.Name == "prices" || d.Name == "trades" {
			formats = append(formats, "arrow", "csv")
		}
		for _, format := range formats {
			want, known := rows[d.Name]
			if !known {
				want = 120
			}
			if result := w.run(request(d.Name, format, dir)); result.Rows != want || result.Kept != 0 {
				t.Errorf("%s as %s: got %d rows, want %d", d.Name, format, result.Rows, want)
			}
		}
		m := w.manifest(dir)
		for _, e := range m.Files {
			if e.Rows == 0 || len(e.Sources) == 0 || len(e.Position[d.Topics[0]]) == 0 || e.To.Sub(e.From) != 24*time.Hour {
				t.Errorf("the manifest has %+v", e)
			}
			for _, c := range m.Schemas[e.Schema] {
				if c.Type == "" || c.Comment == "" {
					t.Errorf("%s: nothing is stated of the column %q", e.Path, c.Name)
				}
			}
			for _, source := range e.Sources {
				if _, ok := m.Sources[source]; !ok {
					t.Errorf("%s: nothing is stated of its source %q", e.Path, source)
				}
			}
		}
	}
}

// What is in the files is what is in the tables, to the last digit.
func TestFilesHoldWhatTheTablesHold(t *testing.T) {
	w := sharedFixture(t)
	dir := t.TempDir()
	r := request("trades", "csv", dir)
	r.From, r.To = firstDay.Add(17*time.Minute), firstDay.Add(35*time.Minute)
	w.run(r)
	read := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, name))
		w.must(err)
		return string(content)
	}
	lines := strings.Split(read("trades/okx/2026-03-01T001700-003500.csv"), "\n")
	if want := `"bitcoin","okx","BTC-usdt","BTC","USDT","tether","2026-03-01T00:17:00.000000001Z","2026-03-01T00:17:00.050000001Z",`; len(lines) != 4 || !strings.HasPrefix(lines[1], want) ||
		!strings.Contains(lines[1], `,65000.11,0.000000000000000001,"buy","1",`) {
		t.Errorf("got %q, want a line that begins with %s", lines, want)
	}
	r.Format = "tardis-csv"
	w.run(r)
	r.Dataset = "quotes"
	w.run(r)
	unzipped := func(name string) string {
		zipped, err := gzip.NewReader(strings.NewReader(read(name)))
		w.must(err)
		text, err := io.ReadAll(zipped)
		w.must(err)
		return string(text)
	}
	for name, want := range map[string]string{
		"trades/okex_trades_2026-03-01T001700-003500_SPOT.csv.gz": "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n" +
			"okex,BTC-USDT,1772324220000000,1772324220050000,1,buy,65000.11,0.000000000000000001\n" +
			"okex,BTC-USDT,1772325240000000,1772325240050000,2,sell,65000.21,0.000000000000000001\n",
		"quotes/okex_quotes_2026-03-01T001700-003500_SPOT.csv.gz": "exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n" +
			"okex,BTC-USDT,1772324220000000,1772324220050000,,65001,64999.1,\n" +
			"okex,BTC-USDT,1772325240000000,1772325240050000,,65001,64999.2,\n",
	} {
		if diff := cmp.Diff(want, unzipped(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	r.Dataset, r.Format = "prices", "parquet"
	w.run(r)
	type input struct {
		Provider string  `parquet:"provider"`
		Rate     float64 `parquet:"rate"`
	}
	type price struct {
		Coin   string    `parquet:"coin_id"`
		Time   time.Time `parquet:"time,timestamp(millisecond)"`
		Price  *float64  `parquet:"price,optional"`
		Inputs []input   `parquet:"inputs,list"`
	}
	prices, err := parquet.ReadFile[price](filepath.Join(dir, "prices/2026-03-01T001700-003500.parquet"))
	w.must(err)
	if len(prices) != 2 || prices[0].Coin != "bitcoin" || !prices[0].Time.Equal(firstDay.Add(17*time.Minute)) || *prices[1].Price != 65002.1 || prices[0].Inputs[0].Provider != "binance" {
		t.Errorf("got %+v", prices)
	}
}

// errStopped is what a reader of an export answers who has gone.
var errStopped = errors.New("stopped")

// An export that was ended anywhere, and whose files were damaged afterwards, comes to the same files and the same manifest as one
// that never was, whatever the parts of the tables are.
func TestAnEndedExportEqualsAWholeOne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	jobs := [][2]string{{"trades", "parquet"}, {"trades", "tardis-csv"}, {"candles_1m", "csv"}, {"prices", "arrow"}}
	whole := t.TempDir()
	one := sharedFixture(t)
	for _, job := range jobs {
		one.run(request(job[0], job[1], whole))
	}
	want := one.tree(whole)
	w := fixtureOf(t, newStore(t, enginetest.Database, 5, seed))
	t.Cleanup(func() { // give the analysts' views back
		if _, err := shared.store.Migrate(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	for _, job := range jobs {
		for range 2 {
			// The end comes with a line, or with a look at the disk, which is taken before each file and in its middle.
			ctx, cancel := context.WithCancel(t.Context())
			lines := r.IntN(8)
			w.exporter.Emit = func(any) error {
				if lines--; lines < 0 {
					return errStopped
				}
				return nil
			}
			looks := w.asked + 1 + r.IntN(6)
			w.lacks = func(n int) int64 {
				if n == looks {
					cancel()
				}
				return 0
			}
			_, err := w.exporter.Run(ctx, request(job[0], job[1], dir))
			cancel()
			if err != nil && !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			damage(t, r, dir)
		}
		w.exporter.Emit, w.lacks = func(any) error { return nil }, nil
		w.run(request(job[0], job[1], dir))
	}
	// Files of a job that was over may be damaged since: it finds them when it is asked for again.
	damage(t, r, dir)
	again, damages := 0, 2*len(jobs)+1
	for _, job := range jobs {
		result := w.run(request(job[0], job[1], dir))
		again += result.Files - result.Kept
	}
	if again > damages {
		t.Errorf("%d files were written again, want at most the %d that were damaged", again, damages)
	}
	if diff := cmp.Diff(want, w.tree(dir)); diff != "" {
		t.Errorf("the files differ (-whole +ended):\n%s", diff)
	}
}

// damage does to the files of an export what a kill, a disk or a person may do to them.
func damage(t *testing.T, r *rand.Rand, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	more, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	files = slices.DeleteFunc(append(files, more...), func(name string) bool {
		stat, err := os.Stat(name)
		return err != nil || stat.IsDir() || strings.HasSuffix(name, ".partial")
	})
	if len(files) == 0 {
		return
	}
	name := files[r.IntN(len(files))]
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	switch r.IntN(5) {
	case 0: // killed while it was written: only an unfinished file is there
		err = errors.Join(os.Remove(name), os.WriteFile(filepath.Join(dir, "file.partial"), content[:len(content)/2], 0o600))
	case 1:
		err = os.WriteFile(name, content[:len(content)/2], 0o600)
	case 2:
		content[r.IntN(len(content))] ^= 1 << r.IntN(8)
		err = os.WriteFile(name, content, 0o600)
	case 3:
		err = os.WriteFile(name, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Values whose terms forbid to pass them on leave the instance only for its owner's use, and do not get among the others.
func TestTermsAreApplied(t *testing.T) {
	w := sharedFixture(t)
	dir := t.TempDir()
	r := request("fiat", "csv", dir)
	r.OwnUse = false
	if result := w.run(r); result.Rows != 120 || !slices.Equal(result.LeftOut, []string{"closed"}) {
		t.Errorf("got %+v, want the rows of ecb only", result)
	}
	m := w.manifest(dir)
	want := map[string]export.SourceTerms{"ecb": {Name: "European Central Bank", License: "free reuse", Attribution: "Source: ECB"}}
	if diff := cmp.Diff(want, m.Sources); diff != "" {
		t.Errorf("the sources differ (-want +got):\n%s", diff)
	}
	w.fails("--own-use", request("fiat", "csv", dir))
	r.Dataset = "defi"
	w.fails("must not be passed on, of closed (its terms forbid it); --own-use", r)
	if result := w.run(request("defi", "csv", t.TempDir())); result.Rows != 120 {
		t.Errorf("got %d rows for the owner's use, want 120", result.Rows)
	}
}

func (w *fixture) fails(want string, r export.Request) {
	w.Helper()
	if _, err := w.exporter.Run(w.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
		w.Errorf("got the error %v, want one with %q", err, want)
	}
}

// A request that cannot be met says why, and what to do.
func TestRequestsThatCannotBeMet(t *testing.T) {
	w := sharedFixture(t)
	good := request("trades", "csv", t.TempDir())
	for want, change := range map[string]func(*export.Request){
		"there are trades, quotes":           func(r *export.Request) { r.Dataset = "orders" },
		"there are parquet, arrow":           func(r *export.Request) { r.Format = "xml" },
		"holds trades and quotes only":       func(r *export.Request) { r.Dataset, r.Format = "prices", "tardis-csv" },
		"--from is missing":                  func(r *export.Request) { r.From = time.Time{} },
		"is not before --to":                 func(r *export.Request) { r.To = r.From },
		"longer than 30 years":               func(r *export.Request) { r.From = r.From.AddDate(-40, 0, 0) },
		"whole seconds":                      func(r *export.Request) { r.From = r.From.Add(1) },
		"is not an absolute path":            func(r *export.Request) { r.Dir = "here" },
		"complete up to 2026-03-04T00:05:00": func(r *export.Request) { r.To = lastDay.Add(6 * time.Minute) },
		"name the end with --to":             func(r *export.Request) { r.From, r.To = lastDay, time.Time{} },
	} {
		r := good
		change(&r)
		w.fails(want, r)
	}
	w.lacks = func(int) int64 { return 4096 }
	w.fails("the disk lacks 4096 bytes", good)
	w.lacks = nil
	w.must(os.WriteFile(filepath.Join(good.Dir, export.ManifestFile), []byte("{"), 0o600))
	w.fails("export into another directory", good)
}

// A file that was damaged is reported by the reader that reads it back, in each format.
func TestReadersFindDamage(t *testing.T) {
	w := sharedFixture(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	for _, format := range export.FormatNames() {
		dir := t.TempDir()
		w.run(request("trades", format, dir))
		e := w.manifest(dir).Files[0]
		content, err := os.ReadFile(filepath.Join(dir, e.Path))
		w.must(err)
		if rows, err := export.Count(format, content, w.manifest(dir).Schemas[e.Schema]); err != nil || rows != e.Rows {
			t.Fatalf("%s: the whole file has %d rows, %v; want %d", format, rows, err, e.Rows)
		}
		for range 20 {
			cut := content[:r.IntN(len(content))]
			if rows, err := export.Count(format, cut, w.manifest(dir).Schemas[e.Schema]); err == nil && rows == e.Rows && len(cut) < len(content)-1 {
				t.Errorf("%s cut to %d of %d bytes is taken for whole", format, len(cut), len(content))
			}
		}
	}
}
