package backfill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// tape is a log in memory that dies at a record: of what comes then and later it takes nothing.
type tape struct {
	mu     sync.Mutex
	diesAt int // -1: never
	ranges []*eventsv1.BackfillRecord
	values []*eventsv1.ReferenceRecord
	dead   []*eventsv1.DeadLetter
}

var errDied = errors.New("died")

func (l *tape) alive() bool {
	if l.diesAt == 0 {
		return false
	}
	l.diesAt--
	return true
}

// Read is for Log.
func (l *tape) Read(_ context.Context, visit func(*eventsv1.BackfillRecord) error) error {
	for _, rec := range l.ranges {
		if err := visit(rec); err != nil {
			return err
		}
	}
	return nil
}

// lines is the way of ranges, readings that of values onto a tape.
type (
	lines    struct{ *tape }
	readings struct{ *tape }
)

func (l lines) Append(_ context.Context, _, _ string, recs []*eventsv1.BackfillRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rec := range recs {
		if !l.alive() {
			return errDied
		}
		l.ranges = append(l.ranges, rec)
	}
	return nil
}

func (l readings) Append(_ context.Context, recs ...*eventsv1.ReferenceRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rec := range recs {
		if !l.alive() {
			return errDied
		}
		l.values = append(l.values, rec)
	}
	return nil
}

func (l readings) Dead(_ context.Context, letter *eventsv1.DeadLetter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = append(l.dead, letter)
	return nil
}

// archive is a source that has a value of each hour since some time, apart from an hour for which it has none.
type archive struct {
	mu    sync.Mutex
	asked []string
	// instead reports what is answered to the nth call, if it is another thing.
	instead func(n int, path string) (body string, err error)
}

var (
	archived    = now.Truncate(day).Add(-12 * time.Hour)
	missingHour = archived.Add(5 * time.Hour)
)

// worth is the value of a series at a time.
func worth(series string, at time.Time) string {
	return fmt.Sprintf("%d.%d", len(series), at.Unix()/3600%97*10+1)
}

// archiveOf is a declaration of a source of hours that is asked for in one of three ways.
func archiveOf(past poll.Past) poll.Source {
	past.Interval = time.Hour
	past.Path = func(s poll.Series, from, to time.Time) string {
		return fmt.Sprintf("/%s/%d/%d", s.ID, from.Unix(), to.Unix())
	}
	return poll.Source{Slug: "archive", Version: 1, Past: &past, Decode: func(path string, body []byte, out *poll.Readings) error {
		var values []struct{ Time, Value string }
		if err := json.Unmarshal(body, &values); err != nil {
			return producers.Unreadable("parsing: %w", err)
		}
		for _, row := range values {
			seconds, _ := strconv.ParseInt(row.Time, 10, 64)
			out.Rate(&eventsv1.Rate{
				Project: "archive", Pool: strings.Split(path, "/")[1], Symbol: "USDC", Category: schemas.RateLending, Raw: row.Value, RawUnit: "apy_percent",
				Past: true, EventTime: seconds * int64(time.Second),
			})
		}
		return nil
	}}
}

// fetcherOf answers as the declaration says: the newest rows before the end, the oldest from the beginning on, or all.
func (a *archive) fetcherOf(past *poll.Past) adapter.Fetcher {
	return fetchFunc(func(url string) ([]byte, error) {
		path := strings.TrimPrefix(url, "http://archive")
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, path)
		if a.instead != nil {
			if body, err := a.instead(len(a.asked), path); body != "" || err != nil {
				return []byte(body), err
			}
		}
		parts := strings.Split(path, "/")
		from, _ := strconv.ParseInt(parts[2], 10, 64)
		to, _ := strconv.ParseInt(parts[3], 10, 64)
		rows := []map[string]string{}
		for at := archived; at.Before(now); at = at.Add(time.Hour) {
			if at.Equal(missingHour) || past.Rows > 0 && at.Unix() >= to || past.OldestFirst && at.Unix() < from {
				continue
			}
			rows = append(rows, map[string]string{"time": strconv.FormatInt(at.Unix(), 10), "value": worth(parts[1], at)})
		}
		if most := past.Rows; most > 0 && len(rows) > most {
			if past.OldestFirst {
				rows = rows[:most]
			} else {
				rows = rows[len(rows)-most:]
				slices.Reverse(rows)
			}
		}
		return json.Marshal(rows)
	})
}

