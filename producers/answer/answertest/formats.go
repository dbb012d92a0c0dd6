package answertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
)

// samples are the answers in the scripts of a source.
func samples(t *testing.T, slug string) [][]byte {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join("testdata", slug, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var bodies [][]byte
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range strings.Split(string(text), "\n\n") {
			input, _, _ := strings.Cut(c, "\n----")
			var body []string
			for _, line := range strings.Split(input, "\n") {
				if !strings.HasPrefix(line, "#") {
					body = append(body, line)
				}
			}
			bodies = append(bodies, []byte(strings.Join(body, "\n")))
		}
	}
	return bodies
}

// Formats finds feeds without a description that an answer of their scripts fits: it describes what the decoder reads.
func Formats(t *testing.T, sources []poll.Source) {
	t.Helper()
	for _, s := range sources {
		for _, feed := range s.Feeds {
			if drift, err := answer.Drift(s, feed.Name, []byte("null")); err != nil || len(drift) == 0 {
				t.Errorf("testdata/%s/format has no part for feed %s: %v", s.Slug, feed.Name, err)
				continue
			}
			least, read := []string(nil), false
			for _, body := range samples(t, s.Slug) {
				if drift, err := answer.Drift(s, feed.Name, body); err == nil && (!read || len(drift) < len(least)) {
					least, read = drift, true
				}
			}
			if !read {
				t.Errorf("%s: no answer of the scripts could be read", s.Slug)
			}
			if len(least) > 0 {
				t.Errorf("%s %s: no answer of the scripts fits the description; of the nearest, %s", s.Slug, feed.Name, strings.Join(least, "; "))
			}
		}
	}
}
