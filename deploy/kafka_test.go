package deploy

import (
	"testing"

	"github.com/marketlog/marketlog/stream"
)

// writer is who may write into the log of a running instance: who can read its data directory.
func writer(t testing.TB, cfg Config) stream.Config {
	t.Helper()
	config, err := cfg.streamConfig([]string{cfg.Kafka.Listen})
	if err != nil {
		t.Fatal(err)
	}
	return config
}
