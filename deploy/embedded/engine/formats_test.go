//go:build linux || darwin

package engine

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
)

// longRows is more than the engine puts into one block, of which pieces were once sent as results of their own; shortly
// tested formats take a third of them.
const longRows = 3_000_000

// In every format the engine has, an answer is the same bytes as the engine's own single result, or an error that says which
// formats to use.
func TestEveryFormatIsWhole(t *testing.T) {
	e := openEngine(t)
	server := analysts(t, e)
	text, err := e.Ask("SELECT name FROM system.formats WHERE is_output ORDER BY name", "TabSeparated")
	if err != nil {
		t.Fatal(err)
	}
	formats := strings.Fields(text)
	if len(formats) < 80 {
		t.Fatalf("got %d formats, want those of system.formats", len(formats))
	}
	for _, format := range formats {
		for _, rows := range []int{0, 70_000} {
			query := "SELECT number, toString(number) AS text FROM numbers(" + strconv.Itoa(rows) + ") FORMAT " + format
			settings := " SETTINGS output_format_write_statistics = 0, max_threads = 1, output_format_pretty_max_rows = 50000000"
			want, wantErr := e.Ask(query+settings, "TabSeparated")
			status, _, got := ask(t, server, query, "output_format_write_statistics", "0")
			switch {
			case slices.Contains(unserved, format) || wantErr != nil && status != 200:
				if status == 200 || !strings.Contains(got, "Any rows fit into Parquet") {
					t.Errorf("%s of %d rows is refused without a word on what to use: %s", format, rows, got)
				}
			case status == 200 && timed(format) && strings.Count(got, "69999") == strings.Count(want, "69999"):
			case format == "Raw" && rows == 0 && status == 200 && got == "": // the engine's single result is "''," then
			case status != 200 || got != want:
				t.Errorf("%s of %d rows: got %d and %d bytes (%.200q), want %d bytes (%v)", format, rows, status, len(got), got, len(want), wantErr)
			}
		}
	}
}

// timed lists formats that hold something else at every writing: an id, a sync marker, the progress, columns as wide as the
// blocks that came together.
func timed(format string) bool {
	return format == "Avro" || strings.Contains(format, "Progress") || strings.HasPrefix(format, "Pretty")
}

// What is long is read by other programs' parsers.
func TestLongAnswersParse(t *testing.T) {
	server := analysts(t, openEngine(t))
	query := "SELECT number, toString(number) AS text FROM numbers(" + strconv.Itoa(longRows) + ") FORMAT "
	for format, count := range map[string]func(io.Reader) (int, error){
		"JSON": func(r io.Reader) (int, error) {
			var answer struct {
				Data []struct{ Number any }
				Rows int
			}
			err := json.NewDecoder(r).Decode(&answer)
			return min(len(answer.Data), answer.Rows), err
		},
		"CSVWithNames": func(r io.Reader) (int, error) {
			lines, n := csv.NewReader(r), -1
			lines.ReuseRecord = true
			for {
				row, err := lines.Read()
				if err == io.EOF {
					return n, nil
				}
				if err != nil {
					return n, err
				}
				if n >= 0 && row[0] != strconv.Itoa(n) {
					return n, io.ErrUnexpectedEOF
				}
				n++
			}
		},
		"Native": func(r io.Reader) (int, error) {
			from, n := proto.NewReader(r), 0
			for {
				var block proto.Block
				var numbers proto.ColUInt64
				var texts proto.ColStr
				err := block.DecodeRawBlock(from, 0, proto.Results{{Name: "number", Data: &numbers}, {Name: "text", Data: &texts}})
				if err == io.EOF || err != nil && strings.Contains(err.Error(), "EOF") && block.Rows == 0 {
					return n, nil
				}
				if err != nil {
					return n, err
				}
				n += block.Rows
			}
		},
	} {
		response, err := http.Get(server + "/?query=" + url.QueryEscape(query+format))
		if err != nil {
			t.Fatal(err)
		}
		n, err := count(response.Body)
		response.Body.Close()
		if n != longRows || err != nil {
			t.Errorf("%s: got %d rows (%v), want %d", format, n, err, longRows)
		}
	}
}

