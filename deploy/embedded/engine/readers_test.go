//go:build linux || darwin

package engine

import (
	"crypto/sha256"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// rowless are formats that hold no rows by their nature: Null writes nothing, Hash the digest of all.
var rowless = []string{"Null", "Hash"}

// In every format that is not rejected, each row comes once, in order and with its values, by what parsers without anything of
// ClickHouse make of the answer: of no rows, and of more than the engine puts into one of its blocks.
func TestEveryFormatIsReadByAnotherParser(t *testing.T) {
	readEveryFormat(t, 0, 70_000)
}

// The same of answers that are long: 200,000 rows, or as many as MARKETLOG_FORMAT_ROWS says.
func TestLongAnswersAreReadByOtherParsers(t *testing.T) {
	rows := 100_000
	if text := os.Getenv("MARKETLOG_FORMAT_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			t.Fatalf("MARKETLOG_FORMAT_ROWS=%q, want a number of rows", text)
		}
	}
	readEveryFormat(t, rows)
}

func readEveryFormat(t *testing.T, counts ...int) {
	streamtest.InTier(t, streamtest.TierContract)
	python := readersPython(t)
	e := openEngine(t)
	server := analysts(t, e)
	text, err := e.Ask("SELECT name FROM system.formats WHERE is_output ORDER BY name", "TabSeparated")
	if err != nil {
		t.Fatal(err)
	}
	formats := slices.DeleteFunc(strings.Fields(text), func(format string) bool {
		return slices.Contains(rowless, format) || slices.Contains(unserved, format)
	})
	if len(formats) < 83 {
		t.Fatalf("got %d formats, want at least the 83 that the engine had once beside those without rows and those not served", len(formats))
	}
	for _, rows := range counts {
		arguments := append([]string{filepath.Join("testdata", "read.py"), server, strconv.Itoa(rows)}, formats...)
		out, err := osexec.CommandContext(t.Context(), python, arguments...).CombinedOutput()
		if err != nil {
			t.Errorf("reading %d rows: %v", rows, err)
		}
		whole := 0
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSuffix(line, "\n"); strings.HasSuffix(line, ": whole") {
				whole++
				continue
			}
			t.Errorf("%d rows: %s", rows, line)
		}
		streamtest.Report(t, "rows", rows)
		streamtest.Report(t, "formats", whole)
		if whole != len(formats) {
			t.Errorf("%d rows: %d formats are whole, want %d", rows, whole, len(formats))
		}
	}
}

// readersPython is the interpreter with the libraries that tools/contract/readers.txt names, for which fetch.sh names the
// environment.
func readersPython(t *testing.T) string {
	t.Helper()
	named, err := os.ReadFile(filepath.Join("..", "..", "..", "tools", "contract", "readers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(cache, "marketlog", fmt.Sprintf("readers-%.6x", sha256.Sum256(named)), "bin", "python")
	if _, err := os.Stat(python); err != nil {
		streamtest.Missing(t, streamtest.TierContract, "no readers of files; tools/contract/fetch.sh installs them")
	}
	return python
}
