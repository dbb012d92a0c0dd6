// Package streamtest gives tests the back ends that the service runs on: the embedded broker in the
// test's own process, a real Apache Kafka broker and a real Redis server as child processes. Every
// one listens on a free loopback port, keeps its files in a folder of its own and is gone when the
// test ends, also when the test binary is killed (on Linux).
//
// What a machine lacks is skipped under the name of its tier. With CI set it fails instead, so that
// a gate which ran without a back end cannot look green.
package streamtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The tiers of the gate. A test belongs to the embedded tier unless it says otherwise.
const (
	TierEmbedded   = "embedded"
	TierKafka      = "kafka"
	TierRedis      = "redis"
	TierRecordings = "recordings"
	// TierContract are tools of others that hold the API against its document.
	TierContract = "contract"
	// TierMCP are the official clients of the Model Context Protocol.
	TierMCP = "mcp"
	// TierBucket is a server of buckets.
	TierBucket = "bucket"
	// TierBrowser is a browser, and what the pages are built with.
	TierBrowser = "browser"
)

// InTier counts t and its subtests under the named tier in the table that closes the gate.
func InTier(t testing.TB, tier string) {
	t.Helper()
	t.Attr("tier", tier)
}

// Missing skips t because this machine lacks what the tier needs, and fails it where CI is set.
func Missing(t testing.TB, tier, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("tier %s: %s, and CI leaves no tier out", tier, why)
	}
	t.Skipf("tier %s: %s", tier, why)
}

// Recordings returns the folder of captured provider messages that MARKETLOG_RECORDINGS names, and
// puts t into the recordings tier. Where the variable is unset the test is skipped; where it names
// no folder the test fails, also outside CI: whoever sets it wants these tests to run.
func Recordings(t testing.TB) string {
	t.Helper()
	InTier(t, TierRecordings)
	folder := os.Getenv("MARKETLOG_RECORDINGS")
	if folder == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS is not set")
	}
	if !filepath.IsAbs(folder) {
		t.Fatalf("MARKETLOG_RECORDINGS is %q, want an absolute path: tests run in the folders of their packages", folder)
	}
	if stat, err := os.Stat(folder); err != nil || !stat.IsDir() {
		t.Fatalf("MARKETLOG_RECORDINGS is %q, which is no folder", folder)
	}
	return folder
}

// Name returns a topic or group name that no other test has: what is asked for, the test's name and
// a random part, in the characters that Kafka allows.
func Name(t testing.TB, what string) string {
	t.Helper()
	legal := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}
	test := strings.Map(legal, t.Name())
	return fmt.Sprintf("%s.%.80s.%s", what, test, strings.ToLower(rand.Text()[:8]))
}

// Backends runs body as a subtest on every broker of the log: embedded on the one inside the
// process, kafka on a real one. Body gets the broker's address.
func Backends(t *testing.T, body func(t *testing.T, addr string)) {
	t.Helper()
	t.Run(TierEmbedded, func(t *testing.T) { body(t, Kfake(t)) })
	t.Run(TierKafka, func(t *testing.T) { body(t, Kafka(t)) })
}

// Ports that FreePort draws from: below those from which systems take one for a connection, or for whoever listens on any. Such a one
// would be gone before a server that is started listens on it, or while one is away that is stopped and started again.
const firstPort, ports = 20_000, 12_000

// handedOut are the ports that this process was given.
var handedOut sync.Map

// FreePort is a port of 127.0.0.1 that nothing listens on. It draws, so that tests of several packages do not come to the same, and gives
// none twice.
func FreePort() (int, error) {
	failed := errors.New("all were given away")
	for range 1000 {
		port := firstPort + mathrand.IntN(ports)
		if _, given := handedOut.LoadOrStore(port, true); given {
			continue
		}
		var listener net.Listener
		if listener, failed = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); failed == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("looking for a free port: %w", failed)
}

// freePorts returns n free ports. Another process may still take one before it is used, so callers try again with others when their
// server ends at once.
func freePorts(n int) ([]int, error) {
	list := make([]int, n)
	for i := range list {
		var err error
		if list[i], err = FreePort(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