// What is not served is rejected however it is asked for.
func TestUnservedFormatsAreRejected(t *testing.T) {
	server := analysts(t, openEngine(t))
	for _, asked := range [][]string{
		{"SELECT 'x' FORMAT rawblob"}, {"SELECT 'x' FORMAT `RawBLOB`"}, {"SELECT 'x' FORMAT RawBLOB SETTINGS max_threads = 1"},
		{"SELECT 'x'", "default_format", "MySQLWire"}, {"SHOW TABLES FORMAT Protobuf"},
		{"(SELECT 1) UNION ALL (SELECT 2) FORMAT PROMETHEUS"},
	} {
		status, _, got := ask(t, server, asked[0], asked[1:]...)
		if status != http.StatusBadRequest || !strings.Contains(got, "is not served. Any rows fit into Parquet") {
			t.Errorf("%q: got %d %s, want 400 with the formats to use", asked, status, got)
		}
	}
}

// Formats for people cut nothing that they were not asked to cut: neither rows, nor values, nor names.
func TestFormatsForPeopleCutNothing(t *testing.T) {
	server := analysts(t, openEngine(t))
	name, value := strings.Repeat("n", 100), strings.Repeat("v", 30_000)
	for _, format := range []string{"Pretty", "PrettyCompact", "PrettySpaceMonoBlock", "Vertical"} {
		status, _, got := ask(t, server, "SELECT repeat('v', 30000) AS "+name+" FROM numbers(2000) FORMAT "+format)
		if rows := strings.Count(got, value); status != 200 || rows != 2000 || !strings.Contains(got, name) {
			t.Errorf("%s: got %d with %d whole values (the name is there: %v), want 2000", format, status, rows,
				strings.Contains(got, name))
		}
		_, _, got = ask(t, server, "SELECT 'row' FROM numbers(2000) FORMAT "+format, "output_format_pretty_max_rows", "7")
		if rows := strings.Count(got, "row"); rows < 7 || rows > 40 {
			t.Errorf("%s: got %d rows, want those that the client asked for", format, rows)
		}
	}
}

// A statement that failed, or whose reader went away, leaves nothing to the next one on its connection.
func TestAnAnswerHoldsNothingOfAnother(t *testing.T) {
	e := openEngine(t)
	server := analysts(t, e)
	for _, format := range []string{"CSVWithNames", "JSON", "Parquet", "Native"} {
		for _, failing := range []string{
			"SELECT toUInt8(toString(number) || 'x') FROM numbers(10)", "SELECT throwIf(number = 300000) FROM numbers(400000)",
			"SELECT groupArray(repeat('x', 1000)) FROM numbers(2000000)",
		} {
			ask(t, server, failing+" FORMAT "+format)
		}
		response, err := http.Get(server + "/?query=" + url.QueryEscape("SELECT number, repeat('x', 1000) FROM numbers(40000000) FORMAT "+format))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadFull(response.Body, make([]byte, 100_000))
		response.Body.Close()
		for i := range 6 {
			if status, _, body := ask(t, server, "SELECT "+strconv.Itoa(i)+" FORMAT CSV"); status != 200 || body != strconv.Itoa(i)+"\n" {
				t.Errorf("after a failure in %s: got %d %q, want %d", format, status, body, i)
			}
		}
	}
	var left string
	waitFor(t, func() bool {
		var err error
		left, err = e.ask("SELECT toString(groupArray(query)) FROM system.processes WHERE query NOT LIKE '%system.processes%'")
		return err == nil && left == "[]"
	})
}

func TestCompressedBlocks(t *testing.T) {
	server := analysts(t, openEngine(t))
	_, _, plain := ask(t, server, "SELECT number FROM numbers(100000)")
	response, err := http.Get(server + "/?compress=1&query=" + url.QueryEscape("SELECT number FROM numbers(100000)"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(compress.NewReader(response.Body))
	if err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(got, []byte(plain)) {
		t.Errorf("got %d bytes (%v), want %d", len(got), err, len(plain))
	}
}
