package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// damagesVariable is how long the demo runs whose copies are damaged: 10m in the nightly gate; else as long as it takes to have
// all that is damaged.
const damagesVariable = "MARKETLOG_DAMAGES"

// damagesOfSegments is how many of the damages are of segments of the log; the first ones are.
const damagesOfSegments = 3

// segmentedLogBytes makes segments that are sealed within the short form.
const segmentedLogBytes = "134217728"

// Whatever is damaged of a demo's directory, the next start names it, the remedy it gives mends it, and the views are what they were.
func TestDamagesOfADemoAreMended(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	var long time.Duration
	if text := os.Getenv(damagesVariable); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s=%q, want how long the demo runs, as 10m", damagesVariable, text)
		}
	}
	alone(t)
	t.Setenv("MARKETLOG_RETENTION_LOG_BYTES", segmentedLogBytes)
	d, err := startDemo(deploytest.FreeAddr(t), deploytest.FreeAddr(t), deploytest.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(d.dir))
	d.await(t, "/readyz", "200", func(status int, _ map[string]any) bool { return status == http.StatusOK })
	d.lives(t, long, func() bool {
		candles := d.query(t, "SELECT count() AS n FROM v_candles_1m WHERE trades > 0")
		return len(sealedSegments(t, d.dir)) > 0 && len(candles) > 0 && fmt.Sprint(candles[0]["n"]) != "0"
	})
	if err := d.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-d.ended; err != nil {
		t.Fatalf("stopping the demo: %v\n%s", err, d.logEnd())
	}
	// What had not been folded and stored when it stopped is, after a start without feeds or two.
	var whole map[string]string
	for range 3 {
		before := whole
		stop := d.without(t, d.dir)
		d.settled(t)
		stop()
		if whole = digests(t, d.dir); same(before, whole) == "" {
			break
		}
	}
	if len(whole) < 25 || whole["v_ticks"] == "" || whole["v_prices"] == "" || whole["v_candles_1m"] == "" {
		t.Fatalf("the views %v are compared, want nearly all", whole)
	}
	damages := []struct {
		name string
		do   func(t *testing.T, dir string)
		// says is what /readyz names; empty: the start itself mends it.
		reports string
	}{
		{"bits flipped in a sealed segment", func(t *testing.T, dir string) { change(t, sealedSegment(t, dir), flipMiddle) }, "`marketlog rebuild`"},
		{"a segment cut short", func(t *testing.T, dir string) {
			change(t, sealedSegment(t, dir), func(raw []byte) []byte { return raw[:len(raw)-37] })
		}, "`marketlog rebuild`"},
		{"a segment deleted", func(t *testing.T, dir string) { removed(t, sealedSegment(t, dir)) }, "`marketlog rebuild`"},
		{"the largest part of ticks removed", func(t *testing.T, dir string) { removed(t, largestPart(t, dir)) }, ""},
		{"marks of no length", func(t *testing.T, dir string) {
			marks, err := filepath.Glob(filepath.Join(largestPart(t, dir), "*mrk*"))
			if err != nil || len(marks) == 0 {
				t.Fatalf("the part has no marks, %v", err)
			}
			for _, name := range marks {
				change(t, name, func([]byte) []byte { return nil })
			}
		}, ""},
		{"topics.json empty", func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "log", "topics.json"), func([]byte) []byte { return nil })
		}, ""},
	}
	if os.Getenv(damagesVariable) == "" { // one of a segment and one of the others, different ones each time
		segments, others := damages[:damagesOfSegments], damages[damagesOfSegments:]
		damages = append(slices.Clone(segments[rand.IntN(len(segments)):][:1]), others[rand.IntN(len(others))])
	}
	for _, damage := range damages {
		t.Run(damage.name, func(t *testing.T) {
			dir := filepath.Join(filepath.Dir(d.dir), "copy")
			defer os.RemoveAll(dir)
			if out, err := exec.Command("cp", "-a", d.dir, dir).CombinedOutput(); err != nil {
				t.Fatalf("copying the directory: %v\n%s", err, out)
			}
			damage.do(t, dir)
			stop := d.without(t, dir)
			if damage.reports != "" {
				d.untilReadiness(t, damage.reports)
				if out, err := exec.Command(d.binary, "rebuild", "--data-dir", dir).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("permanently lost")) {
					t.Errorf("rebuild: %v\n%s", err, out)
				}
			}
			d.settled(t)
			stop()
			streamtest.Report(t, "damages", 1)
			streamtest.Report(t, "views_compared", len(whole))
			if differs := same(whole, digests(t, dir)); differs != "" {
				t.Errorf("mended, the views are not what they were: %s", differs)
			}
		})
	}
}

// lives waits until the demo has run for so long, and has made what is damaged.
func (d *demo) lives(t *testing.T, long time.Duration, made func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < long || !made(); time.Sleep(time.Second) { // it is another process's time
		select {
		case err := <-d.ended:
			t.Fatalf("the demo ended: %v\n%s", err, d.logEnd())
		default:
		}
		if since := time.Since(began); since > long+demoPatience {
			t.Fatalf("in %s the demo sealed no segment of ticks.v1, or closed no minute\n%s", since, d.logEnd())
		}
	}
}

