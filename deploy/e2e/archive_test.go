package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// TestReplayReadsBehindTheBroker runs an instance whose broker keeps a few minutes and whose archive keeps all, until the
// broker has deleted the first ticks; then prices and candles are folded again from the first second and compared.
func TestReplayReadsBehindTheBroker(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	alone(t)
	t.Setenv("MARKETLOG_ARCHIVE_ENABLED", "true")
	t.Setenv("MARKETLOG_RETENTION_LOG_BYTES", "67108864")
	kafka := deploytest.FreeAddr(t)
	d, err := startDemo(deploytest.FreeAddr(t), deploytest.FreeAddr(t), kafka)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(d.dir))
	t.Cleanup(func() { _ = d.process.Process.Kill() }) // fails when it has ended
	deadline := time.Now().Add(8 * time.Minute)
	for deleted, first := 0, int64(0); deleted < 3 || first == 0; time.Sleep(time.Second) { // it is another process's log
		if time.Now().After(deadline) {
			t.Fatalf("after %s the broker has the first records of all but %d partitions of ticks.v1 still; its log ends with\n%s", 8*time.Minute, deleted, d.logEnd())
		}
		deleted = 0
		starts, _, err := stream.Config{Brokers: []string{kafka}, ClientID: "test"}.Bounds(t.Context(), schemas.TopicTicks)
		if err != nil {
			t.Fatal(err)
		}
		for _, start := range starts[schemas.TopicTicks] {
			if start > 0 {
				deleted++
			}
		}
		first = starts[schemas.TopicTicks][0]
	}
	out, err := d.command("archive", "verify", "--deep")
	if err != nil {
		t.Fatalf("archive verify: %v\n%s", err, out)
	}
	for _, view := range []string{"prices", "candles", "markets"} {
		out, err := d.command("replay", "--view", view, "--verify")
		if err != nil {
			t.Fatalf("replay: %v\n%s", err, out)
		}
		var result struct{ Compared, Differing, Outside int64 }
		lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
		if err := json.Unmarshal(lines[len(lines)-1], &result); err != nil {
			t.Fatalf("reading the result of the replay: %v\n%s", err, out)
		}
		t.Logf("%s: %d rows compared, %d differ, %d outside", view, result.Compared, result.Differing, result.Outside)
		if result.Compared == 0 || result.Differing != 0 || result.Outside != 0 {
			t.Errorf("%s: got %+v, want rows, none that differs and none outside", view, result)
		}
	}
	d.readsRecords(t)
	d.rebuildsTables(t)
}

// readsRecords follows offsets into the archive: by REST, and by the command that prints records.
func (d *demo) readsRecords(t *testing.T) {
	t.Helper()
	var answer struct {
		Data struct {
			Found   string
			Value   json.RawMessage
			Segment struct{ Digest string }
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.base+"/api/v1/log/ticks.v1/0/0", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Data.Found != "archive" || answer.Data.Segment.Digest == "" {
		t.Errorf("the first tick is answered with %s %+v, %v, want it from the archive", response.Status, answer, err)
	}
	out, err := d.command("topics", "tail", "ticks.v1", "--from", "start", "--partition", "0", "--all", "-n", "20000")
	if err != nil {
		t.Fatalf("topics tail: %v\n%s", err, out)
	}
	next := int64(0)
	for line := range bytes.Lines(out) {
		var row struct {
			Offset int64
			Value  json.RawMessage
		}
		if err := json.Unmarshal(line, &row); err != nil || row.Offset != next {
			t.Fatalf("record %d is printed as %.200s, %v", next, line, err)
		}
		if next == 0 && !bytes.Equal(row.Value, answer.Data.Value) {
			t.Errorf("the first tick is printed as %s and answered as %s", row.Value, answer.Data.Value)
		}
		next++
	}
	if next == 0 {
		t.Error("no record is printed")
	}
}

// rebuildsTables deletes all tables: the next start makes each view again as it was, from the first record on.
func (d *demo) rebuildsTables(t *testing.T) {
	t.Helper()
	if err := d.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-d.ended; err != nil {
		t.Fatalf("stopping the demo: %v\n%s", err, d.logEnd())
	}
	var whole map[string]string
	for range 3 { // until nothing is left to be folded and stored
		before := whole
		stop := d.without(t, d.dir)
		d.settled(t)
		stop()
		if whole = digests(t, d.dir); same(before, whole) == "" {
			break
		}
	}
	removed(t, filepath.Join(d.dir, "clickhouse"))
	stop := d.without(t, d.dir)
	d.settled(t)
	stop()
	if again := digests(t, d.dir); len(whole) < 25 || same(whole, again) != "" {
		t.Errorf("of %d views, written again from archive and broker, %s", len(whole), same(whole, again))
	}
}
