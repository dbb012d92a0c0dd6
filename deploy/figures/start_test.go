package figures

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/query/querytest"
)

const (
	startRounds = 3
	// rest is how long an instance has nothing to do before its memory is looked at.
	rest = 10 * time.Second
	// engineVariable makes the test's binary a process that holds nothing but the engine.
	engineVariable = "MARKETLOG_FIGURES_ENGINE"
)

func TestMain(m *testing.M) {
	if querytest.Load() {
		return
	}
	if dir := os.Getenv(engineVariable); dir != "" {
		if err := bareEngine(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// bareEngine opens the engine, and prints how many milliseconds that took and how many MB it then holds.
func bareEngine(dir string) error {
	began := time.Now()
	e, err := engine.Open(dir, engine.Options{})
	if err != nil {
		return err
	}
	fmt.Println(milliseconds(time.Since(began)), resident(os.Getpid()))
	return e.Close()
}

// BenchmarkStart asks how long the whole binary takes on an empty data directory until it answers,
// until it has a price of BTC of the simulator's, and after a restart until it is ready; and what it
// holds once nothing is fed to it any more. The limit is a process that does nothing but open the
// ClickHouse engine, which is most of both.
func BenchmarkStart(b *testing.B) {
	binary := build(b)
	for b.Loop() {
		figures := map[string][]float64{}
		note := func(unit string, value float64) { figures[unit] = append(figures[unit], value) }
		for range startRounds {
			took, holds := openEngine(b)
			note("engine-open-ms", took)
			note("engine-MB", holds)

			in := newInstance(b, binary)
			began := time.Now()
			p := in.start(b, "sim")
			note("answers-ms", milliseconds(in.await(b, p, "/healthz", began)))
			note("first-price-ms", milliseconds(in.await(b, p, "/api/v1/prices/BTC", began)))
			note("ready-ms", milliseconds(in.await(b, p, "/readyz", began)))
			pause(b.Context(), time.Now().Add(rest))
			note("fed-MB", resident(p.Pid))
			p.stop()

			began = time.Now()
			p = in.start(b, "none")
			note("restart-ready-ms", milliseconds(in.await(b, p, "/readyz", began)))
			pause(b.Context(), time.Now().Add(rest))
			note("rest-MB", resident(p.Pid))
			p.stop()
		}
		for unit, values := range figures {
			b.ReportMetric(middle(values), unit)
		}
	}
}

func openEngine(b *testing.B) (took, holds float64) {
	b.Helper()
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), engineVariable+"="+b.TempDir())
	out, err := command.Output()
	if err != nil {
		b.Fatalf("opening the engine alone: %v", err)
	}
	words := strings.Fields(string(out))
	if len(words) == 2 {
		if took, err = strconv.ParseFloat(words[0], 64); err == nil {
			if holds, err = strconv.ParseFloat(words[1], 64); err == nil {
				return took, holds
			}
		}
	}
	b.Fatalf("opening the engine alone: it printed %q", out)
	return 0, 0
}
