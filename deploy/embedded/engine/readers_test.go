//go:build linux || darwin

package engine

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// Formats of files that other programs read by columns are whole, however long, by what pyarrow and fastavro make of them: every
// row is there once, with its values.
func TestFilesAreReadByOtherLibraries(t *testing.T) {
	streamtest.InTier(t, streamtest.TierContract)
	python := readersPython(t)
	server := analysts(t, openEngine(t))
	file := filepath.Join(t.TempDir(), "answer")
	for _, format := range []string{"Parquet", "Arrow", "ArrowStream", "ORC", "Avro", "CSVWithNames", "JSONEachRow"} {
		for _, rows := range []int{0, longRows} {
			query := fmt.Sprintf("SELECT number, toString(number) AS text FROM numbers(%d) FORMAT %s", rows, format)
			response, err := http.Get(server + "/?output_format_json_quote_64bit_integers=0&query=" + url.QueryEscape(query))
			if err != nil {
				t.Fatal(err)
			}
			saved, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(saved, response.Body)
			response.Body.Close()
			if err := saved.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("%s of %d rows: got %s (%v)", format, rows, response.Status, err)
				continue
			}
			out, err := osexec.CommandContext(t.Context(), python, filepath.Join("testdata", "read.py"), format, file).CombinedOutput()
			want := fmt.Sprintf("rows %d sum %d agree True", rows, rows*(rows-1)/2)
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%s of %d rows: got %s (%v), want %s", format, rows, got, err, want)
			}
		}
	}
}

// readersPython is the interpreter whose libraries read files.
func readersPython(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(cache, "marketlog", "readers-*", "bin", "python"))
	if err != nil || len(found) == 0 {
		streamtest.Missing(t, streamtest.TierContract, "no readers of files; tools/contract/fetch.sh installs them")
	}
	return found[len(found)-1]
}
