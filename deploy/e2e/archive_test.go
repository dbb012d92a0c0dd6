package e2e

import (
	"bytes"
	"encoding/json"
	"os"
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
	config := t.TempDir() + "/marketlog.yaml"
	if err := os.WriteFile(config, []byte("archive:\n  enabled: true\nretention:\n  log_bytes: 67108864\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kafka := deploytest.FreeAddr(t)
	d, err := startDemo(deploytest.FreeAddr(t), deploytest.FreeAddr(t), kafka, "--config", config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.end(); err != nil {
			t.Error(err)
		}
	}()
	deadline := time.Now().Add(8 * time.Minute)
	for deleted := 0; deleted < 3; time.Sleep(time.Second) { // it is another process's log
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
	}
	out, err := d.command("archive", "verify", "--deep")
	if err != nil {
		t.Fatalf("archive verify: %v\n%s", err, out)
	}
	for _, view := range []string{"prices", "candles"} {
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
}
