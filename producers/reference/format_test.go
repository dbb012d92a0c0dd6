package reference

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
)

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
		drift, err := answer.Drift(sourceNamed(t, "defillama"), "stablecoins", []byte(body))
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
		drift, err := answer.Drift(sourceNamed(t, "ecb"), "daily", []byte(body))
		if got := strings.Join(drift, "; "); err != nil || got != want {
			t.Errorf("got %q, %v, want %q of %s", got, err, want, body)
		}
	}
	for _, body := range []string{strings.Repeat("<a>", 100), "<html", "{", ""} {
		if drift, err := answer.Drift(sourceNamed(t, "ecb"), "daily", []byte(body)); err == nil {
			t.Errorf("%.40q: got drift %q, want an error", body, drift)
		}
	}
}

// Real answers fit their descriptions.
func TestRecordedAnswersHaveNoDrift(t *testing.T) {
	root := os.Getenv("MARKETLOG_RECORDINGS")
	if root == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS is not set: no recordings to compare with")
	}
	for _, c := range []struct{ file, source, feed, lost string }{
		{"ecb/eurofxref-daily-2015-01-07.json", "ecb", "daily", "rate"},
		{"er-api/latest-usd-2024-08-19.json", "erapi", "latest", "rates"},
		{"fng/fng-2022-09-12.json", "alternative", "index", "value"},
		{"coingecko_ruby/global.json", "coingecko", "global", "total_market_cap"},
		{"coingecko_ruby/coins-markets-bitcoin.json", "coingecko", "top", "symbol"},
		{"coingecko_ruby/coins-markets-bitcoin.json", "coingecko", "rest", "symbol"},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err != nil {
			t.Fatal(err)
		}
		var answered struct{ Body string }
		if err := json.Unmarshal(text, &answered); err != nil {
			t.Fatal(err)
		}
		if drift, err := answer.Drift(sourceNamed(t, c.source), c.feed, []byte(answered.Body)); err != nil || len(drift) > 0 {
			t.Errorf("%s as %s %s: %q, %v", c.file, c.source, c.feed, drift, err)
		}
		// A field less is found.
		if drift, err := answer.Drift(sourceNamed(t, c.source), c.feed, []byte(strings.ReplaceAll(answered.Body, c.lost, "renamed"))); err != nil || len(drift) == 0 {
			t.Errorf("%s without %s: no drift, %v", c.file, c.lost, err)
		}
	}
}

func sourceNamed(t *testing.T, slug string) poll.Source {
	t.Helper()
	list := List()
	i := slices.IndexFunc(list, func(s poll.Source) bool { return s.Slug == slug })
	if i < 0 {
		t.Fatalf("no source is called %s", slug)
	}
	return list[i]
}
