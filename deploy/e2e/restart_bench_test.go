package e2e

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/deploytest"
)

var (
	restartAge   = flag.Duration("restart-age", time.Minute, "how long an instance has run before it is killed for the first time")
	restartPause = flag.Duration("restart-pause", 15*time.Second, "how long it runs between two kills")
)

// restartGoal is within what a fresh price is to come after a kill, on a machine that does nothing else, in 95 of 100 cases.
const restartGoal = 5 * time.Second

// How long after a SIGKILL of everything in one process, as `make run` starts it, does REST answer again, and when with a price that
// was made after it? `make restarts` gives it the age at which the log of the demo is as long as it gets.
func BenchmarkFreshAfterKill(b *testing.B) {
	folder, err := os.MkdirTemp("", "demo") // b.TempDir may be longer than a socket's name can be
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(folder) })
	addrs, err := freeAddrs(3)
	if err != nil {
		b.Fatal(err)
	}
	d := &demo{base: "http://" + addrs[0], dir: filepath.Join(folder, "data"), binary: filepath.Join(folder, "marketlog")}
	if err := errors.Join(deploytest.BuildBinary(d.binary), os.Mkdir(filepath.Join(folder, "run"), 0o700)); err != nil {
		b.Fatal(err)
	}
	d.run(b, addrs)
	b.Cleanup(func() { d.kill() })
	if d.key, err = d.newKey("enterprise"); err != nil {
		b.Fatal(err)
	}
	<-time.After(*restartAge)
	var first, fresh []time.Duration
	for b.Loop() {
		d.kill()
		killed := time.Now()
		d.run(b, addrs)
		answers, isFresh := d.awaitPrice(b, killed)
		first, fresh = append(first, answers), append(fresh, isFresh)
		b.Logf("answers after %.2f s, a fresh price after %.2f s", answers.Seconds(), isFresh.Seconds())
		<-time.After(*restartPause)
	}
	slices.Sort(first)
	slices.Sort(fresh)
	within, _ := slices.BinarySearch(fresh, restartGoal+1)
	b.ReportMetric(first[len(first)/2].Seconds(), "s-until-it-answers")
	b.ReportMetric(fresh[len(fresh)/2].Seconds(), "s-until-fresh")
	b.ReportMetric(fresh[len(fresh)-1].Seconds(), "s-until-fresh-at-most")
	b.ReportMetric(float64(within)/float64(len(fresh)), "within-5-s")
}

// run starts it as `make run` does, on addresses of its own.
func (d *demo) run(b *testing.B, addrs []string) {
	b.Helper()
	log, err := os.OpenFile(d.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	d.process = exec.Command(d.binary, "run", "--feeds", "sim", "--data-dir", d.dir, "--listen", addrs[0], "--sql-listen", addrs[1], "--kafka-listen", addrs[2])
	d.process.Env = append(os.Environ(), d.registry())
	d.process.Stdout, d.process.Stderr = log, log
	if err := d.process.Start(); err != nil {
		b.Fatal(err)
	}
}

// kill ends the process by SIGKILL and waits until it is gone.
func (d *demo) kill() {
	_ = d.process.Process.Kill()
	_ = d.process.Wait() // it was killed
}

// awaitPrice reports how long after a kill the price of bitcoin is answered, and how long until it is one that was made since and is not stale.
func (d *demo) awaitPrice(b *testing.B, killed time.Time) (first, fresh time.Duration) {
	b.Helper()
	for ; time.Since(killed) < demoPatience; <-time.After(20 * time.Millisecond) {
		status, body, err := d.ask("/api/v1/prices/BTC")
		if err != nil || status != http.StatusOK {
			continue
		}
		if first == 0 {
			first = time.Since(killed)
		}
		data, _ := body["data"].(map[string]any)
		price, _ := data["aggregated"].(map[string]any)
		text, _ := price["timestamp"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(killed) && price["isStale"] == false {
			return first, time.Since(killed)
		}
	}
	b.Fatalf("no fresh price within %v; the log ends with\n%s", demoPatience, d.logEnd())
	return 0, 0
}
