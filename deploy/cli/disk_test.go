package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/cli/doctor"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/shadow"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// While the disk is full the producers write nothing, not even their clock; the gap of each venue is in the log, begun
// at once and whole afterwards, also where the process was killed meanwhile.
func TestFullDiskPausesProducersWithAGap(t *testing.T) {
	dir := t.TempDir()
	var free atomic.Int64
	free.Store(1 << 40)
	open := func() *instance.Instance {
		cfg := config.DefaultConfig()
		cfg.DataDir, cfg.Kafka.Listen, cfg.Feeds = dir, "127.0.0.1:0", "live"
		cfg.Retention.LogBytes, cfg.Retention.ReserveBytes = config.MinLogBytes, config.MinReserveBytes
		for slug := range cfg.Venues { // one venue, at an address where nobody listens
			cfg.Venues[slug] = config.VenueConfig{Enabled: slug == "kraken", WSURL: "ws://127.0.0.1:1", RESTURL: "http://127.0.0.1:1"}
		}
		in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		in.Disk = diskguard.New(diskguard.Config{Dir: dir, Reserve: config.MinReserveBytes, Space: func(string) (diskguard.Space, error) {
			return diskguard.Space{Free: free.Load(), Total: 1 << 41}, nil
		}})
		return in
	}
	run := func(in *instance.Instance, body func(read *gapReader)) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- in.Disk.While(ctx, diskguard.Feeds, func(ctx context.Context) error { return roles.RunProducers(ctx, in, nil) })
		}()
		body(newGapReader(t, in.Stream))
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}

	in := open()
	var since, began int64
	run(in, func(read *gapReader) {
		read.until("a clock", func() bool { return read.clock > 0 })
		free.Store(0)
		in.Disk.Look()
		read.until("the gap that begins", func() bool { return read.gaps["kraken"] != nil && read.gaps["sources"] != nil })
		g := read.gaps["kraken"]
		if g.Reason != diskguard.GapReason || g.FromTime != g.ToTime {
			t.Errorf("got gap %v, want one without an end", g)
		}
		since = g.FromTime
	})
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}

	in = open() // the disk is full still
	defer in.Close()
	began = in.Clock.Now().UnixNano()
	run(in, func(read *gapReader) {
		free.Store(1 << 40)
		in.Disk.Look()
		read.until("the whole gap", func() bool {
			return read.gaps["kraken"].GetToTime() > since && read.gaps["sources"].GetToTime() > since
		})
		if g := read.gaps["kraken"]; g.FromTime != since || g.ToTime < began {
			t.Errorf("got gap %d to %d, want %d to %d or later", g.FromTime, g.ToTime, since, began)
		}
		if left, err := instance.ReadPauses(in.Pauses.Path); err != nil || len(left.Since) > 0 {
			t.Errorf("remembered after the gaps were written: %v, %v", left.Since, err)
		}
	})
}

// A replay and a rebuild write as much as the views hold: without room they are refused before they write anything, with
// the disk's name and what to do. Comparing writes nothing, and giving up makes room: both are done.
func TestLongWorkIsRefusedWithoutRoom(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Feeds, cfg.Retention.LogBytes = t.TempDir(), "127.0.0.1:0", "none", config.MinLogBytes
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var free atomic.Int64
	in.Disk = diskguard.New(diskguard.Config{Dir: cfg.DataDir, Reserve: config.MinReserveBytes, Space: func(string) (diskguard.Space, error) {
		return diskguard.Space{Free: free.Load(), Total: 1 << 41}, nil
	}})
	produceTicks(t, in, 10)
	verbs := operations.InstanceVerbs(in)
	run := func(verb, input string) (lines int, err error) {
		t.Helper()
		v, ok := verbs[verb]
		if !ok {
			t.Fatalf("there is no verb %s", verb)
		}
		err = v.Run(t.Context(), []byte(input), func(any) error { lines++; return nil })
		return lines, err
	}
	const replayed, compared, abandoned = `{"view":"ticks"}`, `{"view":"ticks","verify":true}`, `{"abort":true}`
	for verb, input := range map[string]string{"replay": replayed, "rebuild": `{}`} {
		lines, err := run(verb, input)
		if err == nil || lines > 0 {
			t.Errorf("%s without room: %d lines, %v; want a refusal", verb, lines, err)
			continue
		}
		for _, part := range []string{"a " + verb + " writes", cfg.DataDir, "0 bytes free", "retention.reserve_bytes", "run the command again"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s without room: %q does not name %q", verb, err, part)
			}
		}
	}
	store, err := in.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replays, err := shadow.Of(store).Replays(t.Context())
	if err != nil || len(replays) > 0 {
		t.Errorf("a refused replay left %v, %v", replays, err)
	}
	for _, input := range []string{compared, abandoned} {
		if _, err := run("replay", input); err != nil {
			t.Errorf("replay %s without room: %v", input, err)
		}
	}
	free.Store(1 << 40)
	in.Disk.Look()
	for verb, input := range map[string]string{"replay": replayed, "rebuild": `{}`} {
		if _, err := run(verb, input); err != nil {
			t.Errorf("%s with room: %v", verb, err)
		}
	}
}