type fetchFunc func(url string) ([]byte, error)

func (f fetchFunc) Fetch(_ context.Context, _, url string) ([]byte, error) { return f(url) }

// ways are the ways in which pasts are reported.
var ways = map[string]poll.Past{
	"whole":        {},
	"newest first": {Rows: 8},
	"oldest first": {Rows: 8, OldestFirst: true},
}

// newSourceJob wants the last 30 hours of two series, of which the source has 24 less one.
func newSourceJob(a *archive, past poll.Past, log *tape) *SourceJob {
	s := archiveOf(past)
	return &SourceJob{
		Source: s, URL: "http://archive", Producer: "archive", Series: []poll.Series{{ID: "a", Symbol: "USDC"}, {ID: "pool", Symbol: "USDT"}},
		From: now.Add(-30 * time.Hour), To: now, Fetch: a.fetcherOf(s.Past), Pace: 5, Log: lines{log}, Out: readings{log}, Clock: stopped{},
	}
}

// holdsTheArchive compares the tape with what the source has: each value of the wanted time, and ranges that cover it once.
func holdsTheArchive(t *testing.T, what string, j *SourceJob, log *tape) {
	t.Helper()
	logged := map[string]int{}
	for _, rec := range log.values {
		r := rec.GetRate()
		if r.Source != "archive" || r.Raw != worth(r.Pool, time.Unix(0, r.EventTime)) {
			t.Errorf("%s: the log holds %v", what, r)
		}
		logged[r.Pool+strconv.FormatInt(r.EventTime, 10)]++
	}
	covered, rows := map[string]int{}, uint64(0)
	for _, rec := range log.ranges {
		r := rec.GetRange()
		if rec.Producer != "archive" || r.Venue != "archive" || r.Interval != 3600 {
			t.Errorf("%s: the log holds the range %v", what, rec)
		}
		rows += r.Rows
		for at := r.FromTime; at < r.ToTime; at += int64(time.Hour) {
			covered[r.Symbol+strconv.FormatInt(at, 10)]++
		}
	}
	wanted := 0
	for _, s := range j.Series {
		for at := j.From.Truncate(time.Hour).Add(time.Hour); !at.Add(time.Hour).After(now); at = at.Add(time.Hour) {
			key := s.ID + strconv.FormatInt(at.UnixNano(), 10)
			if covered[key] != 1 {
				t.Errorf("%s: %s of %s is in %d ranges, want 1", what, at, s.ID, covered[key])
			}
			delete(covered, key)
			if has := !at.Before(archived) && !at.Equal(missingHour); has != (logged[key] > 0) {
				t.Errorf("%s: %s of %s is in the log %d times, and the source has it: %t", what, at, s.ID, logged[key], has)
			} else if has {
				wanted++
			}
			delete(logged, key)
		}
	}
	if len(logged)+len(covered) > 0 || rows != uint64(wanted) {
		t.Errorf("%s: %v was not asked for, nor %v; the ranges count %d values, want %d", what, logged, covered, rows, wanted)
	}
}

// Whatever record a death comes before: the next run loses no value, asks for no range again, and writes those values again
// alone whose range was not in the log yet.
func TestSourceGoesOnWhereItDied(t *testing.T) {
	for way, past := range ways {
		whole := &tape{diesAt: -1}
		if _, err := newSourceJob(&archive{}, past, whole).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		holdsTheArchive(t, way, newSourceJob(&archive{}, past, whole), whole)
		records := len(whole.values) + len(whole.ranges)
		for at := range records {
			what := fmt.Sprintf("%s, dead before record %d", way, at)
			log := &tape{diesAt: at}
			if _, err := newSourceJob(&archive{}, past, log).Run(t.Context()); !errors.Is(err, errDied) {
				t.Fatalf("%s: got %v", what, err)
			}
			written := len(log.values)
			for _, rec := range log.ranges {
				written -= int(rec.GetRange().Rows)
			}
			log.diesAt = -1
			j := newSourceJob(&archive{}, past, log)
			result, err := j.Run(t.Context())
			if err != nil || result.Failed != 0 {
				t.Errorf("%s: %+v, %v", what, result, err)
			}
			holdsTheArchive(t, what, j, log)
			if again := len(log.values) - len(whole.values); again != written {
				t.Errorf("%s: %d values are in the log again, want the %d that were in no range", what, again, written)
			}
			a := &archive{}
			if result, err := newSourceJob(a, past, log).Run(t.Context()); err != nil || len(a.asked) > 0 || result.Calls != 0 {
				t.Errorf("%s: all is read, and %v is asked for (%v)", what, a.asked, err)
			}
		}
	}
}

