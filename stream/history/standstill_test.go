package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// A source that goes on answering and serves nothing new is degraded from the third interval on, and not before.
func TestSourcesThatStandStillAreDegraded(t *testing.T) {
	const minute = int64(time.Minute)
	offset := int64(0)
	// Of each answer, a minute after the other: the values it held, - for none, = for 304, ! for a failure.
	answers := func(source string, moves time.Duration, digests string) (records []logged) {
		offset++
		records = append(records, sourceRecord(offset, &eventsv1.SourceNotice{Source: source, Enabled: true, Interval: minute, Moves: int64(moves)}))
		for i, what := range digests {
			offset++
			f := &eventsv1.Fetch{Source: source, Feed: "list", Url: "https://" + source, Status: 200, Started: noon + int64(i)*minute, Told: uint64(what), Rows: 1}
			switch what {
			case '-':
				f.Rows = 0
			case '=':
				f.Status, f.Told, f.Rows = 304, 0, 0
			case '!':
				f.Status, f.Error, f.Told, f.Rows = 503, "busy", 0, 0
			}
			records = append(records, sourceRecord(offset, f))
		}
		return records
	}
	store := newStore(t)
	var want []string
	for i, test := range []struct {
		name, digests string
		moves         time.Duration
		want          string // the state, how it has stopped, and since which minute
	}{
		{"moves", "abcdabcd", time.Minute, "healthy"},
		{"not yet", "abbb", time.Minute, "healthy"},
		{"unmoved", "abbbb", time.Minute, "degraded unmoved 1"},
		{"unmoved from the first answer on", "aaaa", time.Minute, "degraded unmoved 0"},
		{"there and back", "abab", time.Minute, "healthy"},
		{"moves again", "abbbbc", time.Minute, "healthy"},
		{"not modified", "ab===", time.Minute, "degraded unmoved 1"},
		{"not modified, then as before", "ab==b", time.Minute, "degraded unmoved 1"},
		{"failures between are not judged", "ab!!b", time.Minute, "degraded unmoved 1"},
		{"no answer since", "ab!!!!!!", time.Minute, "down"},
		{"expected later", "abbbbbb", 2 * time.Minute, "healthy"},
		{"even later", "abbbbbbb", 2 * time.Minute, "degraded unmoved 1"},
		{"may be unchanged", "aaaaaaaa", 0, "healthy"},
		{"not yet empty", "ab--", 0, "healthy"},
		{"empty", "ab---", 0, "degraded empty 1"},
		{"always empty", "----", 0, "degraded empty 0"},
		{"empty and not modified", "ab-==", time.Minute, "degraded empty 1"},
		{"a page of HTML", "\x00\x00\x00\x00\x00\x00", time.Minute, "healthy"}, // of a process that wrote no digest
	} {
		source := fmt.Sprintf("%02d %s", i, test.name)
		insert(t, store, answers(source, test.moves, test.digests)...)
		want = append(want, source+": "+test.want)
	}
	checkRows(t, store, fmt.Sprintf(`SELECT concat(source, ': ', status, if(standstill = '', '', concat(' ', standstill, ' ', toString(intDiv(toUnixTimestamp64Nano(assumeNotNull(standstill_since)) - %d, %d)))))
		FROM default.v_sources ORDER BY source`, noon, minute), want...)
}

// How requests went as of an instant is how they would have gone had there been no others than those that had ended by then; and what they say of a
// standstill is what the view judges of these.
func TestRequestsOfSourcesAsOfAnInstant(t *testing.T) {
	random := streamtest.Rand(t)
	const minute = int64(time.Minute)
	step := []int64{minute, 47 * minute, 7 * 60 * minute}[random.IntN(3)]
	var notices, requests []logged
	var ends []int64
	declared := map[string]*eventsv1.SourceNotice{}
	offset, started, told := int64(0), noon, uint64(1)
	for i := range 6 {
		offset++
		n := &eventsv1.SourceNotice{Source: fmt.Sprint("source", i), Enabled: true, Interval: random.Int64N(4) * step, Moves: random.Int64N(4) * step}
		declared[n.Source] = n
		notices = append(notices, sourceRecord(offset, n))
	}
	for range 120 {
		offset++
		started += random.Int64N(step)
		f := &eventsv1.Fetch{Source: fmt.Sprint("source", random.IntN(6)), Feed: "list", Url: fmt.Sprint("https://", random.IntN(2)), Status: 200, Started: started, Duration: random.Int64N(3 * step), Rows: random.Int64N(2), Told: told}
		switch random.IntN(6) {
		case 0:
			f.Status, f.Told, f.Rows = 304, 0, 0
		case 1:
			f.Status, f.Error, f.Told, f.Rows = 503, "busy", 0, 0
		case 2:
			told++
		}
		requests, ends = append(requests, sourceRecord(offset, f)), append(ends, f.Started+f.Duration)
	}
	whole := newStore(t)
	insert(t, whole, append(notices, requests...)...)
	stopped := 0
	for range 4 {
		until := noon + random.Int64N(started-noon+step)
		if random.IntN(2) == 0 {
			until = ends[random.IntN(len(ends))] // to the nanosecond
		}
		before := newStore(t)
		ended := slices.Clone(notices)
		for i, end := range ends {
			if end <= until {
				ended = append(ended, requests[i])
			}
		}
		insert(t, before, ended...)
		got, err := read.From(whole).SourceHealth(t.Context(), time.Unix(0, until))
		if err != nil {
			t.Fatal(err)
		}
		want, err := read.From(before).SourceHealth(t.Context(), time.Unix(0, started).AddDate(10, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("as of %s: want(-), got(+):\n%s", time.Unix(0, until).UTC(), diff)
		}
		var judged []string
		for _, h := range got {
			n := declared[h.Source]
			what, since := h.Standstill(time.Duration(n.Interval), time.Duration(n.Moves))
			if what != "" {
				what += " " + since.Format(time.RFC3339Nano)
				stopped++
			}
			judged = append(judged, h.Source+" "+what)
		}
		viewed := queryStrings(t, before, `SELECT concat(source, ' ', standstill, if(standstill = '', '', concat(' ', toString(standstill_since)))) FROM source_health ORDER BY source`)
		for i, line := range viewed {
			source, what, _ := strings.Cut(line, " ")
			if kind, since, is := strings.Cut(what, " "); is {
				at, err := time.Parse(time.DateTime, since)
				if err != nil {
					t.Fatal(err)
				}
				what = kind + " " + at.Format(time.RFC3339Nano)
			}
			viewed[i] = source + " " + what
		}
		if diff := cmp.Diff(viewed, judged); diff != "" {
			t.Fatalf("standstills as of %s: the view (-), the reader (+):\n%s", time.Unix(0, until).UTC(), diff)
		}
	}
	if stopped == 0 {
		t.Error("nothing stood still")
	}
}
