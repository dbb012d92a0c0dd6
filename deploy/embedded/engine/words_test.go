package engine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// However the output is cut into writes, what is kept of it is the same.
func TestLastWordsNameTheFaultAndTheEnd(t *testing.T) {
	r := streamtest.Rand(t)
	stacks := strings.Repeat("goroutine 7 [running]:\n", 1000)
	for _, c := range []struct{ name, written, begins, ends string }{
		{"little", "starting\nrefused: no such directory\n", "starting", "refused: no such directory"},
		{"a fault", "starting\n" + stacks + "SIGSEGV: segmentation violation\n" + stacks + "exit status 2\n", "SIGSEGV: segmentation violation\ngor", "exit status 2"},
		{"a panic", "a log\n" + "panic: nil map\n" + stacks + "end", "panic: nil map\ngoroutine", "running]:\nend"},
		{"a long log", stacks + "the panic: of others\nkilled\n", "goroutine 7", "the panic: of others\nkilled"},
	} {
		var through bytes.Buffer
		w := &engine.LastWords{To: &through}
		for rest := c.written; rest != ""; {
			n := min(len(rest), 1+r.IntN(40))
			if written, err := w.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatalf("%s: got %d, %v, want %d", c.name, written, err, n)
			}
			rest = rest[n:]
		}
		if got := w.String(); !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) || len(got) > 5<<10 {
			t.Errorf("%s: got %d bytes, %.60q … %.60q, want %q … %q", c.name, len(got), got, got[max(0, len(got)-60):], c.begins, c.ends)
		}
		if through.String() != c.written {
			t.Errorf("%s: %d bytes passed on of %d", c.name, through.Len(), len(c.written))
		}
	}
}
