package query

import (
	"fmt"
	"time"
)

// maxCursor is the length of two numbers of 64 bits and what is between them.
const maxCursor = 40

// CursorParam is the parameter of a list of records of the log, the last one first, that goes on behind a page before.
func CursorParam() Param {
	check := func(text string) string {
		if _, _, ok := ParseCursor(text); !ok {
			return "must be meta.next of an answer"
		}
		return ""
	}
	return Param{Name: "cursor", Kind: Text, MaxLength: maxCursor, Check: check, Doc: "meta.next of the page before."}
}

// FormatCursor names a record by when it was and its offset.
func FormatCursor(at time.Time, offset int64) string {
	return fmt.Sprintf("%d-%d", at.UnixNano(), offset)
}

// ParseCursor is the record that a cursor names, false for a text that FormatCursor does not make.
func ParseCursor(text string) (at time.Time, offset int64, ok bool) {
	var ns int64
	n, err := fmt.Sscanf(text, "%d-%d", &ns, &offset)
	at = time.Unix(0, ns)
	return at, offset, err == nil && n == 2 && ns > 0 && offset >= 0 && FormatCursor(at, offset) == text
}
