package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/marketlog/marketlog/deploy/config"
)

// What strangers send is logged in places: it makes no line of its own, and no terminal acts on it.
func TestNobodyForgesALineOfTheLog(t *testing.T) {
	for _, hostile := range []string{"x\nERR all keys were stolen", "x\r\nERR", "\x1b[2J\x1b[31mERR", "x\u2028ERR", "\u202eERR", "\x00\x07\x7f", "\xff\xfe", `{"level":"ERROR"}`} {
		for _, format := range []string{"text", "json"} {
			var out bytes.Buffer
			log := NewLogger(config.LogConfig{Level: "info", Format: format}, &out)
			log.Warn("venue sent an error notice", "text", hostile, "error", errors.New(hostile))
			log.With("client", hostile).Info(hostile)
			output := out.String()
			if lines := strings.Count(output, "\n"); lines != 2 {
				t.Errorf("%s: %q makes %d lines of two: %q", format, hostile, lines, output)
			}
			for _, r := range output {
				// JSON is for machines: what counts there is that a line is a record.
				if format == "text" && r != '\n' && !unicode.IsPrint(r) || r < ' ' && r != '\n' {
					t.Errorf("%s: %q comes through as %q", format, hostile, output)
					break
				}
			}
		}
	}
}

func TestDurationsInLogLinesHaveAUnit(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		NewLogger(config.LogConfig{Level: "info", Format: format}, &out).Info("role failed", "retry_in", 1500*time.Millisecond)
		if !strings.Contains(out.String(), "1.5s") {
			t.Errorf("%s: got %q, want the duration as 1.5s", format, out.String())
		}
	}
}
