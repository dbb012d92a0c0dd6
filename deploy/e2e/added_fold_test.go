package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// addedFold is a fold that this program does not have: files that are added to the repository as they lie there.
const addedFold = "testdata/addedfold"

// addedLines are what is added to files that are there, after a line that each has once: all that docs/adding-a-fold.md
// names beside new files.
var addedLines = []struct{ file, behind, line string }{
	{"schemas/topics.go", "var Topics = []Topic{\n", "row.txt"},
	{"stream/history/rows/batch.go", "var rowsOf = map[string]func() topicRows{\n", "\t\"breadth.v1\": newBreadthRows,\n"},
	{"deploy/instance/folds.go", "\t\"github.com/marketlog/marketlog/processors/apy\"\n", "\t\"github.com/marketlog/marketlog/processors/breadth\"\n"},
	{"schemas/events/v1/marked.go", "func (r *EarnRecord) SetMark(m *Mark) { r.Mark = m }\n", "\n// SetMark sets what caused the record.\nfunc (r *BreadthRecord) SetMark(m *Mark) { r.Mark = m }\n"},
	{"deploy/instance/folds.go", "return []*processors.Minutes{", "breadth.Minutes(), "},
}

// overlayOf is a file by which the go command builds the repository with the fold added, in the folder dir.
func overlayOf(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{} // path in the repository to the file that replaces it
	err = filepath.WalkDir(addedFold, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(path) == "row.txt" {
			return err
		}
		inside, err := filepath.Rel(addedFold, path)
		if err != nil {
			return err
		}
		replace[filepath.Join(root, inside)], err = filepath.Abs(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range addedLines {
		line := add.line
		if line == "row.txt" {
			row, err := os.ReadFile(filepath.Join(addedFold, line))
			if err != nil {
				t.Fatal(err)
			}
			line = string(row)
		}
		path := filepath.Join(root, add.file)
		edited := filepath.Join(dir, strings.ReplaceAll(add.file, "/", "_"))
		if replace[path] == "" {
			replace[path] = path
		}
		text, err := os.ReadFile(replace[path])
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), add.behind); n != 1 {
			t.Fatalf("%s has the line %q %d times, want once", add.file, add.behind, n)
		}
		if err := os.WriteFile(edited, []byte(strings.Replace(string(text), add.behind, add.behind+line, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = edited
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A package, its message, a row of the topic table and its SQL, with the lines that name them, make a fold that runs from the log to a
// view of analysts, is replayed, verified and rebuilt, and is found by the commands.
func TestAddedFoldRunsFromLogToReplay(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	alone(t)
	kafka := deploytest.FreeAddr(t)
	d, err := startBuilt([]string{"-overlay", overlayOf(t, t.TempDir())}, deploytest.FreeAddr(t), deploytest.FreeAddr(t), kafka, "--feeds", "none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log ends with\n%s", d.logEnd())
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen = d.dir, kafka
	writeRawTicks(t, cfg, time.Now().UTC().Truncate(time.Minute).Add(-20*time.Minute), 360)

	// The view agrees with what SQL counts in the candles: of six minutes five are closed at the end.
	const minutes = 5
	view := "SELECT toString(time) AS minute, rising, falling, unchanged FROM v_breadth WHERE rising + falling + unchanged > 0 ORDER BY time"
	counted := `SELECT toString(start + INTERVAL 1 MINUTE) AS minute, toUInt32(countIf(close > open)) AS rising, toUInt32(countIf(close < open)) AS falling,
		toUInt32(countIf(close = open)) AS unchanged FROM v_candles_1m GROUP BY start ORDER BY start`
	var got, want []byte
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(200 * time.Millisecond) {
		rows := d.query(t, view)
		got, want = asJSON(t, rows), asJSON(t, d.query(t, counted))
		if len(rows) >= minutes && slices.Equal(got, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %s in the view, want at least %d minutes as the candles have them: %s", got, minutes, want)
		}
	}

	replay := func(args ...string) (result processors.ReplayResult) {
		t.Helper()
		out, err := d.command(append([]string{"replay", "--view"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		lastLine(t, string(out), &result)
		return result
	}
	for _, args := range [][]string{{"breadth", "--verify"}, {"breadth"}, {"breadth", "--verify"}, {"all", "--verify"}} {
		result := replay(args...)
		if result.View != args[0] || result.Differing != 0 || result.Compared < minutes || result.Outside != 0 {
			t.Errorf("replay --view %s: got %+v, want at least %d rows and no difference", strings.Join(args, " "), result, minutes)
		}
	}
	if again := asJSON(t, d.query(t, view)); !slices.Equal(again, got) {
		t.Errorf("after the replay the view has %s, want what it had: %s", again, got)
	}

	// The commands know it.
	if _, err := d.command("replay", "--view", "weather"); err == nil || !strings.Contains(err.Error(), "breadth") {
		t.Errorf("a view that there is none of: got %v, want an error that names breadth", err)
	}
	if out, err := d.command("topics", "list"); err != nil || !strings.Contains(string(out), `"holds":"coins that rose and fell, by minute"`) {
		t.Errorf("topics list: got %v and %s, want what breadth.v1 holds", err, out)
	}
}

func asJSON(t *testing.T, of any) []byte {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
