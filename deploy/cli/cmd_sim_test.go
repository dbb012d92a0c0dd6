package cli

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// simulatedInstance is an instance with an embedded log whose producers read these venues of its simulator.
func simulatedInstance(t *testing.T, venues []string, change func(*instance.Instance)) *instance.Instance {
	t.Helper()
	dir, err := os.MkdirTemp("", "sim") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Feeds = dir, deploytest.FreeAddr(t), "sim"
	for slug, v := range cfg.Venues {
		v.Enabled = slices.Contains(venues, slug)
		cfg.Venues[slug] = v
	}
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	change(in)
	return in
}

// produce runs the instance's producers until the test ends.
func produce(t *testing.T, in *instance.Instance) {
	t.Helper()
	started, err := roles.ProducerRoles(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, role := range started {
		running.Go(func() {
			if err := role.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", role.Name, err)
			}
		})
	}
	t.Cleanup(func() { stop(); running.Wait() })
}

// rawLog is what has been read of the log so far.
type rawLog struct {
	t      *testing.T
	client *kgo.Client
	// trades and other ticks are ingest times, in the order of the log; dead are those of dead letters. By venue.
	trades, states, dead map[string][]int64
	gaps                 map[string]int
	// clocks are the newest clock records, seconds all of one partition.
	clocks  map[string]int64
	seconds map[string][]int64
}

func readRawLog(t *testing.T, in *instance.Instance) *rawLog {
	t.Helper()
	client, err := in.Stream.NewClient(kgo.ConsumeTopics(schemas.TopicTicksRaw, schemas.TopicTicksRawDead), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &rawLog{
		t: t, client: client, trades: map[string][]int64{}, states: map[string][]int64{}, dead: map[string][]int64{},
		gaps: map[string]int{}, clocks: map[string]int64{}, seconds: map[string][]int64{},
	}
}

// until reads on until what was read satisfies, for two minutes at most.
func (l *rawLog) until(what string, satisfies func() bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Minute)
	defer cancel()
	for !satisfies() {
		fetches := l.client.PollFetches(ctx)
		if ctx.Err() != nil {
			l.t.Fatalf("waiting until %s: %v", what, ctx.Err())
		}
		fetches.EachRecord(l.add)
	}
}

func (l *rawLog) add(r *kgo.Record) {
	if r.Topic == schemas.TopicTicksRawDead {
		var dead eventsv1.DeadRecord
		if err := dead.UnmarshalVT(r.Value); err != nil {
			l.t.Fatal(err)
		}
		if letter := dead.GetLetter(); letter != nil {
			l.dead[letter.Source] = append(l.dead[letter.Source], letter.IngestTime)
		}
		return
	}
	var raw eventsv1.RawRecord
	if err := raw.UnmarshalVT(r.Value); err != nil {
		l.t.Fatal(err)
	}
	switch {
	case raw.GetClock() != nil:
		l.clocks[raw.Producer] = max(l.clocks[raw.Producer], raw.GetClock().Time)
		if r.Partition == 0 {
			l.seconds[raw.Producer] = append(l.seconds[raw.Producer], raw.GetClock().Time)
		}
	case raw.GetGap() != nil:
		l.gaps[raw.GetGap().Venue]++
	case raw.GetTick().GetKind() == eventsv1.TickKind_TICK_KIND_TRADE:
		l.trades[raw.Producer] = append(l.trades[raw.Producer], raw.GetTick().IngestTime)
	case raw.GetTick() != nil:
		l.states[raw.Producer] = append(l.states[raw.Producer], raw.GetTick().IngestTime)
	}
}

// caughtUp reports that all these producers have sent everything up to a time.
func (l *rawLog) caughtUp(venues []string, until time.Time) func() bool {
	return func() bool {
		return !slices.ContainsFunc(venues, func(v string) bool { return l.clocks[v] < until.UnixNano() })
	}
}

// leastClock is the least of the clocks of producers.
func leastClock(clocks map[string]int64, producers []string) int64 {
	least := clocks[producers[0]]
	for _, p := range producers[1:] {
		least = min(least, clocks[p])
	}
	return least
}

