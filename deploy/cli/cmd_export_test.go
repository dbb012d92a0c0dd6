package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/processors"
)

// The progress of a job is shown as text: files, those that were there, and what was left out.
func TestExportsAreShown(t *testing.T) {
	var out, progress bytes.Buffer
	rt := &command.Runtime{Stdout: &out, Stderr: &progress}
	p := &exportPrinter{replayPrinter{Runtime: rt, out: &command.Output{}}}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, line := range []any{
		export.FileLine{File: "fiat/2026-03-01.csv", Rows: 40, Bytes: 3000},
		&processors.ReplayProgress{Step: "export fiat", Done: 40, Total: 80, Rate: 20, Left: 2},
		export.FileLine{File: "fiat/2026-03-02.csv", Rows: 40, Bytes: 3001, Kept: true},
		export.Result{Exported: "fiat", From: from, To: from.AddDate(0, 0, 2), Files: 2, Kept: 1, Rows: 80, Bytes: 6001, LeftOut: []string{"erapi"}, Seconds: 1.25},
	} {
		raw, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.line(raw); err != nil {
			t.Fatal(err)
		}
	}
	want := `fiat/2026-03-01.csv: 40 rows, 3000 bytes
fiat/2026-03-02.csv: 40 rows, 3001 bytes, was there
fiat from 2026-03-01T00:00:00Z to 2026-03-03T00:00:00Z: 2 files (1 were there), 80 rows, 6001 bytes, 1.2 s; left out, since their terms forbid to pass values on: erapi
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := "export fiat: 40 of 80, 20/s, 2s left\n"; progress.String() != want {
		t.Errorf("got the progress %q, want %q", progress.String(), want)
	}
}

// What can be seen to be wrong is reported without an instance.
func TestExportsThatCannotBeMetAreRejected(t *testing.T) {
	for line, want := range map[string]string{
		"export":                             "--dataset is missing: one of trades, quotes",
		"export --dataset trades":            "--dir is missing",
		"export --dataset trades --dir x":    "--from is missing",
		"export --dataset trades --from yes": `--from "yes" is not a time`,
		"export --dataset stocks --dir x":    `there is no dataset "stocks"`,
		"export --attach --cancel":           "[attach cancel]",
		"export --dataset defi --dir x --format tardis-csv --from 2026-03-01T00:00:00Z": "holds trades and quotes only",
	} {
		var out, errs bytes.Buffer
		app := command.Runtime{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Env: []string{"MARKETLOG_DATA_DIR=" + t.TempDir()}}
		if code := Execute(t.Context(), &app, strings.Fields(line)); code != exitFailed || !strings.Contains(errs.String(), want) {
			t.Errorf("%s exits with %d and says %q, want %q", line, code, errs.String(), want)
		}
	}
}
