package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/query/querytest"
)

// TestTheDocumentOfSourcesIsUpToDate holds docs/sources.md against the declarations; with -update it writes it.
func TestTheDocumentOfSourcesIsUpToDate(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "sources.md")
	want := sourcesDocument()
	if *querytest.Update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/sources.md is not what the declarations say; `go test ./deploy/e2e -run TestTheDocumentOfSources -update` writes it")
	}
	for _, s := range sources.List() {
		if !strings.Contains(want, "### "+s.Name+"\n") {
			t.Errorf("the document leaves out %s", s.Slug)
		}
	}
	for _, v := range exchanges.List() {
		if !strings.Contains(want, "| "+v.Name+" |") {
			t.Errorf("the document leaves out %s", v.Slug)
		}
	}
}

const documentBegins = `# Sources

Generated from the declarations in ` + "`producers/reference`, `producers/yields` and `producers/exchanges`" + `; a test compares them.

` + "`marketlog sources list`" + ` shows what an installation polls, ` + "`marketlog sources enable NAME` and `disable NAME`" + ` change it while it runs, and
` + "`marketlog sources check`" + ` requests each feed once and names the fields of its answers that are missing or have another type than
when the adapter was written. ` + "`marketlog backfill --source NAME`" + ` reads a source's history.
In the configuration, ` + "`sources.NAME`" + ` takes ` + "`enabled` (auto, true or false), `url`,\n`key_file`, `interval` (of the most frequent feed; the others keep their proportion), `requests` and `per`" + `.

Licences and terms are as they were read on the day of writing; read them again before you pass values on. An instance on the simulator
sends no request to a public interface.

The format of each feed is known in one of three ways: *recorded*, tests decode what the provider really sent, in the recordings named by
` + "`MARKETLOG_RECORDINGS`" + `; *documented*, from the provider's documentation, which is linked; *guessed*, the provider documents nothing
that could be read, and the format is that of a public client, which is linked. Clients that are named behind it are independent of each
other and read the same fields with the same names, types, units and order. Two of them were looked for beside every page; *one client*
and *documented only* mark where no second or none was found in public code, and name the searches. What could not be confirmed is stated
beside it.

## Reference values

Every attempt counts against a budget. Requests are conditional where the source gives an ETag or Last-Modified, and
Retry-After is respected. What follows a space in an address is sent as the body of a POST.

Yields of projects without a section of their own come from DefiLlama yields, where it is enabled. Compound's are among them: its public
interface (version 2) is gone, and so is the one that its pages used afterwards.

`

func sourcesDocument() string {
	var doc strings.Builder
	doc.WriteString(documentBegins)
	for _, s := range sources.List() {
		describeSource(&doc, s)
	}
	doc.WriteString(`## Prices

The venues' public feeds and interfaces, without a key. No licence is recorded for their values.

| Venue | Name in commands | What is read | Requests | Connections |
| --- | --- | --- | --- | --- |
`)
	for _, v := range exchanges.List() {
		read := "trades, tickers"
		if v.History != nil {
			read += ", candles of the past"
		}
		fmt.Fprintf(&doc, "| %s | %s | %s | %g a second | %d in %s |\n", v.Name, v.Slug, read, v.Limits.Requests,
			v.Limits.Connects, inWords(v.Limits.ConnectsPer))
	}
	doc.WriteString(`
### Formats

| Venue | Markets | Trades | Tickers | Tickers over HTTP | Candles of the past |
| --- | --- | --- | --- | --- | --- |
`)
	for _, v := range exchanges.List() {
		e := v.Evidence
		fmt.Fprintf(&doc, "| %s |", v.Name)
		for _, part := range []producers.Evidence{e.Markets, e.Trades, e.Tickers, e.Polled, e.Candles} {
			fmt.Fprintf(&doc, " %s |", evidenceInWords(part))
		}
		doc.WriteString("\n")
	}
	doc.WriteString(`
### Countries

Which countries a venue serves, by ISO 3166 codes, as its terms name them; parts of a country are left out. Where the terms themselves
were not read, the last column names who quotes them. Unknown means that neither the terms nor a page that quotes them was found: the
venue counts as serving everyone. ` + "`meta.regionSource`" + ` of an answer for a country gives the same source.

| Venue | Countries | Terms | Read | By way of |
| --- | --- | --- | --- | --- |
`)
	for _, v := range exchanges.List() {
		c := v.Countries
		if c.Terms == "" {
			fmt.Fprintf(&doc, "| %s | unknown | – | – | – |\n", v.Name)
			continue
		}
		way := "the page itself"
		if len(c.Quoted) > 0 {
			way = "quoted by <" + strings.Join(c.Quoted, ">, <") + ">"
		}
		fmt.Fprintf(&doc, "| %s | %s | <%s> | %s | %s |\n", v.Name, countries(c), c.Terms, c.Read, way)
	}
	return doc.String()
}

