// Package enginetest gives the tests of a package the real ClickHouse engine in their own process. A
// process can run one only, so all tests of a package share it, each with databases of its own.
package enginetest

import (
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

var (
	shared    *engine.Engine // nil where the machine has no engine
	databases atomic.Int32
)

// Main is the TestMain of a package: it opens the engine in a folder of its own, runs the tests and
// exits. Without the engine's library those that ask for it are skipped.
func Main(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	if _, err := engine.Find(""); err != nil {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	if shared, err = engine.Open(dir, engine.Options{}); err != nil {
		return failed(err)
	}
	code = m.Run()
	if err := shared.Close(); err != nil {
		return failed(err)
	}
	return code
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// Database names a database that no other test of this process has, and the way to it. Nobody has
// created it yet, and it is dropped when t ends: the engine sees to every table now and then, and those of thirty databases take
// a fifth of a processor.
func Database(t testing.TB) (name string, way http.RoundTripper) {
	t.Helper()
	name, way = KeptDatabase(t)
	t.Cleanup(func() { drop(t, name) })
	return name, way
}

// KeptDatabase is Database for tables that several tests of a process share: it stays when t ends.
func KeptDatabase(t testing.TB) (name string, way http.RoundTripper) {
	t.Helper()
	if shared == nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	return fmt.Sprintf("test%d", databases.Add(1)), shared.Transport()
}