// What is between two times that were read before is all that is asked for and written.
func TestGapsOfASourceAreFilled(t *testing.T) {
	for way, past := range ways {
		log := &tape{diesAt: -1}
		first := newSourceJob(&archive{}, past, log)
		first.From, first.To = now.Add(-12*time.Hour), now.Add(-6*time.Hour)
		result, err := first.Run(t.Context())
		if err != nil || result.Values != 10 {
			t.Errorf("%s: %+v, %v, want five hours of each series", way, result, err)
		}
		rest := newSourceJob(&archive{}, past, log)
		if result, err := rest.Run(t.Context()); err != nil || result.Values != int64(len(log.values)-10) {
			t.Errorf("%s: %+v, %v", way, result, err)
		}
		holdsTheArchive(t, way, rest, log)
		seen := map[string]bool{}
		for _, rec := range log.values {
			key := rec.GetRate().Pool + strconv.FormatInt(rec.GetRate().EventTime, 10)
			if seen[key] {
				t.Errorf("%s: %s is in the log twice", way, key)
			}
			seen[key] = true
		}
	}
}

// A call that fails ends its series, and is made again the next time.
func TestRefusedCallIsMadeAgain(t *testing.T) {
	for way, past := range ways {
		log := &tape{diesAt: -1}
		a := &archive{instead: func(_ int, path string) (string, error) {
			if strings.HasPrefix(path, "/pool/") {
				return "", errors.New("status 400")
			}
			return "", nil
		}}
		result, err := newSourceJob(a, past, log).Run(t.Context())
		if !errors.Is(err, ErrIncomplete) || result.Failed != 1 || !strings.Contains(err.Error(), "archive of pool from 2026-02-") {
			t.Errorf("%s: %+v, %v, want one failure", way, result, err)
		}
		if result, err := newSourceJob(&archive{}, past, log).Run(t.Context()); err != nil || result.Calls == 0 {
			t.Errorf("%s: %+v, %v", way, result, err)
		}
		holdsTheArchive(t, way, newSourceJob(&archive{}, past, log), log)
	}
}

// A row that is not a number is a dead letter; the rest of its answer is read.
func TestUnreadableRowOfThePastIsKept(t *testing.T) {
	log := &tape{diesAt: -1}
	a := &archive{instead: func(_ int, path string) (string, error) {
		return fmt.Sprintf(`[{"time": "%d", "value": "much"}, {"time": "%d", "value": "%s"}]`, archived.Unix(), archived.Add(time.Hour).Unix(),
			worth(strings.Split(path, "/")[1], archived.Add(time.Hour))), nil
	}}
	result, err := newSourceJob(a, poll.Past{}, log).Run(t.Context())
	if err != nil || result.Refused != 2 || result.Values != 2 || len(log.dead) != 2 || log.dead[0].Reason != string(schemas.NotANumber) || log.dead[0].Source != "archive" {
		t.Errorf("%+v, %v, dead letters %v, want one and a value of each series", result, err, log.dead)
	}
	a.instead = func(int, string) (string, error) { return "<html>", nil }
	j := newSourceJob(a, poll.Past{}, &tape{diesAt: -1})
	if result, err := j.Run(t.Context()); !errors.Is(err, ErrIncomplete) || result.Failed != 2 {
		t.Errorf("a page: %+v, %v, want two failures", result, err)
	}
}

// A source that answers nothing right is left alone.
func TestSourceThatIsDownEndsTheRun(t *testing.T) {
	a := &archive{instead: func(int, string) (string, error) { return "", errors.New("status 503") }}
	j := newSourceJob(a, ways["newest first"], &tape{diesAt: -1})
	for i := range 100 {
		j.Series = append(j.Series, poll.Series{ID: strconv.Itoa(i)})
	}
	if _, err := j.Run(t.Context()); err == nil || errors.Is(err, ErrIncomplete) {
		t.Errorf("got %v, want an end", err)
	}
	if n := len(a.asked); n > giveUp+inFlight {
		t.Errorf("the source was asked %d times, want %d at most", n, giveUp+inFlight)
	}
}