func describeSource(doc *strings.Builder, s poll.Source) {
	fmt.Fprintf(doc, "### %s\n\n", s.Name)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(doc, "- %s: %s\n", name, value)
		}
	}
	row("Name in commands", "`"+strings.Join(append([]string{s.Slug}, s.Aliases...), "`, `")+"`")
	row("What is read", strings.Join(s.Kinds, ", "))
	row("Licence", s.License)
	row("Terms", "<"+s.Terms+">")
	if s.Attribution != "" {
		row("Attribution", "`"+s.Attribution+"`")
	}
	if s.Off != "" {
		row("Not asked unless it is switched on", s.Off)
	}
	if s.OwnUse != "" {
		row("Left out of exports, unless for your own use", s.OwnUse)
	}
	if s.Past != nil {
		row("Past", pastInWords(s.Past)+"; its format: "+evidenceInWords(s.Past.Evidence))
	}
	row("Budget", fmt.Sprintf("%d requests in %s, answers of at most %d MB", s.Requests, inWords(s.Per), s.MaxBody>>20))
	if s.Moves > 0 {
		row("Some value is expected to change every", inWords(s.Moves))
	}
	switch {
	case s.Sign != nil:
		row("Key", "needed: its file holds the key, sent in the header `"+s.KeyHeader+"`, followed by the secrets that sign requests, separated by spaces")
	case s.KeyHeader != "":
		row("Key", "optional, in the header `"+s.KeyHeader+"`")
	}
	doc.WriteString("\n| Feed | Every | Format | First request |\n| --- | --- | --- | --- |\n")
	known := documentedKnown()
	known.Read[s.Feeds[0].Requests(known)[0].Path] = known.Now // some feeds begin when the first one has
	if s.History != nil {
		fmt.Fprintf(doc, "| at the start | | %s | `%s` |\n", evidenceInWords(s.Feeds[0].Evidence), s.URL+s.History(known)[0])
	}
	for _, f := range s.Feeds {
		first := f.Requests(known)[0]
		fmt.Fprintf(doc, "| %s | %s | %s | `%s` |\n", f.Name, inWords(f.Interval), evidenceInWords(f.Evidence), strings.TrimSpace(s.Base("", f.Name)+first.Path+" "+first.Body))
	}
	doc.WriteString("\n")
}

// pastInWords reports what a back-fill reads of a source, and how far back.
func pastInWords(p *poll.Past) string {
	words := map[time.Duration]string{time.Hour: "a value an hour", 24 * time.Hour: "a value a day"}[p.Interval]
	switch {
	case p.Back > 0:
		words += fmt.Sprintf(", of the last %d days", p.Back/(24*time.Hour))
	case !p.Since.IsZero():
		words += ", since " + p.Since.Format(time.DateOnly)
	default:
		words += ", as far back as it has them"
	}
	if p.Rows == 0 {
		return words + "; all in one answer"
	}
	return fmt.Sprintf("%s; up to %d in one answer", words, p.Rows)
}

// documentedKnown is what a first start knows, and a list of coins, by which some feeds go.
func documentedKnown() poll.Known {
	known := poll.Known{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Read: map[string]time.Time{}, Ranked: []string{"bitcoin"}}
	for i := range 2000 {
		known.Ranked = append(known.Ranked, fmt.Sprintf("coin-%d", i+2))
	}
	return known
}

func countries(c adapter.Countries) string {
	if len(c.Served) > 0 {
		return "only " + strings.Join(c.Served, " ")
	}
	return "all but " + strings.Join(c.Refused, " ")
}

// evidenceInWords reports how a format is known, with the page that was read; a dash where there is no such feed.
func evidenceInWords(e producers.Evidence) string {
	words := string(e.Standing)
	switch {
	case e.Standing == "":
		return "–"
	case e.Page != "":
		words = fmt.Sprintf("[%s](%s)", words, e.Page)
	}
	for i, client := range e.Clients {
		before := ", "
		if i == 0 {
			before = "; as read by "
		}
		words += fmt.Sprintf("%s[%s](%s)", before, clientName(client), client)
	}
	switch {
	case e.Standing == producers.IsRecorded:
	case e.ReadBy() == 0:
		words += ", documented only"
	case e.ReadBy() == 1:
		words += ", one client"
	}
	if e.Sought != "" {
		words += " (searched: " + e.Sought + ")"
	}
	if e.Unconfirmed != "" {
		words += " (unconfirmed: " + e.Unconfirmed + ")"
	}
	return words
}

// clientName is the repository of a page on GitHub, with its owner, else its host.
func clientName(page string) string {
	path := strings.TrimPrefix(page, "https://")
	parts := strings.Split(path, "/")
	if len(parts) > 2 && parts[0] == "github.com" {
		return parts[1] + "/" + parts[2]
	}
	return parts[0]
}

// inWords writes a duration without the units that are nought.
func inWords(d time.Duration) string {
	text := d.String()
	for _, nought := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nought) {
			text = strings.TrimSuffix(text, nought) + nought[:1]
		}
	}
	return text
}
