package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// announced is an instance that holds a log and nothing else, and a way to type commands beside it.
func announced(t *testing.T) (in *instance.Instance, run func(line string) string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "topics") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Feeds = dir, "127.0.0.1:0", "none"
	in, err = instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := in.Dir.Announce(roles.RunInfo(in, roles.Ports{})); err != nil {
		t.Fatal(err)
	}
	return in, func(line string) string {
		t.Helper()
		var out bytes.Buffer
		app := command.Runtime{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Env: []string{"MARKETLOG_DATA_DIR=" + dir}}
		if code := Execute(t.Context(), &app, strings.Fields(line)); code != 0 {
			t.Fatalf("%s exits with %d: %s", line, code, &out)
		}
		return out.String()
	}
}

// Pulses are written once a second, prices are rarer: whoever asks for the newest price gets one.
func TestTailShowsRecordsAndNotTheClock(t *testing.T) {
	in, run := announced(t)
	producer, err := in.Stream.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	write := func(rec *eventsv1.PriceRecord) {
		t.Helper()
		value, err := rec.MarshalVT()
		if err == nil {
			err = producer.ProduceSync(t.Context(), &kgo.Record{Topic: schemas.TopicPrices, Partition: 3, Value: value}).FirstErr()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, coin := range []string{"bitcoin", "ethereum"} {
		write(&eventsv1.PriceRecord{Mark: &eventsv1.Mark{Offset: int64(i)}, Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: coin}}})
		for range 1500 { // more than a first look reads
			write(&eventsv1.PriceRecord{Mark: &eventsv1.Mark{Offset: int64(i)}, Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: 1}}})
		}
	}
	if got := run("topics tail prices.v1 -n 1"); strings.Count(got, "\n") != 1 || !strings.Contains(got, "prices.v1/3@1501 ") || !strings.Contains(got, "ethereum") {
		t.Errorf("the newest price is shown as %q", got)
	}
	if got := run("topics tail prices.v1 -n 5"); strings.Count(got, "\n") != 2 || strings.Contains(got, "pulse") {
		t.Errorf("the newest five of two prices are shown as %q", got)
	}
	if got := run("topics tail prices.v1 -n 1 --all"); !strings.Contains(got, "pulse") {
		t.Errorf("with --all no pulse is shown: %q", got)
	}
	if got := run("topics tail prices.v1 --from start -n 2"); strings.Count(got, "\n") != 2 || !strings.Contains(got, "bitcoin") {
		t.Errorf("the first two prices are shown as %q", got)
	}
	if got := run("topics list"); !strings.Contains(got, "OFFSETS") || strings.Contains(got, "RECORDS") {
		t.Errorf("offsets are called records:\n%s", got)
	}
}

// A fold that is one for its whole input joins its group for the lock, and commits nothing: that is no lag.
func TestLagOfALockIsNoLag(t *testing.T) {
	in, run := announced(t)
	ctx, stop := context.WithCancel(t.Context())
	fold := instance.MinuteFolds()[0]
	fold.Log, fold.Logger = in.Stream, slog.New(slog.DiscardHandler)
	ended := make(chan error, 1)
	go func() { ended <- fold.Run(ctx) }()
	want := fmt.Sprintf(`{"group":%q,"state":"Stable","topic":%q,"partition":0,"end":0,"lock":true,`, fold.Name, fold.Output)
	got := ""
	for deadline := time.Now().Add(time.Minute); !strings.HasPrefix(got, want); time.Sleep(50 * time.Millisecond) {
		if got = run("topics lag -o json"); time.Now().After(deadline) {
			t.Fatalf("the lag is\n%s\nwant %s", got, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
