package reference

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/producers"
)

// TestSourcesReadTheirAnswers runs testdata/<source>/*.txt. A script is a list of cases, parted by empty
// lines: comments, the answer as it comes, a line "----" and what Decode makes of it:
//
//	BASE/QUOTE RATE DATE BANKS (the banks of those that name them; no date is now)
//	KIND FIELD=VALUE … (any other record, its fields in the order of the schema)
//	refused REASON (a row), error REASON (the whole answer)
func TestSourcesReadTheirAnswers(t *testing.T) {
	for _, s := range List() {
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
			for _, c := range strings.Split(string(text), "\n\n") {
				if c = strings.TrimSpace(c); strings.Contains(c, "\n----") {
					runCase(t, s, c)
				}
			}
		}
	}
}

func runCase(t *testing.T, s producers.Source, text string) {
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
	t.Run(s.Slug+"/"+strings.Join(comment, " "), func(t *testing.T) {
		got := spell(s, []byte(strings.Join(body, "\n")))
		if want = strings.TrimSpace(want); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

func spell(s producers.Source, body []byte) string {
	var said producers.Readings
	var lines []string
	err := s.Decode("", body, &said)
	for _, f := range said.Fixings {
		line := f.Base + "/" + f.Quote + " " + f.Rate + " " + cmp.Or(f.Date, "now")
		if len(f.Providers) > 0 {
			line += " " + strings.Join(f.Providers, ",")
		}
		lines = append(lines, line)
	}
	for _, rec := range said.Records {
		lines = append(lines, spellRecord(rec))
	}
	for _, refused := range said.Refused {
		lines = append(lines, "refused "+string(producers.ReasonOf(refused)))
	}
	if err != nil {
		lines = append(lines, "error "+string(producers.ReasonOf(err)))
	}
	return strings.Join(lines, "\n")
}

func TestDeclarationsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range List() {
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

// Whatever a server sends, a decoder returns, and what it returns is a rate or a record that the log can hold; the
// same answer says the same again.
func FuzzDecode(f *testing.F) {
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
		for _, s := range List() {
			var said producers.Readings
			if err := s.Decode("", body, &said); err != nil && len(said.Fixings)+len(said.Records)+len(said.Refused) > 0 {
				t.Errorf("%s read %v of what it could not read as a whole: %v", s.Slug, said, err)
			}
			for _, fixing := range said.Fixings {
				if len(fixing.Base) != 3 || len(fixing.Quote) != 3 || !fixing.Now && len(fixing.Date) != 10 || strings.Trim(fixing.Rate, "0123456789.") != "" {
					t.Errorf("%s read %+v", s.Slug, fixing)
				}
			}
			for _, rec := range said.Records {
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
