package streamtest

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Kfake starts the embedded broker in this process, with its log in a folder of the test, and
// returns its address. Topics must be created, as on a real broker.
func Kfake(t testing.TB) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(t.TempDir()))
	if err != nil {
		t.Fatalf("starting the embedded broker: %v", err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}
