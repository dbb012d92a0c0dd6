package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// report is one line of MARKETLOG_KILL_REPORT.
type report struct {
	Test    string         `json:"test"`
	Seed    uint64         `json:"seed"`
	Kills   int            `json:"kills"`
	Steps   map[string]int `json:"steps"`
	Acked   int            `json:"acked"`
	Prices  int            `json:"prices"`
	Candles int            `json:"candles"`
	// Records are how many each topic acknowledged, Rows those of views that the oracle worked out, Folded those that were
	// folded again, by view.
	Records map[string]int `json:"records"`
	Rows    map[string]int `json:"rows"`
	Folded  map[string]int `json:"folded"`
	Seconds float64        `json:"seconds"`
	Passed  bool           `json:"passed"`
}

// plan reads how often to kill, less what the report holds already, and by which seed.
func plan(t *testing.T) (kills int, seed uint64) {
	t.Helper()
	kills = asked(t, len(steps)+2)
	if kills < 1 {
		t.Fatalf("MARKETLOG_KILLS=%d, want at least 1, and %d for every step", kills, len(steps))
	}
	return remaining(t, kills, min(kills, len(steps))), seedOf(t)
}

// splitShare is how many kills of the one process there are to a disturbance of the split form, which
// takes longer.
const splitShare = 5

func planSplit(t *testing.T) (kills int, seed uint64) {
	t.Helper()
	kills = max(asked(t, 0)/splitShare, shortDisturbances)
	return remaining(t, kills, shortDisturbances), seedOf(t)
}

func asked(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv("MARKETLOG_KILLS")
	if text == "" {
		return otherwise
	}
	kills, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("MARKETLOG_KILLS=%q, want a number", text)
	}
	return kills
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("MARKETLOG_KILL_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("MARKETLOG_KILL_SEED=%q, want a number", text)
	}
	return seed
}

// remaining is what the rounds that passed have left to do, by the report: nothing, or at least.
func remaining(t *testing.T, kills, least int) int {
	t.Helper()
	name := os.Getenv("MARKETLOG_KILL_REPORT")
	if name == "" {
		return kills
	}
	content, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("reading the report: %v", err)
	}
	before := 0
	for line := range strings.Lines(string(content)) {
		var r report
		if json.Unmarshal([]byte(line), &r) == nil && r.Passed && strings.HasPrefix(r.Test, t.Name()+"/") {
			before += r.Kills
		}
	}
	if before == 0 {
		return kills
	}
	t.Logf("the report holds %d kills of rounds that passed", before)
	streamtest.Report(t, "kills_of_earlier_runs", before)
	if before >= kills {
		return 0
	}
	return max(kills-before, least)
}

// write prints the kills of each step and appends the line to the report, if one is asked for.
func (r report) write(t *testing.T, steps []step) {
	t.Helper()
	var list []string
	for _, s := range steps {
		list = append(list, fmt.Sprintf("%s %d", s.name, r.Steps[s.name]))
	}
	t.Logf("kills: %s; %d acknowledged ticks; %.0f s", strings.Join(list, ", "), r.Acked, r.Seconds)
	streamtest.ReportSeed(t, r.Seed)
	streamtest.Report(t, "kills", r.Kills)
	streamtest.Report(t, "acknowledged_ticks", r.Acked)
	streamtest.Report(t, "prices", r.Prices)
	streamtest.Report(t, "candles", r.Candles)
	name := os.Getenv("MARKETLOG_KILL_REPORT")
	if name == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("opening the report: %v", err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Errorf("writing the report: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("writing the report: %v", err)
	}
}