func TestPlanOfASource(t *testing.T) {
	read := &tape{diesAt: -1}
	before := newSourceJob(&archive{}, ways["newest first"], read)
	before.From, before.To = archived.Add(-8*time.Hour), now.Add(-4*time.Hour)
	if _, err := before.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		past poll.Past
		log  *tape
		most int
		want string
	}{
		{"nothing is read yet", poll.Past{Rows: 8, Settle: 40 * time.Minute}, &tape{}, 0, `missing a 02-28T07:00 28 4
			missing pool 02-28T07:00 28 4
			8 calls, 1.6s`},
		{"calls for one series", poll.Past{Rows: 8}, &tape{}, 7, `missing a 02-28T07:00 29 4
			4 calls, 800ms`},
		{"a source that keeps a day", poll.Past{Back: day}, &tape{}, 0, `missing a 02-28T13:00 23 1
			missing pool 02-28T13:00 23 1
			unavailable a 02-28T07:00 6: the source no longer has it
			unavailable pool 02-28T07:00 6: the source no longer has it
			2 calls, 400ms`},
		{"a source that begins late", poll.Past{Since: now.Truncate(day)}, &tape{}, 0, `missing a 03-01T00:00 12 1
			missing pool 03-01T00:00 12 1
			unavailable a 02-28T07:00 17: the source's past begins later
			unavailable pool 02-28T07:00 17: the source's past begins later
			2 calls, 400ms`},
		{"all but the last four hours is read", poll.Past{Rows: 8}, read, 0, `missing a 03-01T08:00 4 1
			missing pool 03-01T08:00 4 1
			unavailable a 02-28T07:00 5: read, and the source had nothing
			unavailable pool 02-28T07:00 5: read, and the source had nothing
			2 calls, 400ms`},
	} {
		j := newSourceJob(&archive{}, test.past, test.log)
		j.MaxCalls = test.most
		p, err := j.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, r := range p.Missing {
			fmt.Fprintln(&got, "missing", r.Market.Symbol, r.From.Format("01-02T15:04"), r.Candles(), p.CallsOf(r))
		}
		for _, u := range p.Unavailable {
			fmt.Fprintf(&got, "unavailable %s %s %d: %s\n", u.Market.Symbol, u.From.Format("01-02T15:04"), u.Candles(), u.Reason)
		}
		fmt.Fprintf(&got, "%d calls, %s", len(p.Calls), p.Duration())
		if want := strings.ReplaceAll(test.want, "\t", ""); got.String() != want {
			t.Errorf("%s, got:\n%s\nwant:\n%s", test.name, &got, want)
		}
	}
}

// TestSourcesAreAskedForTheirPast holds what each source documents of the question.
func TestSourcesAreAskedForTheirPast(t *testing.T) {
	from := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	want := map[string]string{
		"alternative":      "/fng/?limit=0&format=json",
		"bitfinex-funding": "/v2/candles/trade:1h:fUSD:a30:p2:p30/hist?start=1772236800000&end=1772495999999&limit=10000&sort=1",
		"defillama":        "/v2/historicalChainTvl",
		"defillama-yields": "/chart/fUSD",
		"ecb":              "/eurofxref-hist.xml",
		"lido":             "/v1/protocol/steth/apr/sma",
		"okx-earn":         "/api/v5/finance/savings/lending-rate-history?ccy=fUSD&limit=100&after=1772496000000",
	}
	for _, s := range sources.List() {
		if s.Past == nil {
			continue
		}
		if got := s.Past.Path(poll.Series{ID: "fUSD"}, from, from.Add(3*day)); got != want[s.Slug] {
			t.Errorf("%s is asked for %s\nwant %s", s.Slug, got, want[s.Slug])
		}
		if s.Past.Interval <= 0 || s.Past.Settle <= 0 {
			t.Errorf("%s has an interval of %s, settled after %s", s.Slug, s.Past.Interval, s.Past.Settle)
		}
		delete(want, s.Slug)
	}
	for slug := range want {
		t.Errorf("%s has no past", slug)
	}
}
