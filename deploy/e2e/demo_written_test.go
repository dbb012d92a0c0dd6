package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/export"
)

// A minute of the running demo is exported with as many rows as SQL counts, by a job that is shown to who attaches afterwards, and
// given again writes nothing.
func TestDemoExportsWhatItShows(t *testing.T) {
	d := filledDemo(t)
	dir := t.TempDir()
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), d.binary, append([]string{"export", "--data-dir", d.dir}, args...)...).CombinedOutput()
		return string(out), err
	}
	// The first minute of the demo's tables that is complete.
	from := time.Now().UTC().Truncate(time.Minute)
	trades := []string{"--dataset", "trades", "--from", from.Format(time.RFC3339), "--to", from.Add(time.Minute).Format(time.RFC3339), "--dir", dir}
	var out string
	var err error
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(time.Second) {
		if out, err = run(trades...); err == nil {
			break
		}
		if !strings.Contains(out, "complete up to") || time.Now().After(deadline) {
			t.Fatalf("got %v and %s", err, out)
		}
	}
	var m export.Manifest
	content, err := os.ReadFile(filepath.Join(dir, export.ManifestFile))
	if err == nil {
		err = json.Unmarshal(content, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for _, e := range m.Files {
		rows += e.Rows
		if !m.Sources[e.Venue].Simulated {
			t.Errorf("%s is not marked as simulated: %+v", e.Path, m.Sources[e.Venue])
		}
	}
	const form = "2006-01-02 15:04:05"
	counted := d.query(t, fmt.Sprintf("SELECT count() AS n FROM v_ticks WHERE kind = 'trade' AND ingest_time >= '%s' AND ingest_time < '%s'", from.Format(form), from.Add(time.Minute).Format(form)))
	if rows == 0 || float64(rows) != counted[0]["n"] {
		t.Errorf("the files have %d rows, SQL counts %v", rows, counted[0]["n"])
	}
	if shown, err := run("--attach"); err != nil || !strings.HasSuffix(shown, out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]) {
		t.Errorf("attaching to the job that is over shows %v and %s, want the end of %s", err, shown, out)
	}
	if again, err := run(trades...); err != nil || !regexp.MustCompile(fmt.Sprintf(`: %d files \(%[1]d were there\)`, len(m.Files))).MatchString(again) {
		t.Errorf("given again: got %v and %s, want no file written", err, again)
	}
}
