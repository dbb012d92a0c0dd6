package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/cli/doctor"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/instance"
)

// diagnosed is what doctor finds, by what it looked at, and its exit code.
func diagnosed(t *testing.T, cfg config.Config) (found map[string]doctor.Finding, code int) {
	t.Helper()
	var out bytes.Buffer
	app := command.Runtime{Stdout: &out, Stderr: &out, Env: []string{"MARKETLOG_DATA_DIR=" + cfg.DataDir}}
	code = Execute(t.Context(), &app, []string{"doctor", "-o", "json"})
	found = map[string]doctor.Finding{}
	for line := range strings.Lines(out.String()) {
		var f doctor.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("doctor prints %q: %v", line, err)
		}
		if known, ok := found[f.Check]; !ok || known.Verdict == "ok" {
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
	if f := found["tables"]; f.Verdict != "ok" || !strings.Contains(f.Message, "parts have their checksums") {
		t.Errorf("of whole tables doctor says %v", f)
	}
	if f := found["growth"]; f.Verdict != "ok" || !strings.Contains(f.Message, "not known yet") {
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
	// A merge would leave behind the part that is damaged next, on a busy machine.
	if err := store.Conn().Exec(t.Context(), "SYSTEM STOP MERGES"); err != nil {
		t.Fatal(err)
	}
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
		if code == 0 || f.Verdict != "failed" || !strings.Contains(f.Message, "part "+part+" of backfill") || !strings.Contains(f.Remedy, path) {
			t.Errorf("%s doctor exits with %d and says %v, want part %s of backfill in %s", when, code, f, part, path)
		}
	}
	named("while it does not run")
	stop = lives(t, cfg, deploytest.Quiet)
	backfilled(t, cfg)
	named("while it runs")
	stop()

	if err := os.RemoveAll(path); err != nil { // what doctor asks for
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