// gapReader follows ticks.raw.v1.
type gapReader struct {
	t      *testing.T
	client *kgo.Client
	gaps   map[string]*eventsv1.Gap // the newest of each venue
	clock  int64
}

func newGapReader(t *testing.T, cfg stream.Config) *gapReader {
	client, err := cfg.NewClient(kgo.ConsumeTopics(schemas.TopicTicksRaw))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &gapReader{t: t, client: client, gaps: map[string]*eventsv1.Gap{}}
}

func (r *gapReader) until(what string, ok func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for !ok() {
		fetches := r.client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("waited a minute for %s", what)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			raw := &eventsv1.RawRecord{}
			if err := raw.UnmarshalVT(rec.Value); err != nil {
				r.t.Fatal(err)
			}
			if g := raw.GetGap(); g != nil {
				r.gaps[g.Venue] = g
			}
			r.clock = max(r.clock, raw.GetClock().GetTime())
		})
	}
}

// A log that is damaged keeps the instance from being ready and is a gap, until the command settles it.
func TestDamagedLogIsReportedUntilItIsSettled(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Feeds, cfg.Retention.LogBytes = t.TempDir(), "127.0.0.1:0", "none", config.MinLogBytes
	open := func() *instance.Instance {
		in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	in := open()
	produceTicks(t, in, 10)
	produceTicks(t, in, 10)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(cfg.DataDir, "log", "partitions", schemas.TopicTicks+"-0", "0.dat")
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	raw[80] ^= 1
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := doctor.ExamineLog(cfg); len(found) != 1 || found[0].Verdict != "failed" || !strings.Contains(found[0].Message, "offsets 0 to 9 are gone") {
		t.Errorf("doctor says %v", found)
	}

	in = open()
	defer in.Close()
	if what := in.Lacking()["log"](); !strings.Contains(what, "ticks.v1/0") || !strings.Contains(what, "`marketlog rebuild`") {
		t.Errorf("the log lacks %q", what)
	}
	var reported []string
	err = operations.RebuildVerb(in).Run(t.Context(), nil, func(line any) error {
		if l := line.(operations.RebuildLine); l.Topic != "" {
			if what := in.Lacking()["tables"](); !strings.Contains(what, "`marketlog rebuild`") || !strings.Contains(what, l.Topic) {
				t.Errorf("while %s is written again the tables lack %q", l.Topic, what)
			}
		}
		if l := line.(operations.RebuildLine); l.Lost != "" {
			reported = append(reported, l.Lost)
		}
		return nil
	})
	if err != nil || len(reported) != 1 {
		t.Errorf("the rebuild reported %q, %v", reported, err)
	}
	for part, lacking := range in.Lacking() {
		if what := lacking(); what != "" {
			t.Errorf("settled, the %s lacks %q", part, what)
		}
	}
	// It is reported although nothing is fed, and the damage is settled already.
	read := newGapReader(t, in.Stream)
	read.until("the gap", func() bool { return read.gaps[instance.VenueLog] != nil })
	if g := read.gaps[instance.VenueLog]; g.Symbol != "ticks.v1/0" || g.Reason != instance.ReasonDamage || g.Missed != 10 || g.ToTime == 0 {
		t.Errorf("got gap %v", g)
	}
}
