package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scriptedLake is a lake whose tables and directory a script gives, on a clock that does not wait. A bubble begins at midnight UTC of
// 2000-01-01; what happens is written down with the time since then.
type scriptedLake struct {
	*Lake
	began time.Time
	// lag is how long after a time the tables have it whole, keeps how many days they keep, 0: all; begins the first day with rows.
	lag    time.Duration
	keeps  int
	begins time.Time
	have   map[lakeDay]bool
	// takes is how long an export takes, fails what fails.
	takes time.Duration
	fails map[string]error
	told  []string
}

func newScriptedLake(datasets ...string) *scriptedLake {
	s := &scriptedLake{began: time.Now().UTC(), lag: 2 * time.Minute, have: map[lakeDay]bool{}, fails: map[string]error{}, takes: time.Minute}
	s.begins = s.began.AddDate(0, 0, -100)
	s.Lake = &Lake{
		Exporter: &Exporter{Now: time.Now}, Datasets: datasets, Days: 3, Turns: &Turns{}, Hold: func() string { return "" },
		Log: slog.New(slog.DiscardHandler), store: s,
	}
	return s
}

func (s *scriptedLake) tell(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf("%s ", time.Since(s.began))+fmt.Sprintf(format, args...))
}

func (s *scriptedLake) finished(_ context.Context, dataset string) (until, since time.Time, err error) {
	until = time.Now().Add(-s.lag)
	if s.keeps > 0 {
		since = until.UTC().AddDate(0, 0, -s.keeps).Truncate(day)
	}
	return until, since, s.fails["tables of "+dataset]
}

func (s *scriptedLake) exported() (map[lakeDay]bool, error) { return s.have, s.fails["lake"] }

func (s *scriptedLake) export(ctx context.Context, d lakeDay) (Result, error) {
	if d.day.Before(s.begins) {
		s.tell("%s %s is empty", d.dataset, d.day.Format(time.DateOnly))
		return Result{}, nil
	}
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		s.tell("%s %s is ended", d.dataset, d.day.Format(time.DateOnly))
		return Result{}, ctx.Err()
	}
	if err := s.fails[d.dataset]; err != nil {
		s.tell("%s %s fails", d.dataset, d.day.Format(time.DateOnly))
		return Result{}, err
	}
	if s.have[d] {
		s.tell("%s %s a second time", d.dataset, d.day.Format(time.DateOnly))
	}
	s.have[d] = true
	s.tell("%s %s", d.dataset, d.day.Format(time.DateOnly))
	return Result{Files: 1, Rows: 1, Bytes: 10}, nil
}

func (s *scriptedLake) prune(before time.Time) (int, error) {
	s.tell("removed before %s", before.Format(time.DateOnly))
	return 1, nil
}

// runs lets the lake run for a time, as a process does that is ended then.
func (s *scriptedLake) runs(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func (s *scriptedLake) did(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(s.told, "\n")); diff != "" {
		t.Errorf("it did (-want +got):\n%s", diff)
	}
	s.told = nil
}

// Each finished day is exported once, the newest first, as soon as the tables have it.
func TestEachFinishedDayIsExportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedLake("trades", "prices")
		s.runs(t, 24*time.Hour+10*time.Minute)
		s.did(t,
			// The day that ended at midnight is complete two minutes later: at first it is the one before.
			"1m0s trades 1999-12-30", "2m0s prices 1999-12-30", "3m0s trades 1999-12-31", "4m0s prices 1999-12-31", "5m0s trades 1999-12-29", "6m0s prices 1999-12-29",
			"24h3m0s trades 2000-01-01", "24h4m0s prices 2000-01-01",
		)
	})
}

// What was missed while nobody ran follows within the days that are looked at and that the tables have whole.
func TestMissedDaysFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedLake("trades")
		s.lag = 0
		s.runs(t, time.Hour)
		s.did(t, "1m0s trades 1999-12-31", "2m0s trades 1999-12-30", "3m0s trades 1999-12-29")
		time.Sleep(47 * time.Hour) // off, until midnight
		s.runs(t, time.Hour)
		s.did(t, "48h1m0s trades 2000-01-02", "48h2m0s trades 2000-01-01")
		time.Sleep(9*24*time.Hour - time.Hour)
		s.runs(t, time.Hour)
		s.did(t, "264h1m0s trades 2000-01-11", "264h2m0s trades 2000-01-10", "264h3m0s trades 2000-01-09")
		s.keeps = 1
		time.Sleep(9*24*time.Hour - time.Hour)
		s.runs(t, time.Hour)
		s.did(t, "480h1m0s trades 2000-01-20")
	})
}

