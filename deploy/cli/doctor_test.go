package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/stream/history"
)

// The doctor names what /readyz names, whichever address answers.
func TestTheDoctorNamesWhatIsMissing(t *testing.T) {
	for body, want := range map[string][]string{
		`{"roles":[],"missing":{"tables":["rows are gone"],"disk":["full","slow"]}}`:               {"disk: full, slow", "tables: rows are gone"},
		`{"error":{"code":"STARTING","message":"not ready","errors":{"prices":["no price yet"]}}}`: {"prices: no price yet"},
		`<html>`: nil,
	} {
		if got := missingParts(strings.NewReader(body)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

// diagnosed is what doctor finds, by what it looked at, and its exit code.
func diagnosed(t *testing.T, cfg config.Config) (found map[string]finding, code int) {
	t.Helper()
	var out bytes.Buffer
	app := App{Stdout: &out, Stderr: &out, Env: []string{"MARKETLOG_DATA_DIR=" + cfg.DataDir}}
	code = app.Execute(t.Context(), []string{"doctor", "-o", "json"})
	found = map[string]finding{}
	for line := range strings.Lines(out.String()) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("doctor prints %q: %v", line, err)
		}
		if held, ok := found[f.Check]; !ok || held.Verdict == "ok" {
			found[f.Check] = f
		}
	}
	return found, code
}

// flipInside changes four bytes in the middle of the largest file of columns in a part's folder, as a failing disk does.
func flipInside(t *testing.T, part string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(part, "*.bin"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no columns: %v", part, err)
	}
	var largest string
	var most int64
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Size() > most {
			largest, most = name, info.Size()
		}
	}
	raw, err := os.ReadFile(largest)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		raw[len(raw)/2+i] ^= 0xff
	}
	if err := os.WriteFile(largest, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A part of a table whose bytes have changed is named by doctor with its folder, whether the instance runs or not. What doctor
// says to do mends it: afterwards the view is what it was.
func TestDoctorNamesDamagedParts(t *testing.T) {
	// What a later start reads of the minutes since is not compared.
	digest := fmt.Sprintf("SELECT (count(), sum(cityHash64(venue, symbol, seconds, start, open, high, low, close, toString(volume)))) FROM v_backfill WHERE start < toDateTime(%d)",
		time.Now().Add(-2*time.Hour).Unix())
	venue := newPastVenue(t)
	cfg := venue.charted(t)
	stop := lives(t, cfg, deploytest.Quiet)
	backfilled(t, cfg)
	whole := ask(t, cfg, digest)
	found, _ := diagnosed(t, cfg)
	if f := found["tables"]; f.Verdict != "ok" || !strings.Contains(f.Says, "parts have their checksums") {
		t.Errorf("of whole tables doctor says %v", f)
	}
	if f := found["growth"]; f.Verdict != "ok" || !strings.Contains(f.Says, "not known yet") {
		t.Errorf("without a price doctor says of growth %v", f)
	}
	stop()

	in, err := instance.OpenInstance(t.Context(), cfg, deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	store, err := in.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var part, path string
	row := store.Conn().QueryRow(t.Context(), "SELECT name, path FROM system.parts WHERE database = currentDatabase() AND table = 'backfill' AND active ORDER BY rows DESC LIMIT 1")
	if err := row.Scan(&part, &path); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if found, _ := diagnosed(t, cfg); found["tables"].Verdict != "ok" {
		t.Errorf("of whole tables of an instance that does not run doctor says %v", found["tables"])
	}
	flipInside(t, path)
	named := func(when string) {
		t.Helper()
		found, code := diagnosed(t, cfg)
		f := found["tables"]
		if code == 0 || f.Verdict != "failed" || !strings.Contains(f.Says, "part "+part+" of backfill") || !strings.Contains(f.Remedy, path) {
			t.Errorf("%s doctor exits with %d and says %v, want part %s of backfill in %s", when, code, f, part, path)
		}
	}
	named("while it does not run")
	stop = lives(t, cfg, deploytest.Quiet)
	backfilled(t, cfg)
	named("while it runs")
	stop()

	if err := os.RemoveAll(path); err != nil { // what doctor says
		t.Fatal(err)
	}
	stop = lives(t, cfg, deploytest.Quiet)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		missing := backfilled(t, cfg)
		if len(missing["tables"]) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the instance waits for %v", missing)
		}
	}
	if got := ask(t, cfg, digest); got != whole {
		t.Errorf("mended, the view has %s, want %s", got, whole)
	}
	if found, _ := diagnosed(t, cfg); found["tables"].Verdict != "ok" {
		t.Errorf("mended, doctor says %v", found["tables"])
	}
	stop()
}

// What the tables will take is said by the rate that was measured, and is a warning where the disk has no room for it.
func TestDoctorSaysWhatTheTablesWillTake(t *testing.T) {
	growth := []history.Growth{
		{Table: "ticks", BytesPerDay: 10e9, Kept: 7, Bytes: 4e9}, {Table: "prices", BytesPerDay: 9e9, Kept: 1, Bytes: 18e9},
	}
	for free, want := range map[int64]string{80e9: "ok", 75e9: "warning"} { // 76 GB of ticks are to come, and no prices
		f := judgeGrowth(growth, free)
		if len(f) != 1 || f[0].Verdict != want || (f[0].Remedy != "") != (want == "warning") {
			t.Errorf("with %d bytes free: got %v, want %s", free, f, want)
		}
		for _, part := range []string{"ticks grow by 10.0 GB a day, to 80.0 GB in 8 days (now 4.0 GB)", "prices grow by 9.0 GB a day, to 18.0 GB in 2 days"} {
			if !strings.Contains(f[0].Says, part) {
				t.Errorf("got %q, want %q in it", f[0].Says, part)
			}
		}
	}
	if f := judgeGrowth(growth, 75e9); !strings.Contains(f[0].Remedy, "1.0 GB more") {
		t.Errorf("the remedy is %q, want 1.0 GB more", f[0].Remedy)
	}
}