// within counts what is in [from, to).
func within(times []int64, from, to time.Time) (n int) {
	for _, t := range times {
		if t >= from.UnixNano() && t < to.UnixNano() {
			n++
		}
	}
	return n
}

// A provider that goes silent, floods, sends garbage or hangs up harms no other, and is read again afterwards.
func TestFaultyVenueHarmsNoOther(t *testing.T) {
	bad := map[string]string{"kraken": "silence", "coinbase": "garbage", "gate": "flood", "bitstamp": "disconnect"}
	good := []string{"cryptocom", "mexc", "upbit"}
	venues := append([]string{"bitstamp", "coinbase", "gate", "kraken"}, good...)
	in := simulatedInstance(t, venues, func(*instance.Instance) {})
	produce(t, in)
	log := readRawLog(t, in)
	log.until("every venue trades", func() bool {
		return !slices.ContainsFunc(venues, func(v string) bool { return len(log.trades[v]) < 40 })
	})
	const span = 4 * time.Second
	before := time.Now()
	log.until("four seconds have passed", log.caughtUp(venues, before.Add(span)))
	for _, v := range venues {
		if within(log.trades[v], before, before.Add(span)) == 0 || len(log.dead[v]) > 0 {
			t.Fatalf("%s: %d trades in %s, %d dead letters, without a fault", v, within(log.trades[v], before, before.Add(span)), span, len(log.dead[v]))
		}
	}

	verb := operations.SimFaultsVerb(in)
	ask := func(input any) (lines []operations.FaultLine, err error) {
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		err = verb.Run(t.Context(), raw, func(line any) error {
			lines = append(lines, line.(operations.FaultLine))
			return nil
		})
		return lines, err
	}
	frames := in.Sim.Load().Stats("gate").Frames
	hit := time.Now()
	const lasting = 10 * time.Minute // ended below
	for venue, fault := range bad {
		if _, err := ask(operations.FaultInput{Venue: venue, Fault: fault, For: lasting}); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := ask(operations.FaultInput{})
	if err != nil || len(lines) != len(bad) {
		t.Fatalf("in force are %+v, %v", lines, err)
	}
	for _, line := range lines {
		if bad[line.Venue] != line.Fault || line.Until.Before(hit.Add(lasting)) || line.Until.After(time.Now().Add(lasting)) {
			t.Errorf("in force is %+v, want %s until %s", line, bad[line.Venue], hit.Add(lasting))
		}
	}
	// What was under way when it began may still arrive, on a slow machine for long: each is waited for.
	const quiet = 2 * time.Second
	caughtUp := func() time.Time { // up to which all of them have sent everything
		return time.Unix(0, leastClock(log.clocks, venues))
	}
	quietFor := func(times ...[]int64) bool {
		return !slices.ContainsFunc(times, func(times []int64) bool { return within(times, caughtUp().Add(-quiet), caughtUp()) > 0 }) && caughtUp().After(hit.Add(quiet))
	}
	ordinary := within(log.trades["gate"], before, before.Add(span))
	log.until("kraken is silent", func() bool { return quietFor(log.trades["kraken"]) })
	log.until("bitstamp, which takes no connection, sends nothing", func() bool { return quietFor(log.trades["bitstamp"], log.states["bitstamp"]) })
	log.until("coinbase sends garbage, and trades beside it", func() bool {
		return len(log.dead["coinbase"]) >= 20 && within(log.trades["coinbase"], hit.Add(time.Second), caughtUp()) >= 20
	})
	log.until("gate floods, and trades beside it", func() bool {
		return in.Sim.Load().Stats("gate").Frames-frames > int64(10*ordinary) && within(log.trades["gate"], hit.Add(time.Second), caughtUp()) >= 20
	})
	log.until("the others go on", func() bool {
		return !slices.ContainsFunc(good, func(v string) bool { return within(log.trades[v], hit.Add(time.Second), caughtUp()) < 20 })
	})
	for _, v := range good {
		if len(log.dead[v]) > 0 || log.gaps[v] > 0 {
			t.Errorf("%s: %d dead letters, %d gaps: harmed by others", v, len(log.dead[v]), log.gaps[v])
		}
	}

	for venue := range bad {
		if _, err := ask(operations.FaultInput{Venue: venue, Fault: "none"}); err != nil {
			t.Fatal(err)
		}
	}
	over := time.Now()
	log.until("all venues trade again", func() bool {
		return !slices.ContainsFunc(venues, func(v string) bool { return within(log.trades[v], over.Add(time.Second), over.Add(time.Hour)) == 0 })
	})
	if lines, err := ask(operations.FaultInput{}); err != nil || len(lines) != 0 {
		t.Errorf("in force are still %+v, %v", lines, err)
	}
}

func TestFaultsAreRefusedWithARemedy(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.Feeds = "sim"
	in := &instance.Instance{Config: cfg, Clock: instance.NewClock(cfg), Log: slog.New(slog.DiscardHandler)}
	run := func(input operations.FaultInput) error {
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		return operations.SimFaultsVerb(in).Run(t.Context(), raw, func(any) error { return nil })
	}
	if err := run(operations.FaultInput{}); err == nil || !strings.Contains(err.Error(), "--feeds sim") {
		t.Errorf("without a simulator: %v", err)
	}
	if _, _, err := roles.SimulatorRoles(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		input operations.FaultInput
		want  string
	}{
		{operations.FaultInput{Venue: "mtgox", Fault: "silence", For: time.Minute}, `--venue "mtgox" is not simulated: use binance, `},
		{operations.FaultInput{Fault: "silence", For: time.Minute}, `--venue "" is not simulated`},
		{operations.FaultInput{Venue: "kraken", Fault: "sulk", For: time.Minute}, `--fault "sulk" is unknown: use delisting, disconnect, flood, frozen, garbage, halted, silence or none`},
		{operations.FaultInput{Venue: "kraken", Fault: "frozen", For: time.Minute}, `--fault frozen: kraken is not polled: use one of aave, `},
		{operations.FaultInput{Venue: "aave", Fault: "delisting", For: time.Minute}, `--fault delisting: aave is not a venue: use one of binance, `},
		{operations.FaultInput{Venue: "aave", Fault: "halted", For: time.Minute}, `--fault halted: aave is not a venue: use one of binance, `},
		{operations.FaultInput{Venue: "kraken", Fault: "silence"}, `--for 0s is outside 1s to 24h0m0s`},
		{operations.FaultInput{Venue: "kraken", Fault: "silence", For: 25 * time.Hour}, `--for 25h0m0s is outside`},
	} {
		if err := run(test.input); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %s", test.input, err, test.want)
		}
	}
	if faults := in.Sim.Load().Faults(); len(faults) > 0 {
		t.Errorf("refused faults are in force: %+v", faults)
	}
	for fault := range operations.FaultKinds {
		venue := "kraken"
		if fault == operations.Frozen {
			venue = "aave"
		}
		if err := run(operations.FaultInput{Venue: venue, Fault: fault, For: time.Minute}); err != nil || operations.FaultName(in.Sim.Load().Faults()[venue]) != fault {
			t.Errorf("%s: %v, in force is %+v", fault, err, in.Sim.Load().Faults())
		}
	}
	if err := run(operations.FaultInput{Venue: "aave", Fault: "none"}); err != nil {
		t.Error(err)
	}
	if err := run(operations.FaultInput{Venue: "kraken", Fault: "none"}); err != nil || len(in.Sim.Load().Faults()) > 0 {
		t.Errorf("ending it: %v, in force is %+v", err, in.Sim.Load().Faults())
	}
	if err := in.Sim.Load().SetFaults("kraken", provider.Faults{Silence: true, Flood: 1}); err != nil || operations.FaultName(in.Sim.Load().Faults()["kraken"]) != "other" {
		t.Errorf("a fault without a name: %v", err)
	}
}
