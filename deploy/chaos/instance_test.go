package chaos

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// unlimited are plans that no reader of a test uses up.
const unlimited = `free: {per_minute: 30, per_month: 10000, history_days: 7, sockets: 1}
pro: {per_minute: 1000000, per_month: 0, charts_per_minute: 1000000, history_days: 1825, sockets: 20}
enterprise: {per_minute: 1000000, per_month: 0, charts_per_minute: 1000000, history_days: 1825, sockets: 100, bulk: true, mcp: true, sql: true}
`

// instance is an installation in one process, on one data directory.
type instance struct {
	installation
	program
	dir  string
	rest string
	// shift is how far ahead of the machine's the clock of the next life is.
	shift time.Duration
}

func newInstance(t *testing.T, binary string, environment ...string) *instance {
	t.Helper()
	dir := t.ArtifactDir() // kept with -artifacts
	in := &instance{dir: filepath.Join(dir, "data")}
	freePorts(t, &in.rest, &in.sql, &in.kafka)
	in.acks = filepath.Join(dir, "acked")
	plans := filepath.Join(dir, "plans.yaml")
	if err := os.WriteFile(plans, []byte(unlimited), 0o600); err != nil {
		t.Fatal(err)
	}
	in.program = program{
		command: []string{
			binary, "run", "--data-dir", in.dir, "--listen", in.rest, "--sql-listen", in.sql, "--kafka-listen", in.kafka, "--feeds",
		},
		environment: append(environment, "MARKETLOG_ACK_LOG="+in.acks, setting("auth.mode", "open"), setting("plans_file", plans)),
		killed:      filepath.Join(dir, "killed"), log: filepath.Join(dir, "log"),
	}
	return in
}

// start runs the instance with feeds live or none; fault is step:n, or empty.
func (in *instance) start(t *testing.T, feeds, fault string) *process {
	t.Helper()
	return in.program.start(t, fault, in.shift, feeds)
}
