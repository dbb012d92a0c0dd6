package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// startInstance runs everything but producers in this process, on free ports.
func startInstance(t *testing.T) config.Config {
	t.Helper()
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	dir, err := os.MkdirTemp("", "replay") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds = dir, "none"
	cfg.Listen, cfg.MetricsListen, cfg.SQLListen, cfg.Kafka.Listen = deploytest.FreeAddr(t), deploytest.FreeAddr(t), deploytest.FreeAddr(t), deploytest.FreeAddr(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- roles.Run(ctx, cfg, "run", t.Output(), slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running: %v", err)
		}
		os.RemoveAll(dir)
	})
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, admin.RunFile)); err == nil {
			return cfg
		}
		if time.Now().After(deadline) {
			t.Fatal("the instance did not start")
		}
	}
}

// writeRawTicks writes seconds of a market into ticks.raw.v1 as one venue's producer does.
func writeRawTicks(t *testing.T, cfg config.Config, begin time.Time, seconds int) {
	t.Helper()
	producer, err := deploytest.Writer(t, cfg).NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	raw, err := schemas.TopicNamed(schemas.TopicTicksRaw)
	if err != nil {
		t.Fatal(err)
	}
	write := func(partition int32, at time.Time, rec *eventsv1.RawRecord) {
		rec.Producer, rec.Epoch = "kraken", 1
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		producer.Produce(t.Context(), &kgo.Record{Topic: raw.Name, Partition: partition, Value: value, Timestamp: at}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("producing: %v", err)
			}
		})
	}
	for n := range seconds {
		at := begin.Add(time.Duration(n) * time.Second)
		for i, base := range []string{"XBT", "ETH", "SOL", "NOSUCH"} {
			tick := &eventsv1.Tick{
				Venue: "kraken", Symbol: base + "/USD", Base: base, Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
				EventTime: at.UnixNano(), IngestTime: at.UnixNano(), Price: fmt.Sprint(1000*(i+1) + n%7), Size: "0.5", TradeId: fmt.Sprint(n),
			}
			id := schemas.EventID{}
			copy(id[:], fmt.Sprintf("%s %d", base, n))
			tick.EventId = id[:]
			write(stream.PartitionFor("kraken|"+base, raw.Partitions), at, &eventsv1.RawRecord{Body: &eventsv1.RawRecord_Tick{Tick: tick}})
		}
		if n%60 == 59 {
			// Folds that catch up run apart: where ticks are two minutes older than the clocks, no price is fresh.
			awaitFolds(t, producer)
		}
		for p := range raw.Partitions {
			write(p, at, &eventsv1.RawRecord{Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at.UnixNano()}}})
		}
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// awaitFolds waits until the folds have taken all that is written.
func awaitFolds(t *testing.T, producer *kgo.Client) {
	t.Helper()
	awaitGroups(t, producer, "resolve", "prices")
}

// awaitGroups waits until these consumer groups are at the end of what they read.
func awaitGroups(t *testing.T, producer *kgo.Client, groups ...string) {
	t.Helper()
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(50 * time.Millisecond) {
		lags, err := kadm.NewClient(producer).Lag(t.Context(), groups...)
		behind := int64(0)
		for _, group := range lags {
			err = errors.Join(err, group.Error())
			behind += group.Lag.Total()
		}
		if err == nil && behind == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v are %d records behind: %v", groups, behind, err)
		}
	}
}

// marketlog runs one command line in this process.
func marketlog(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	app := command.Runtime{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Env: []string{"HOME=" + os.Getenv("HOME")}}
	code = cli.Execute(t.Context(), &app, args)
	return code, out.String(), errs.String()
}

func lastLine(t *testing.T, text string, into any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), into); err != nil {
		t.Fatalf("reading the last line of %q: %v", text, err)
	}
}

func TestReplayOfARunningInstance(t *testing.T) {
	alone(t)
	cfg := startInstance(t)
	writeRawTicks(t, cfg, time.Now().UTC().Truncate(time.Minute).Add(-20*time.Minute), 300)
	replay := func(wantCode int, args ...string) (result processors.ReplayResult) {
		t.Helper()
		args = append([]string{"replay", "--data-dir", cfg.DataDir, "-o", "json"}, args...)
		code, out, errs := marketlog(t, args...)
		if code != wantCode {
			t.Fatalf("%v: got exit code %d, want %d\n%s%s", args, code, wantCode, out, errs)
		}
		if code == 0 {
			lastLine(t, out, &result)
		}
		return result
	}
	deadline := time.Now().Add(demoPatience)
	for {
		r := replay(0, "--view", "all", "--verify")
		if r.Compared > 100 && r.Differing == 0 && r.Outside == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %+v, want some hundred rows compared", r)
		}
	}
	for _, view := range []string{"prices", "candles", "ticks"} {
		for _, verify := range []string{"--verify=false", "--verify"} {
			if r := replay(0, "--view", view, verify); r.View != view || r.Compared == 0 || r.Differing != 0 {
				t.Errorf("%s %s: got %+v, want rows and no difference", view, verify, r)
			}
		}
	}
	code, out, errs := marketlog(t, "replay", "--data-dir", cfg.DataDir, "--view", "all", "--verify")
	if code != 0 || !strings.Contains(out, "0 differ") || !strings.Contains(errs, "folding: ") {
		t.Errorf("as text: got exit code %d, %q and %q", code, out, errs)
	}
	replay(1, "--view", "coins")
	replay(1, "--view", "all", "--from", "yesterday")
	if code, out, _ := marketlog(t, "replay", "--data-dir", cfg.DataDir, "--cancel", "-o", "json"); code != 0 || !strings.Contains(out, "no unfinished replay") {
		t.Errorf("cancelling nothing: got exit code %d and %q", code, out)
	}
}
