package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/diskbudget"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

const (
	// shortBudgeted is how much simulated time passes in the gate, `make budget` lets two days pass; dropsAfter is when the budget is surely used up.
	shortBudgeted, dropsAfter = 15 * time.Minute, 36 * time.Hour
	// budgetBytes is more than what eight markets write in two days of what is kept, of which two days are never dropped, and the least of ticks and prices,
	// and much less than all that they write: ticks and prices are dropped from the first day on. budgetedMemory is what they may take of memory at any age.
	budgetBytes, budgetedMemory = 1_300_000_000, 1_000_000_000
	// budgetedRate is how many ticks all venues together would have a second, so that one has enough of them.
	budgetedRate = 2250
)

// TestAcceleratedRunStaysWithinItsBudgets lets simulated time pass as fast as the machine can while one venue's eight markets are written. At every look
// the data directory is within retention.disk_bytes, and memory within what it needs at the beginning. At the end every view that is left is what a
// replay of the log that is left makes, the archive is whole, and answers of before are refused by the time from which they are kept.
// MARKETLOG_BUDGETED is the time that passes.
func TestAcceleratedRunStaysWithinItsBudgets(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	length := shortBudgeted
	if text := os.Getenv("MARKETLOG_BUDGETED"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	alone(t)
	d, err := startDemo(deploytest.FreeAddr(t), deploytest.FreeAddr(t), deploytest.FreeAddr(t), "--sim-speed", "1000", "--sim-rate", strconv.Itoa(budgetedRate), "--config", eightMarkets(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.end(); err != nil {
			t.Error(err)
		}
	}()
	began, start := time.Now(), d.simulatedTime(t)
	var most int64
	memory, looks := 0, 0
	now := start
	for ; now.Sub(start) < length; now = d.simulatedTime(t) {
		most, memory = max(most, d.used(t)), max(memory, d.resident(t))
		if looks++; most > budgetBytes || memory > budgetedMemory {
			t.Fatalf("after %s of simulated time: %d of %d bytes on the disk, %d of %d bytes in memory", now.Sub(start), most, budgetBytes, memory, budgetedMemory)
		}
		time.Sleep(time.Second) // it is another process's time
	}
	t.Logf("%s of simulated time in %s: at most %d bytes on the disk, %d in memory", now.Sub(start), time.Since(began).Round(time.Second), most, memory)
	streamtest.Report(t, "simulated_seconds", int(now.Sub(start).Seconds()))
	streamtest.Report(t, "most_disk_bytes", int(most))
	streamtest.Report(t, "most_memory_bytes", memory)
	if length >= dropsAfter {
		status, body, err := d.ask("/api/v1/prices/BTC?asOf=" + start.Add(time.Hour).Format(time.RFC3339))
		failure, _ := body["error"].(map[string]any)
		if err != nil || failure["code"] != "AGED_OUT" || failure["availableFrom"] == nil {
			t.Errorf("as of the first hour: got %d, %v, %v, want 410 AGED_OUT", status, body, err)
		}
	}
	for _, view := range []string{"all", "ticks"} {
		out, err := d.command("replay", "--view", view, "--verify")
		if err != nil {
			t.Fatalf("replay of %s: %v\n%s", view, err, out)
		}
		var result struct{ Compared, Differing, Outside int64 }
		lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
		if err := json.Unmarshal(lines[len(lines)-1], &result); err != nil {
			t.Fatalf("reading the result of the replay: %v\n%s", err, out)
		}
		t.Logf("%s: %+v", view, result)
		streamtest.Report(t, "rows_compared_"+view, int(result.Compared))
		if result.Compared == 0 || result.Differing != 0 || length < dropsAfter && result.Outside != 0 {
			t.Errorf("%s: got %+v, want rows and none that differs", view, result)
		}
	}
	if out, err := d.command("archive", "verify", "--deep"); err != nil {
		t.Errorf("verifying the archive: %v\n%s", err, out)
	}
}

// eightMarkets writes a configuration of one venue with eight markets, and a small disk budget. Sources report the thousand coins that nobody trades here once an
// hour: every minute their rows would be most of what is written, and kept.
func eightMarkets(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "retention: {disk_bytes: %d, log_bytes: 70000000}\nvenues:\n", budgetBytes)
	for slug := range config.DefaultConfig().Venues {
		if slug == "kraken" {
			text.WriteString("  kraken: {symbols: [BTC/USD, ETH/USD, SOL/USD, XRP/USD, ADA/USD, DOGE/USD, LTC/USD, DOT/USD]}\n")
		} else {
			fmt.Fprintf(&text, "  %s: {enabled: false}\n", slug)
		}
	}
	text.WriteString("sources:\n  coinpaprika: {enabled: false}\n  coingecko: {interval: 1h}\n")
	path := filepath.Join(t.TempDir(), "marketlog.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// used is what the demo's log, archive and tables take on the disk.
func (d *demo) used(t *testing.T) (sum int64) {
	t.Helper()
	for _, part := range []string{"log", "archive", "clickhouse"} {
		size, err := diskbudget.Size(filepath.Join(d.dir, part))
		if err != nil {
			t.Fatal(err)
		}
		sum += size
	}
	return sum
}