// A day that is ended in its middle is taken up at the next start.
func TestAnEndedDayIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedLake("trades")
		s.lag, s.keeps = 0, 1
		s.runs(t, 30*time.Second)
		s.runs(t, time.Hour)
		s.did(t, "30s trades 1999-12-31 is ended", "1m30s trades 1999-12-31")
	})
}

// A dataset that fails is tried again, later each time up to an hour and a half, and keeps no other from being exported.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedLake("defi", "trades")
		s.lag, s.keeps = 0, 1
		s.fails["defi"] = errors.New("must not be passed on")
		s.runs(t, 12*time.Hour)
		tries := len(s.told)
		if tries < 12 || tries > 40 || s.told[0] != "1m0s defi 1999-12-31 fails" || s.told[1] != "2m0s trades 1999-12-31" {
			t.Errorf("it did %q, want some 20 tries", s.told)
		}
		if got := s.Status(); got[0].Failing != "exporting defi of 1999-12-31: must not be passed on" || !got[0].Since.Equal(s.began.Add(time.Minute)) || got[0].Due != 1 ||
			got[1].Failing != "" || got[1].Due != 0 || !got[1].Newest.Equal(s.began.AddDate(0, 0, -1)) {
			t.Errorf("it states %+v", got)
		}
		delete(s.fails, "defi")
		s.told = nil
		s.runs(t, 2*time.Hour)
		if len(s.told) != 1 || !strings.HasSuffix(s.told[0], "defi 1999-12-31") || s.Status()[0].Failing != "" {
			t.Errorf("it did %q, then states %+v", s.told, s.Status())
		}
		// Tables that do not answer, and a directory that cannot be read, are failures too.
		s.fails["tables of defi"], s.fails["lake"] = errors.New("no engine"), errors.New("no manifest")
		time.Sleep(24 * time.Hour)
		s.told = nil
		s.runs(t, time.Hour)
		if got := s.Status(); len(s.told) > 0 || got[0].Failing != "no engine" || got[1].Failing != "no manifest" {
			t.Errorf("it did %q and states %+v", s.told, got)
		}
	})
}

// A day without rows is looked at again after a midnight: a back-fill may have given it some.
func TestEmptyDaysAreLookedAtDaily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedLake("candles_1m")
		s.lag, s.begins = 0, s.began
		s.runs(t, 23*time.Hour)
		s.did(t, "0s candles_1m 1999-12-31 is empty", "0s candles_1m 1999-12-30 is empty", "0s candles_1m 1999-12-29 is empty")
		s.begins = s.began.AddDate(0, 0, -1)
		time.Sleep(time.Hour)
		s.runs(t, time.Hour)
		s.did(t, "24h1m0s candles_1m 2000-01-01", "24h2m0s candles_1m 1999-12-31", "24h2m0s candles_1m 1999-12-30 is empty")
	})
}

// Nothing is exported while something is waited for; what is older than is kept goes once a day.
func TestALakeWaitsAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedLake("trades")
		s.lag, s.Days, s.KeepDays = 0, 1, 2
		s.Hold = func() string { return "the tables are behind" }
		s.runs(t, time.Hour)
		s.did(t)
		s.Hold = func() string { return "" }
		s.runs(t, 24*time.Hour)
		s.did(t, "1h1m0s trades 1999-12-31", "1h1m0s removed before 1999-12-30", "24h1m0s trades 2000-01-01", "24h1m0s removed before 1999-12-31")
	})
}

// A person's export goes first: the lake's ends, and goes on after it.
func TestPeopleGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedLake("trades")
		s.lag, s.keeps = 0, 1
		go func() {
			time.Sleep(30 * time.Second)
			done, err := s.Turns.Person(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			s.tell("a person begins")
			time.Sleep(10 * time.Minute)
			s.tell("a person ends")
			done()
		}()
		s.runs(t, time.Hour)
		s.did(t, "30s trades 1999-12-31 is ended", "30s a person begins", "10m30s a person ends", "11m30s trades 1999-12-31")
		if got := s.Status()[0]; got.Failing != "" {
			t.Errorf("it states %+v", got)
		}
		// Who leaves while waiting leaves no turn behind.
		turn, done, err := s.Turns.ofLake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Turns.Person(gone); !errors.Is(err, context.DeadlineExceeded) || turn.Err() == nil {
			t.Errorf("got %v, and the lake's turn %v", err, turn.Err())
		}
		done()
		if _, done, err = s.Turns.ofLake(t.Context()); err != nil {
			t.Fatal(err)
		}
		done()
	})
}
