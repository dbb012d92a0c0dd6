// Package answertest runs the scripts and holds the declarations of polled sources to what the engine needs.
package answertest

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
)

var update = flag.Bool("update", false, "write what the scripts of sources expect anew")

// Scripts runs testdata/<source>/*.txt of the caller's package. A script is a list of cases, parted by empty
// lines: comments, the answer as it comes, a line "----" and what Decode makes of it:
//
//	BASE/QUOTE RATE DATE BANKS (the banks of those that name them; no date is now)
//	KIND FIELD=VALUE … (any other record, its fields in the order of the schema)
//	refused REASON (a row), error REASON (the whole answer)
//
// With -update what follows the lines is written again.
func Scripts(t *testing.T, sources []poll.Source) {
	t.Helper()
	for _, s := range sources {
		scripts, err := filepath.Glob(filepath.Join("testdata", s.Slug, "*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if len(scripts) == 0 {
			t.Errorf("source %s has no script in testdata/%s", s.Slug, s.Slug)
		}
		for _, path := range scripts {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			cases := strings.Split(strings.TrimSpace(string(text)), "\n\n")
			for i, c := range cases {
				if strings.Contains(c, "\n----") {
					cases[i] = runCase(t, s, c)
				}
			}
			if *update {
				if err := os.WriteFile(path, []byte(strings.Join(cases, "\n\n")+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// runCase returns the case as it came out.
func runCase(t *testing.T, s poll.Source, text string) string {
	t.Helper()
	var comment, body []string
	input, want, _ := strings.Cut(text, "\n----")
	for _, line := range strings.Split(input, "\n") {
		if strings.HasPrefix(line, "#") {
			comment = append(comment, strings.TrimPrefix(line, "# "))
		} else {
			body = append(body, line)
		}
	}
	got := spell(s, []byte(strings.Join(body, "\n")))
	t.Run(s.Slug+"/"+strings.Join(comment, " "), func(t *testing.T) {
		if want = strings.TrimSpace(want); got != want && !*update {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
	return input + "\n----\n" + got
}

func spell(s poll.Source, body []byte) string {
	var readings poll.Readings
	var lines []string
	err := s.Decode("", body, &readings)
	for _, f := range readings.Fixings {
		line := f.Base + "/" + f.Quote + " " + f.Rate + " " + cmp.Or(f.Date, "now")
		if len(f.Providers) > 0 {
			line += " " + strings.Join(f.Providers, ",")
		}
		lines = append(lines, line)
	}
	for _, rec := range readings.Records {
		lines = append(lines, spellRecord(rec))
	}
	for _, refused := range readings.Refused {
		lines = append(lines, "refused "+string(producers.ReasonOf(refused)))
	}
	if err != nil {
		lines = append(lines, "error "+string(producers.ReasonOf(err)))
	}
	return strings.Join(lines, "\n")
}

// Declarations finds fields that the engine needs and that were left out.
func Declarations(t *testing.T, sources []poll.Source) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range sources {
		if s.Slug == "" || s.Name == "" || s.Version == 0 || s.URL == "" || strings.HasSuffix(s.URL, "/") || s.License == "" || s.Terms == "" ||
			len(s.Kinds) == 0 || len(s.Feeds) == 0 || s.Interval() <= 0 || s.Requests <= 0 || s.Per <= 0 || s.MaxBody <= 0 || s.Decode == nil {
			t.Errorf("declaration of %q = %+v, want every field that is not optional", s.Slug, s)
		}
		if seen[s.Slug] {
			t.Errorf("two sources are called %s", s.Slug)
		}
		seen[s.Slug] = true
	}
}

// Fuzz begins with the answers of the scripts. Whatever a server sends, a decoder returns, and what it returns is a rate or a record that the log can hold; the
// same response has the same values again.
func Fuzz(f *testing.F, sources []poll.Source) {
	scripts, err := filepath.Glob(filepath.Join("testdata", "*", "*.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range strings.Split(string(text), "\n\n") {
			input, _, _ := strings.Cut(c, "\n----")
			f.Add([]byte(input[max(0, strings.Index(input, "\n")):]))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, s := range sources {
			var readings poll.Readings
			if err := s.Decode("", body, &readings); err != nil && len(readings.Fixings)+len(readings.Records)+len(readings.Refused) > 0 {
				t.Errorf("%s read %v of what it could not read as a whole: %v", s.Slug, readings, err)
			}
			for _, fixing := range readings.Fixings {
				if len(fixing.Base) != 3 || len(fixing.Quote) != 3 || !fixing.Now && len(fixing.Date) != 10 || strings.Trim(fixing.Rate, "0123456789.") != "" {
					t.Errorf("%s read %+v", s.Slug, fixing)
				}
			}
			for _, rec := range readings.Records {
				if _, err := proto.Marshal(rec); err != nil { // not UTF-8
					t.Errorf("%s read what the log cannot hold: %v", s.Slug, err)
				}
			}
			if once, again := spell(s, body), spell(s, body); once != again {
				t.Errorf("%s read one answer in two ways:\n%s\n%s", s.Slug, once, again)
			}
		}
	})
}
