package deploy

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
)

// An accelerated run begins in the past: behind records of the present its own would be late.
func TestAcceleratedRunRefusesANewerLog(t *testing.T) {
	dir, err := os.MkdirTemp("", "sim") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen = dir, freeAddr(t)
	cfg.Feeds, cfg.Sim.Speed = "sim", 100
	in, err := OpenInstance(t.Context(), cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	start := in.Clock.Now()
	if age := time.Since(start); age < acceleratedPast-time.Second || age > acceleratedPast+time.Minute {
		t.Errorf("the run begins %s ago, want %s", age, acceleratedPast)
	}
	client, err := in.Stream.NewClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	write := func(at time.Time) {
		t.Helper()
		record := &kgo.Record{Topic: schemas.TopicTicksRaw, Partition: 3, Value: []byte{}, Timestamp: at}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.refuseNewerLog(t.Context(), start); err != nil {
		t.Errorf("an empty log is refused: %v", err)
	}
	write(start.Add(-time.Hour))
	if err := in.refuseNewerLog(t.Context(), start); err != nil {
		t.Errorf("an older log is refused: %v", err)
	}
	write(start.Add(time.Hour))
	if err := in.refuseNewerLog(t.Context(), start); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a newer log: %v, want a refusal that names the remedy", err)
	}
}

func TestRealTimeIsTheMachinesClock(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Feeds = "sim"
	if clock := newClock(cfg); clock != (producers.WallClock{}) {
		t.Errorf("speed 1 runs on %T", clock)
	}
}

// Nothing beside the simulator may be asked for prices that are then called simulated, nor the other way round.
func TestSimulatorLeavesConfiguredVenuesAlone(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Feeds = "sim"
	cfg.Venues["kraken"] = VenueConfig{Enabled: true, WSURL: "ws://127.0.0.1:1", RESTURL: "http://127.0.0.1:1"}
	in := &Instance{Config: cfg, Clock: newClock(cfg)}
	_, simulated, err := in.simulatorRoles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if simulated["kraken"] || in.Config.Venues["kraken"].WSURL != "ws://127.0.0.1:1" {
		t.Errorf("a venue with an address of its own is led to %s", in.Config.Venues["kraken"].WSURL)
	}
	if !simulated["coinbase"] || !strings.HasPrefix(in.Config.Venues["coinbase"].WSURL, "ws://127.0.0.1:") {
		t.Errorf("coinbase is led to %q", in.Config.Venues["coinbase"].WSURL)
	}
	if cfg.Venues["coinbase"].WSURL != "" {
		t.Error("the configuration that was given has changed")
	}
	for slug := range simulated {
		if _, ok := exchanges.Find(slug); !ok {
			t.Errorf("%s is simulated and has no adapter", slug)
		}
	}
}
