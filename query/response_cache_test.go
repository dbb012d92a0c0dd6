package query

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

func TestHeldAnswersAreMadeOnceForAVersion(t *testing.T) {
	var held ResponseCache[int, string]
	made := 0
	get := func(version int, key string) string {
		t.Helper()
		answer, err := held.Get(version, key, func() (Answer, error) {
			made++
			return Encode(fmt.Sprint(key, version, made))
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(answer.Body.JSON())
	}
	for i, step := range []struct {
		version int
		key     string
		want    string
	}{
		{1, "a", `"a1 1"`}, {1, "a", `"a1 1"`}, {1, "b", `"b1 2"`}, {1, "a", `"a1 1"`},
		{2, "a", `"a2 3"`}, {2, "b", `"b2 4"`}, {2, "a", `"a2 3"`},
		{1, "a", `"a1 5"`}, // what was forgotten is made again
	} {
		if got := get(step.version, step.key); got != step.want {
			t.Errorf("step %d, version %d, %s: got %s, want %s", i, step.version, step.key, got, step.want)
		}
	}
	if _, err := held.Get(9, "a", func() (Answer, error) { return Answer{}, errors.New("broken") }); err == nil {
		t.Error("a failure was not returned")
	}
	if got, want := get(1, "a"), `"a1 5"`; got != want {
		t.Errorf("after a failure of another version: got %s, want %s", got, want)
	}
}

func TestCachedResponsesAreBounded(t *testing.T) {
	var cache ResponseCache[int, int]
	for key := range 10 * maxResponses {
		if _, err := cache.Get(1, key, func() (Answer, error) { return Encode(key) }); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(cache.cached.Load().answers); got != maxResponses {
		t.Errorf("%d responses are cached of %d keys, want %d", got, 10*maxResponses, maxResponses)
	}
}

func TestAgesReadAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		age             time.Duration
		want            string
		stale, critical bool
	}{
		{-time.Second, "less than a minute", false, false},
		{59 * time.Second, "less than a minute", false, false},
		{time.Minute, "1 minute", false, false},
		{views.StatisticsStaleAfter, "15 minutes", false, false},
		{views.StatisticsStaleAfter + 1, "15 minutes", true, false},
		{views.CriticalAfter, "2 hours", true, false},
		{views.CriticalAfter + 1, "2 hours", true, true},
		{25 * time.Hour, "1 day", true, true},
	} {
		got := AgeOf(now.Add(-test.age).UnixNano(), now, views.StatisticsStaleAfter).Meta()
		if got.DataAge != test.want || got.IsStale != test.stale || got.IsCritical != test.critical {
			t.Errorf("%s: got %+v, want %q, stale %v, critical %v", test.age, got, test.want, test.stale, test.critical)
		}
	}
	if got := AgeOf(0, now, views.StatisticsStaleAfter).Meta(); got.DataAge != "unknown" || !got.IsCritical || got.LastUpdate != "" {
		t.Errorf("before the first value: got %+v, want an unknown age, critical, without a time", got)
	}
}
