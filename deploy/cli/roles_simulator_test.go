package cli

import (
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
)

// An accelerated run begins in the past: after records of the present its own would be late.
func TestAcceleratedRunRefusesANewerLog(t *testing.T) {
	dir, err := os.MkdirTemp("", "sim") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen = dir, deploytest.FreeAddr(t)
	cfg.Feeds, cfg.Sim.Speed = "sim", 100
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	start := in.Clock.Now()
	if age := time.Since(start); age < instance.AcceleratedPast-time.Second || age > instance.AcceleratedPast+time.Minute {
		t.Errorf("the run begins %s ago, want %s", age, instance.AcceleratedPast)
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
	if err := roles.RefuseNewerLog(t.Context(), in, start); err != nil {
		t.Errorf("an empty log is refused: %v", err)
	}
	write(start.Add(-time.Hour))
	if err := roles.RefuseNewerLog(t.Context(), in, start); err != nil {
		t.Errorf("an older log is refused: %v", err)
	}
	write(start.Add(time.Hour))
	if err := roles.RefuseNewerLog(t.Context(), in, start); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a newer log: %v, want a refusal that names the remedy", err)
	}
	// So the instance does not start.
	if _, err := roles.ProducerRoles(t.Context(), in); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "--sim-speed 1") {
		t.Errorf("starting on a newer log: %v, want a refusal that names the directory and the remedy", err)
	}
}

// An accelerated run loses no second on its way, meets no venue's limit, and goes on in real time.
func TestAcceleratedRunFallsToRealTime(t *testing.T) {
	const behind = 40 * time.Second // a heartbeat of every venue lies within
	start := time.Now().Add(-behind).Truncate(time.Second)
	// Few markets, so that slow machines come to the present too.
	symbols := map[string][]string{"cryptocom": {"BTC_USD", "ETH_USD", "XRP_USD"}, "kraken": {"BTC/USD", "ETH/USD", "XRP/USD"}}
	venues := slices.Sorted(maps.Keys(symbols))
	in := simulatedInstance(t, venues, func(in *instance.Instance) {
		in.Clock = producers.NewVirtualClock(start, 20)
		for _, slug := range venues {
			v := in.Config.Venues[slug]
			v.Symbols = symbols[slug]
			in.Config.Venues[slug] = v
		}
	})
	produce(t, in)
	log := readRawLog(t, in)
	log.until("the present is reached", func() bool {
		return time.Since(in.Clock.Now()) < 100*time.Millisecond && log.caughtUp(venues, start.Add(behind))()
	})
	reached := time.Now()
	log.until("three seconds more have passed", log.caughtUp(venues, reached.Add(3*time.Second)))
	for _, v := range venues {
		if len(log.dead[v]) > 0 || log.gaps[v] > 0 {
			t.Errorf("%s: %d dead letters, %d gaps", v, len(log.dead[v]), log.gaps[v])
		}
		if n := within(log.trades[v], start, start.Add(behind/2)); n < 20 {
			t.Errorf("%s: %d trades in the first half of the past", v, n)
		}
		if n := within(log.trades[v], reached, reached.Add(3*time.Second)); n == 0 {
			t.Errorf("%s: no trade in three seconds of real time", v)
		}
		last := start
		for _, second := range log.seconds[v] {
			at := time.Unix(0, second)
			if at.After(start.Add(behind)) {
				break // real time
			}
			if at.Before(last) || at.Sub(last) > time.Second {
				t.Errorf("%s: a clock record of %s after that of %s, want one for every second", v, at, last)
			}
			last = at
		}
	}
}

func TestRealTimeIsTheMachinesClock(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.Feeds = "sim"
	if clock := instance.NewClock(cfg); clock != (producers.WallClock{}) {
		t.Errorf("speed 1 runs on %T", clock)
	}
}

// Nothing beside the simulator may be asked for prices that are then called simulated, nor the other way round.
func TestSimulatorLeavesConfiguredVenuesAlone(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.Feeds = "sim"
	cfg.Venues["kraken"] = config.VenueConfig{Enabled: true, WSURL: "ws://127.0.0.1:1", RESTURL: "http://127.0.0.1:1"}
	ecb, coingecko := cfg.Sources["ecb"], cfg.Sources["coingecko"]
	ecb.URL, coingecko.Requests, coingecko.Per = "http://127.0.0.1:1/files", 7, time.Minute
	cfg.Sources["ecb"], cfg.Sources["coingecko"] = ecb, coingecko
	in := &instance.Instance{Config: cfg, Clock: instance.NewClock(cfg)}
	_, simulated, err := roles.SimulatorRoles(t.Context(), in)
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
	for slug, source := range in.Config.Sources {
		if led := strings.HasPrefix(source.URL, "http://127.0.0.1:") && source.URL != ecb.URL; led != (slug != "ecb") {
			t.Errorf("the source %s is led to %q", slug, source.URL)
		}
	}
	if got := in.Config.Sources["coingecko"]; got.Requests != 7 || got.Per != time.Minute {
		t.Errorf("the budget of coingecko that was configured is now %d in %s", got.Requests, got.Per)
	}
	if got := in.Config.Sources["coinpaprika"]; got.Requests != roles.DemoRequests || got.Per != time.Minute {
		t.Errorf("the budget of coinpaprika is %d in %s, want that of the demo", got.Requests, got.Per)
	}
	if cfg.Sources["coinpaprika"].URL != "" {
		t.Error("the sources that were given have changed")
	}
}
