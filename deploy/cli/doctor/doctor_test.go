package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/diskbudget"
	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/stream/history"
)

// The doctor names what /readyz names, whichever address responds.
func TestTheDoctorNamesWhatIsMissing(t *testing.T) {
	for body, want := range map[string][]string{
		`{"roles":[],"missing":{"tables":["rows are gone"],"disk":["full","slow"]}}`:               {"disk: full, slow", "tables: rows are gone"},
		`{"error":{"code":"STARTING","message":"not ready","errors":{"prices":["no price yet"]}}}`: {"prices: no price yet"},
		`<html>`: nil,
	} {
		if got := missingParts(strings.NewReader(body)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

// The forecast of the tables uses the measured rate, and is a warning if the disk has no room for it.
func TestDoctorShowsWhatTheTablesWillTake(t *testing.T) {
	growth := []history.Growth{
		{Table: "ticks", BytesPerDay: 10e9, Kept: 7, Bytes: 4e9}, {Table: "prices", BytesPerDay: 9e9, Kept: 1, Bytes: 18e9},
	}
	for free, want := range map[int64]string{80e9: "ok", 75e9: "warning"} { // 76 GB of ticks are to come, and no prices
		f := judgeGrowth(growth, nil, free)
		if len(f) != 1 || f[0].Verdict != want || (f[0].Remedy != "") != (want == "warning") {
			t.Errorf("with %d bytes free: got %v, want %s", free, f, want)
		}
		for _, part := range []string{"ticks grow by 10.0 GB a day, to 80.0 GB in 8 days (now 4.0 GB)", "prices grow by 9.0 GB a day, to 18.0 GB in 2 days"} {
			if !strings.Contains(f[0].Message, part) {
				t.Errorf("got %q, want %q in it", f[0].Message, part)
			}
		}
	}
	if f := judgeGrowth(growth, nil, 75e9); !strings.Contains(f[0].Remedy, "1.0 GB more") {
		t.Errorf("the remedy is %q, want 1.0 GB more", f[0].Remedy)
	}
	budget := []diskbudget.Status{{LimitBytes: 30e9}}
	if f := judgeGrowth(growth, budget, 1e9); f[0].Verdict != "ok" || !strings.Contains(f[0].Message, "the disk budget bounds them") {
		t.Errorf("within a budget: got %v", f)
	}
}

// The budget is a fault if nothing is left to be dropped, and a warning if the disk has no room for the rest of it.
func TestDoctorShowsTheDiskBudget(t *testing.T) {
	used := map[string]int64{"log": 1e9, "archive": 8e9, "tables": 11e9}
	for _, c := range []struct {
		lacking, free int64
		verdict, says string
	}{
		{0, 11e9, "ok", ""},
		{0, 10e9, "ok", ""},
		{0, 5e9, "warning", "the oldest is dropped earlier"},
		{1, 11e9, "failed", "raise retention.disk_bytes"},
	} {
		f := judgeBudget(diskbudget.Status{LimitBytes: 30e9, UsedBytes: used, LackingBytes: c.lacking}, c.free)
		if f.Verdict != c.verdict || !strings.Contains(f.Remedy, c.says) || (f.Remedy == "") != (c.says == "") {
			t.Errorf("%+v: got %+v", c, f)
		}
		if want := "20.0 GB of 30.0 GB are used: archive 8.0 GB, log 1.0 GB, tables 11.0 GB"; !strings.HasPrefix(f.Message, want) {
			t.Errorf("%+v: got %q, want %q", c, f.Message, want)
		}
	}
}

// Datasets of the lake that fail are faults, each with its reason; the others are named with their newest day.
func TestTheDoctorNamesWhatTheLakeLacks(t *testing.T) {
	at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	found := judgeLake("/lake", []export.LakeStatus{
		{Dataset: "trades", Newest: at}, {Dataset: "prices", Newest: at, Due: 2}, {Dataset: "fiat"},
		{Dataset: "defi", Due: 3, Failing: "the disk lacks 4096 bytes", Since: at},
	})
	if len(found) != 2 || found[0].Verdict != "failed" || found[0].Message != "defi fails since 2026-11-25T00:00:00Z: the disk lacks 4096 bytes" || found[0].Remedy == "" ||
		found[1].Verdict != "ok" || found[1].Message != "trades up to 2026-11-25, prices up to 2026-11-25 (2 more to export), fiat has no day yet in /lake" {
		t.Errorf("got %+v", found)
	}
	if found := judgeLake("/lake", nil); found != nil {
		t.Errorf("a process without a lake: got %+v", found)
	}
}
