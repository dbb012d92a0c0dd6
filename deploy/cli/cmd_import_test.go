package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/imports"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/processors"
)

// The progress of an import is shown as text.
func TestImportsAreShown(t *testing.T) {
	var out, progress bytes.Buffer
	rt := &command.Runtime{Stdout: &out, Stderr: &progress}
	p := &importPrinter{replayPrinter{Runtime: rt, out: &command.Output{}}}
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	hash := strings.Repeat("ab", 32)
	for _, line := range []any{
		imports.Progress{ReplayProgress: processors.ReplayProgress{Step: "import a.csv", Done: 40, Total: 80, Rate: 20, Left: 2}, Bytes: 1, TotalBytes: 2},
		imports.FileLine{File: "/x/a.csv", State: imports.StateImported, Rows: 80, Written: 60, BadRows: 2, Replaces: hash, Withdrawn: 3, MarketCount: 2, Markets: []imports.MarketLine{
			{Venue: "binance", Symbol: "BTCUSDT", Quote: "USDT", Coin: "bitcoin", Interval: "1m", Rows: 40, First: from, Last: from.Add(39 * time.Minute)},
		}, Passed: []imports.PassedLine{{Venue: "htx", Symbol: "xyzusdt", Reason: "no coin is called XYZ"}}, PassedCount: 2, PassedLines: 9},
		imports.FileLine{File: "/x/b.csv", State: imports.StateKnown, Name: "c.csv", Imported: from, Rows: 7},
		imports.FileLine{File: "/x/d.csv", State: imports.StateRefused, Reason: "it has no candles"},
		imports.Result{Files: 3, Imported: 1, Known: 1, Refused: 1, Rows: 87, Written: 60, BadRows: 2, Seconds: 1.25},
		imports.ListLine{Name: "a.csv", SHA256: hash, Venue: "binance", Symbol: "BTCUSDT", Interval: "1m", Rows: 40, First: from, Last: from.Add(39 * time.Minute), Imported: from, Whole: true},
	} {
		raw, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.line(raw); err != nil {
			t.Fatal(err)
		}
	}
	want := `a.csv: binance BTCUSDT 1m (bitcoin in USDT): 40 candles from 2024-01-01T00:00:00Z to 2024-01-01T00:39:00Z; nothing is known to compare its prices with
a.csv: 1 more markets
a.csv: passed over htx xyzusdt: no coin is called XYZ
a.csv: passed over 1 more markets
a.csv: 9 lines are of 2 markets that are passed over; given again once they are known, the file is imported whole
a.csv: replaces the candles of an earlier file of this name (SHA-256 ` + hash + `), of which it has 3 no longer
a.csv: 2 lines could not be read; v_dead_letters has them
a.csv: 60 of 80 candles written
b.csv: was imported 2024-01-01T00:00:00Z as c.csv, 7 candles; nothing to do
d.csv: refused: it has no candles
3 files: 1 imported, 1 known, 1 refused; 87 candles, 60 of them written, 2 bad lines, 1.2 s
abababababab  a.csv  binance BTCUSDT 1m: 40 candles from 2024-01-01T00:00:00Z to 2024-01-01T00:39:00Z, imported 2024-01-01T00:00:00Z
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := "import a.csv: 40 of 80, 20/s, 2s left\n"; progress.String() != want {
		t.Errorf("got the progress %q, want %q", progress.String(), want)
	}
}

// TestImportCommands is what a person types and sees, without an instance that runs.
func TestImportCommands(t *testing.T) {
	dir := t.TempDir()
	run := func(want int, line string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		app := command.Runtime{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Env: []string{"MARKETLOG_DATA_DIR=" + dir, "MARKETLOG_KAFKA_LISTEN=127.0.0.1:0"}}
		if code := Execute(t.Context(), &app, strings.Fields(line)); code != want {
			t.Fatalf("%s exits with %d, want %d\n%s%s", line, code, want, &out, &errs)
		}
		return out.String(), errs.String()
	}
	for line, want := range map[string]string{
		"import":                                  "--format is missing: one of binance-klines, binance-trades, binance-aggtrades, tardis-trades, ticks, candles",
		"import x --format stocks":                `there is no format "stocks"`,
		"import x --format tardis-quotes":         `there is no format "tardis-quotes": quotes are not imported`,
		"import --format candles":                 "name the files to import",
		"import x --format candles --interval 5m": `--interval "5m" is not kept`,
		"import x --format candles --base BTC":    "--base and --quote",
		"import --list --cancel":                  "[cancel list]",
		"import x --list":                         "take no files",
		"import x --format candles":               "there is no instance: " + dir,
	} {
		if _, got := run(exitFailed, line); !strings.Contains(got, want) {
			t.Errorf("%s complains %q, want %q", line, got, want)
		}
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen = dir, "127.0.0.1:0"
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		err = in.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "BTCUSDT-1h-2024-01-01.csv")
	const kline = "1704067200000,42283.58,42554.57,42261.02,42475.23,1271.68108,1704070799999,53957248.97,47134,682.57,28957416.82,0\n"
	if err := os.WriteFile(file, []byte(kline+"broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const what = "BTCUSDT-1h-2024-01-01.csv: binance BTCUSDT 1h (bitcoin in USDT): 1 candles from 2024-01-01T00:00:00Z to 2024-01-01T00:00:00Z; nothing is known to compare its prices with\n" +
		"BTCUSDT-1h-2024-01-01.csv: 1 lines could not be read; v_dead_letters has them\n"
	if got, _ := run(0, "import --format binance-klines --dry-run "+file); !strings.HasPrefix(got, what+"1 files: 1 can be imported, 0 known, 0 refused; 1 candles, 0 of them written, 1 bad lines, ") {
		t.Errorf("the dry run prints %q", got)
	}
	if got, _ := run(0, "import --format binance-klines "+file); !strings.HasPrefix(got, what+"BTCUSDT-1h-2024-01-01.csv: 1 of 1 candles written\n1 files: 1 imported") {
		t.Errorf("the import prints %q", got)
	}
	if got, _ := run(0, "import --format binance-klines "+file); !strings.Contains(got, "1 candles; nothing to do\n1 files: 0 imported, 1 known") {
		t.Errorf("the import, given again, prints %q", got)
	}
	if got, _ := run(exitFailed, "import --format binance-klines "+file+" nowhere.zip"); !strings.Contains(got, "no such file") || !strings.Contains(got, "2 files: 0 imported, 1 known, 1 refused") {
		t.Errorf("the import of a file that is not there prints %q", got)
	}
}
