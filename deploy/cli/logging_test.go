package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/marketlog/marketlog/deploy/config"
)

// What strangers send is logged in places: it makes no line of its own, and no terminal obeys it.
func TestNobodyForgesALineOfTheLog(t *testing.T) {
	for _, hostile := range []string{"x\nERR all keys were stolen", "x\r\nERR", "\x1b[2J\x1b[31mERR", "x\u2028ERR", "\u202eERR", "\x00\x07\x7f", "\xff\xfe", `{"level":"ERROR"}`} {
		for _, format := range []string{"text", "json"} {
			var out bytes.Buffer
			log := newLogger(config.LogConfig{Level: "info", Format: format}, &out)
			log.Warn("the venue complains", "text", hostile, "err", errors.New(hostile))
			log.With("client", hostile).Info(hostile)
			said := out.String()
			if lines := strings.Count(said, "\n"); lines != 2 {
				t.Errorf("%s: %q makes %d lines of two: %q", format, hostile, lines, said)
			}
			for _, r := range said {
				// JSON is for machines: what counts there is that a line is a record.
				if format == "text" && r != '\n' && !unicode.IsPrint(r) || r < ' ' && r != '\n' {
					t.Errorf("%s: %q comes through as %q", format, hostile, said)
					break
				}
			}
		}
	}
}
