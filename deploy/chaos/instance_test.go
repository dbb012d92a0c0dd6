package chaos

import (
	"path/filepath"
	"testing"
	"time"
)

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
	in.program = program{
		command: []string{
			binary, "run", "--data-dir", in.dir, "--listen", in.rest, "--sql-listen", in.sql, "--kafka-listen", in.kafka, "--feeds",
		},
		environment: append(environment, "MARKETLOG_ACK_LOG="+in.acks, setting("auth.mode", "open")),
		killed:      filepath.Join(dir, "killed"), log: filepath.Join(dir, "log"),
	}
	return in
}

// start runs the instance with feeds live or none; fault is step:n, or empty.
func (in *instance) start(t *testing.T, feeds, fault string) *process {
	t.Helper()
	return in.program.start(t, fault, in.shift, feeds)
}