// without runs the binary on a directory, without feeds, until stop.
func (d *demo) without(t *testing.T, dir string) (stop func()) {
	t.Helper()
	process := exec.Command(d.binary, "run", "--feeds", "none", "--data-dir", dir, "--listen", strings.TrimPrefix(d.base, "http://"),
		"--sql-listen", strings.TrimPrefix(d.sql, "http://"), "--kafka-listen", "127.0.0.1:0")
	process.Env = append(os.Environ(), "MARKETLOG_BACKFILL_ENABLED=false")
	var output bytes.Buffer
	process.Stdout, process.Stderr = &output, &output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() }) // fails when it has ended
	return func() {
		t.Helper()
		if err := process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := process.Wait(); err != nil {
			t.Fatalf("without feeds it ended with %v\n%s", err, output.Bytes()[max(0, output.Len()-4096):])
		}
	}
}

// readiness is what /readyz answers.
func (d *demo) readiness() (status int, body string) {
	answer, err := http.Get(d.base + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// untilReadiness waits until /readyz is 503 and names something.
func (d *demo) untilReadiness(t *testing.T, reports string) {
	t.Helper()
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(50 * time.Millisecond) {
		status, body := d.readiness()
		if status == http.StatusServiceUnavailable && strings.Contains(body, reports) && !strings.Contains(body, `"instance"`) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz is %d %s, want %s in it", status, body, reports)
		}
	}
}

// settled waits until the instance is ready and stays so.
func (d *demo) settled(t *testing.T) {
	t.Helper()
	ready := 0
	for deadline := time.Now().Add(demoPatience); ready < 30; time.Sleep(100 * time.Millisecond) {
		status, body := d.readiness()
		if ready++; status != http.StatusOK {
			ready = 0
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz is %d %s, want 200", status, body)
		}
	}
}

// stoppedTables opens the tables of an instance that does not run, until done is called.
func stoppedTables(t *testing.T, dir string) (store *history.Store, done func()) {
	t.Helper()
	cfg := config.DefaultConfig()
	cfg.DataDir = dir
	in, err := instance.HoldInstance(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if store, err = in.History(t.Context()); err != nil {
		t.Fatal(errors.Join(err, in.Close()))
	}
	return store, func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

// digests are a count and a checksum of the rows of each view that an instance which does not run has. Views of this moment
// are left out: what the log and the keys are like, and what differs from one second to the next. So are proofs, which the log does not have,
// and latencies, which count a tick twice that is in two parts until these are merged.
func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	store, done := stoppedTables(t, dir)
	defer done()
	rows, err := store.Conn().Query(t.Context(), "SELECT name FROM system.tables WHERE database = 'default' AND name LIKE 'v\\_%' AND name NOT IN ('v_lag', 'v_gaps', 'v_usage', 'v_sources', 'v_proofs', 'v_latency') ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	var views []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if name == "v_universe_at" {
			name += "(at = '2200-01-01')" // later than all that there is
		}
		views = append(views, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	digest := func(view string) (text string) {
		var n, sum uint64
		if err := store.Conn().QueryRow(t.Context(), "SELECT count(), groupBitXor(cityHash64(toString(tuple(*)))) FROM default."+view).Scan(&n, &sum); err != nil {
			t.Fatalf("%s: %v", view, err)
		}
		return fmt.Sprintf("%d rows, %x", n, sum)
	}
	found := map[string]string{}
	for _, view := range views {
		found[view] = digest(view)
	}
	for _, view := range views {
		if digest(view) != found[view] {
			delete(found, view)
		}
	}
	return found
}

// same reports which view differs first; empty: none.
func same(want, got map[string]string) string {
	if len(want) == 0 {
		return "there are none"
	}
	for view, digest := range want {
		if other, ok := got[view]; ok && other != digest {
			return fmt.Sprintf("%s: got %s, want %s", view, other, digest)
		}
	}
	return ""
}

// sealedSegment is the first segment of a partition of ticks that has others after it.
func sealedSegment(t *testing.T, dir string) string {
	t.Helper()
	sealed := sealedSegments(t, dir)
	if len(sealed) == 0 {
		t.Fatal("no partition of ticks.v1 has a sealed segment: the demo was too short")
	}
	return sealed[0]
}

// sealedSegments are the first segments of the partitions of ticks that have others after it.
func sealedSegments(t *testing.T, dir string) (sealed []string) {
	t.Helper()
	partitions, err := filepath.Glob(filepath.Join(dir, "log", "partitions", "ticks.v1-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, partition := range partitions {
		segments, err := filepath.Glob(filepath.Join(partition, "*.dat"))
		if err != nil {
			t.Fatal(err)
		}
		if len(segments) > 1 {
			slices.SortFunc(segments, func(a, b string) int {
				if len(a) != len(b) {
					return len(a) - len(b)
				}
				return strings.Compare(a, b)
			})
			sealed = append(sealed, segments[0])
		}
	}
	return sealed
}

// largestPart is the folder of the largest part of ticks.
func largestPart(t *testing.T, dir string) string {
	t.Helper()
	store, done := stoppedTables(t, dir)
	defer done()
	var path string
	row := store.Conn().QueryRow(t.Context(), "SELECT path FROM system.parts WHERE database = currentDatabase() AND table = 'ticks' AND active ORDER BY rows DESC LIMIT 1")
	if err := row.Scan(&path); err != nil {
		t.Fatal(err)
	}
	return path
}

func change(t *testing.T, name string, by func(raw []byte) []byte) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, by(raw), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func flipMiddle(raw []byte) []byte {
	for i := range 4 {
		raw[len(raw)/2+i] ^= 0xff
	}
	return raw
}

func removed(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}
