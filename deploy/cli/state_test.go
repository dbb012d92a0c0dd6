package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// A disk that failed leaves files without a byte. An instance starts without what such a file held, or says which file it is
// and what to do; the log and the tables have tests of their own.
func TestFilesOfNoLengthStopNoStart(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	dir, err := os.MkdirTemp("", "state") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds = dir, "none"
	cfg.Listen, cfg.MetricsListen, cfg.SQLListen, cfg.Kafka.Listen = deploytest.FreeAddr(t), deploytest.FreeAddr(t), "", deploytest.FreeAddr(t)
	// life runs the instance until it is ready, and stops it.
	life := func() error {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- roles.Run(ctx, cfg, "run", io.Discard, deploytest.Quiet) }()
		for {
			select {
			case err := <-ended:
				return err
			case <-time.After(50 * time.Millisecond):
			}
			answer, err := http.Get("http://" + cfg.Listen + "/readyz")
			if err != nil {
				continue
			}
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				stop()
				return <-ended
			}
		}
	}
	if err := life(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"usage.json": true, instance.PausesFile: true, admin.RunFile: true}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != "pepper" && e.Name() != admin.LockFile {
			names[e.Name()] = true
		}
	}
	for name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := life(); err != nil {
		t.Errorf("with %v of no length: %v", names, err)
	}
	for _, name := range []string{"pepper", instance.SwitchesFile} {
		path := filepath.Join(dir, name)
		before, _ := os.ReadFile(path)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := life(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove") {
			t.Errorf("with %s of no length: got %v, want an error that names it and what to do", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if len(before) > 0 {
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
