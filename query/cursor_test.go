package query

import (
	"testing"
	"time"
)

func TestCursorsNameRecords(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 5, time.UTC)
	text := FormatCursor(at, 77)
	if got, offset, ok := ParseCursor(text); !ok || !got.Equal(at) || offset != 77 || len(text) > maxCursor {
		t.Errorf("%q names %v, %d, %v", text, got, offset, ok)
	}
	for _, text := range []string{"", "1", "1-", "-1-1", "0-1", "1--1", "1-1-1", "01-1", "1-1 ", "1-99999999999999999999"} {
		if _, _, ok := ParseCursor(text); ok {
			t.Errorf("%q is taken for a cursor", text)
		}
	}
}

func FuzzCursorsAreThoseThatAreWritten(f *testing.F) {
	f.Add("1769860800000000005-77")
	f.Add("+1-1")
	f.Fuzz(func(t *testing.T, text string) {
		if at, offset, ok := ParseCursor(text); ok && FormatCursor(at, offset) != text {
			t.Errorf("%q is taken for %v, %d", text, at, offset)
		}
	})
}
