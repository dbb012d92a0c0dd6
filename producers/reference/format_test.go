package reference

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// Every feed has a description that an answer of its scripts fits: it describes what the decoder reads.
func TestEveryFeedHasADescriptionThatFits(t *testing.T) {
	for _, s := range List() {
		for _, feed := range s.Feeds {
			described, err := describedFormat(s.Slug, feed.Name)
			if err != nil || len(described) == 0 {
				t.Errorf("testdata/%s/format has no part for feed %s: %v", s.Slug, feed.Name, err)
				continue
			}
			least, read := []string(nil), false
			for _, body := range samples(t, s.Slug) {
				if drift, err := Drift(s.Slug, feed.Name, body); err == nil && (!read || len(drift) < len(least)) {
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

const stablecoinsAnswer = `{"peggedAssets": [
	{"id": "1", "name": "A", "symbol": "A", "gecko_id": "a", "pegType": "peggedUSD", "pegMechanism": "x", "circulating": {"peggedUSD": 1},
	 "chainCirculating": {"Base": {"current": {"peggedUSD": 1}}}, "price": null, "new": true}%]}`

func TestDriftNamesWhatIsGoneOrChanged(t *testing.T) {
	whole := strings.Replace(stablecoinsAnswer, "%", "", 1)
	for name, c := range map[string]struct{ old, now, want string }{
		"nothing":             {"", "", ""},
		"a field":             {`"pegType": "peggedUSD", `, ``, "peggedAssets[].pegType is gone"},
		"an object":           {`"chainCirculating": {"Base": {"current": {"peggedUSD": 1}}}, `, ``, "peggedAssets[].chainCirculating is gone"},
		"an empty object":     {`{"Base": {"current": {"peggedUSD": 1}}}`, `{}`, "peggedAssets[].chainCirculating.* is gone"},
		"a number as text":    {`{"peggedUSD": 1},`, `{"peggedUSD": "1"},`, "peggedAssets[].circulating.* is a string, and was a number"},
		"a text as number":    {`"id": "1"`, `"id": 1`, "peggedAssets[].id is a number, and was a string"},
		"an optional field":   {`"new": true`, `"deprecated": "yes"`, "peggedAssets[].deprecated is a string, and was a boolean"},
		"a list as an object": {`{"peggedAssets": [`, `{"peggedAssets": {"a":`, "peggedAssets is no list"},
		"no rows":             {whole, `{"peggedAssets": []}`, "peggedAssets is empty"},
		"all of it":           {whole, `{"assets": []}`, "peggedAssets is gone"},
	} {
		body := strings.Replace(whole, c.old, c.now, 1)
		if name == "a list as an object" {
			body = strings.Replace(body, "]}", "}}", 1)
		}
		drift, err := Drift("defillama", "stablecoins", []byte(body))
		if got := strings.Join(drift, "; "); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q of\n%s", name, got, err, c.want, body)
		}
	}
}

func TestDriftReadsXML(t *testing.T) {
	const file = `<?xml version="1.0"?><g:Envelope xmlns:g="x"><Cube><Cube time="2026-01-05"><Cube currency="USD" rate="1.1"/></Cube></Cube></g:Envelope>`
	for body, want := range map[string]string{
		file: "",
		strings.Replace(file, "rate=", "value=", 1):                       "Envelope[].Cube[].Cube[].Cube[].@rate is gone",
		strings.Replace(file, `<Cube currency="USD" rate="1.1"/>`, "", 1): "Envelope[].Cube[].Cube[].Cube is gone",
	} {
		drift, err := Drift("ecb", "daily", []byte(body))
		if got := strings.Join(drift, "; "); err != nil || got != want {
			t.Errorf("got %q, %v, want %q of %s", got, err, want, body)
		}
	}
	for _, body := range []string{strings.Repeat("<a>", 100), "<html", "{", ""} {
		if drift, err := Drift("ecb", "daily", []byte(body)); err == nil {
			t.Errorf("%.40q: got drift %q, want an error", body, drift)
		}
	}
}

// Real answers fit their descriptions.
func TestRecordedAnswersHaveNoDrift(t *testing.T) {
	root := os.Getenv("MARKETLOG_RECORDINGS")
	if root == "" {
		t.Skip("MARKETLOG_RECORDINGS is not set: no recordings to compare with")
	}
	for _, c := range []struct{ file, source, feed string }{
		{"ecb/eurofxref-daily-2015-01-07.json", "ecb", "daily"},
		{"er-api/latest-usd-2024-08-19.json", "erapi", "latest"},
		{"fng/fng-2022-09-12.json", "alternative", "index"},
		{"coingecko_ruby/global.json", "coingecko", "global"},
		{"coingecko_ruby/coins-markets-bitcoin.json", "coingecko", "top"},
		{"coingecko_ruby/coins-markets-bitcoin.json", "coingecko", "rest"},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Body string }
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		if drift, err := Drift(c.source, c.feed, []byte(answer.Body)); err != nil || len(drift) > 0 {
			t.Errorf("%s as %s %s: %q, %v", c.file, c.source, c.feed, drift, err)
		}
		// A field less is found.
		described, _ := describedFormat(c.source, c.feed)
		last := described[slices.IndexFunc(described, func(f formatField) bool { return !f.optional && f.path[len(f.path)-1] != "*" })]
		name := strings.TrimPrefix(strings.TrimSuffix(last.path[len(last.path)-1], "[]"), "@")
		if drift, err := Drift(c.source, c.feed, []byte(strings.ReplaceAll(answer.Body, name, "renamed"))); err != nil || len(drift) == 0 {
			t.Errorf("%s without %s: no drift, %v", c.file, name, err)
		}
	}
}
