package history_test

import (
	"fmt"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
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
