package figures

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
)

// BenchmarkHotReadsBesideReaders asks how many reads of a price over REST are left while people read by SQL: without a process
// for their statements, beside one that has nothing to do, and beside one that a reader keeps busy.
func BenchmarkHotReadsBesideReaders(b *testing.B) {
	const path, statement = "/api/v1/prices/BTC", "SELECT coin_id, max(price), count() FROM v_prices GROUP BY coin_id ORDER BY coin_id"
	plans := filepath.Join(b.TempDir(), "plans.yaml")
	if err := os.WriteFile(plans, []byte(wide), 0o600); err != nil {
		b.Fatal(err)
	}
	in := newInstance(b, build(b), "MARKETLOG_PLANS_FILE="+plans)
	p := in.start(b, "sim")
	in.await(b, p, "/readyz", time.Now())
	in.awaitFilled(b, "/api/v1/coins/top")
	p.stop()
	in.environment = append(in.environment, "MARKETLOG_AUTH_MODE=required") // the last word counts
	p = in.start(b, "none")
	in.await(b, p, "/readyz", time.Now())
	hot := func() float64 {
		key := in.key(b) // its limit is unused
		in.read(b, path, key)
		rate, _ := querytest.Measure(b, in.rest, path, key)
		return rate
	}
	var without, idle, busy []float64
	for b.Loop() {
		p.stopSQL()
		without = append(without, hot())
		in.ask(b, "SELECT 1")
		idle = append(idle, hot())
		over, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-over:
					return
				default:
					in.ask(b, statement)
				}
			}
		}()
		busy = append(busy, hot())
		close(over)
		<-ended
	}
	b.ReportMetric(middle(without), "req/s")
	b.ReportMetric(middle(idle)/middle(without), "idle-of-without")
	b.ReportMetric(middle(busy)/middle(without), "busy-of-without")
}

// ask reads the answer to a statement of people to its end.
func (in *instance) ask(b *testing.B, statement string) {
	answer, err := http.Post("http://"+in.sql, "text/plain", strings.NewReader(statement))
	if err != nil {
		b.Errorf("%s: %v", statement, err)
		return
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Errorf("%s: got %d %.200s, %v", statement, answer.StatusCode, text, err)
	}
}

// stopSQL ends the process of people's statements, if it runs; the next one starts it.
func (p *process) stopSQL() {
	p.b.Helper()
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(p.Pid), "-f", "^marketlog-sql").Output() // an error: there is none
	for _, line := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			p.b.Fatalf("finding the SQL process: %q", out)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			p.b.Fatalf("ending the SQL process: %v", err)
		}
	}
}
