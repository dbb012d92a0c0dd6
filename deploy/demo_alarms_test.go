package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What an operator looks at raises no alarm about an instance that works.
func TestDemoIsFoundHealthy(t *testing.T) {
	d := filledDemo(t)
	asked := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(d.binary, append(args, "--data-dir", d.dir, "-o", "json")...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CACHE_HOME="+t.TempDir()) // without an engine in it
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
		}
		return string(out)
	}
	var f finding
	for line := range strings.Lines(asked("doctor")) {
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Verdict == "failed" {
			t.Errorf("doctor: %s%v", line, err)
		}
	}
	const behind = 100_000 // records: seconds of the simulator's ticks on a busy machine
	groups := map[string]bool{}
	for line := range strings.Lines(asked("topics", "lag")) {
		var row lagRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("topics lag: %v of %s", err, line)
		}
		groups[row.Group] = true
		if row.Lag != nil && (*row.Lag > behind || *row.Lag > 0 && *row.Committed < 0) {
			t.Errorf("topics lag: %s", line)
		}
	}
	if len(groups) < 20 {
		t.Errorf("topics lag names %d groups", len(groups))
	}
	for _, row := range d.query(t, "SELECT sink, log_partition, behind_seconds FROM v_lag WHERE behind_seconds > 120") {
		t.Errorf("v_lag: %v", row)
	}
	if clockless := d.query(t, "SELECT DISTINCT sink FROM v_lag WHERE behind_seconds IS NULL AND sink = 'keys.v1'"); len(clockless) != 1 {
		t.Errorf("v_lag says of keys.v1, in which no clock is written: %v", clockless)
	}
	if out := asked("gaps"); strings.Count(out, "\n") > 20 {
		t.Errorf("gaps of an instance that read no past:\n%.4000s", out)
	}
}
