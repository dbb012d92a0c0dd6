package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// shortHour is how much simulated time passes in the gate; `make hour` lets a whole hour pass.
const shortHour = time.Minute

// faultEvery is how much simulated time passes from one fault to the next.
const faultEvery = 15 * time.Second

// TestReplayEqualsAnAcceleratedRunWithFaults lets simulated time pass up to sixty times as fast while venues and
// sources fail by chance, then folds the whole log again and compares all views. MARKETLOG_HOUR is the time that passes.
func TestReplayEqualsAnAcceleratedRunWithFaults(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	length := shortHour
	if text := os.Getenv("MARKETLOG_HOUR"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	alone(t)
	d, err := startDemo(deploytest.FreeAddr(t), deploytest.FreeAddr(t), deploytest.FreeAddr(t), "--sim-speed", "60", "--sim-seed", "7")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.end(); err != nil {
			t.Error(err)
		}
	}()
	began := time.Now()
	inflicted := inflictAll(t, d, length)
	t.Logf("%s of simulated time in %s, with %v", length, time.Since(began).Round(time.Second), inflicted)

	began = time.Now()
	out, err := d.command("replay", "--view", "all", "--verify")
	if err != nil {
		t.Fatalf("replay: %v\n%s", err, out)
	}
	var result struct {
		View                string
		Compared, Differing int64
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &result); err != nil {
		t.Fatalf("reading the result of the replay: %v\n%s", err, out)
	}
	t.Logf("%d rows compared, %d differ, %s", result.Compared, result.Differing, time.Since(began).Round(time.Second))
	streamtest.Report(t, "simulated_seconds", int(length.Seconds()))
	streamtest.Report(t, "rows_compared", int(result.Compared))
	streamtest.Report(t, "rows_differing", int(result.Differing))
	for kind, n := range inflicted {
		streamtest.Report(t, "faults_"+kind, n)
	}
	if least := int64(length / time.Second * 10); result.View != "all" || result.Compared < least || result.Differing != 0 {
		t.Errorf("got %+v, want at least %d rows and none that differs", result, least)
	}
}

// inflictAll makes venues and sources fail until so much simulated time has passed, and counts the faults by kind.
func inflictAll(t *testing.T, d *demo, length time.Duration) map[string]int {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	victims := []string{"binance", "coinbase", "kraken", "okx", "bybit"}
	for _, s := range sources.List() { // the simulator answers for all, also for those that are off in public
		victims = append(victims, s.Slug)
	}
	kinds := []string{"silence", "garbage", "flood", "disconnect"}
	inflicted := map[string]int{}
	var start, next time.Time
	for {
		now := d.simulatedTime(t)
		switch {
		case start.IsZero():
			start, next = now, now.Add(faultEvery)
		case now.Sub(start) >= length:
			return inflicted
		case now.Before(next):
			time.Sleep(50 * time.Millisecond) // it is another process's time
		default:
			kind := kinds[random.IntN(len(kinds))]
			if out, err := d.command("sim", "faults", "--venue", victims[random.IntN(len(victims))], "--fault", kind,
				"--for", fmt.Sprint(5+random.IntN(60), "s")); err != nil {
				t.Fatalf("sim faults: %v\n%s", err, out)
			}
			inflicted[kind]++
			next = next.Add(faultEvery)
		}
	}
}

// simulatedTime is when the newest published price is of.
func (d *demo) simulatedTime(t *testing.T) time.Time {
	t.Helper()
	var newest time.Time
	d.await(t, "/api/v1/prices/BTC", "a price", func(_ int, body map[string]any) bool {
		data, _ := body["data"].(map[string]any)
		price, _ := data["aggregated"].(map[string]any)
		text, _ := price["timestamp"].(string)
		at, err := time.Parse(time.RFC3339Nano, text)
		newest = at
		return err == nil
	})
	return newest
}

// command runs a command on the demo's data and returns what it prints.
func (d *demo) command(args ...string) ([]byte, error) {
	command := exec.Command(d.binary, append(args, "--data-dir", d.dir, "-o", "json")...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(d.binary)+" "+strings.Join(args, " "), err, stderr.String())
	}
	return out, err
}
