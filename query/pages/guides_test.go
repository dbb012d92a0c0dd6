package pages

import (
	"net/http"
	"strings"
	"testing"
)

// Guides, the list for language models and the reference are for everybody, also where pages need a session.
func TestGuidesAreForEverybody(t *testing.T) {
	w := newFixture(t, usual, func(c *Config) { c.Automatic = false })
	for path, wants := range map[string][]string{
		"/docs":                {"<title>Documentation", `<a href="/docs/rest#a">rest.md</a>`, "<table>", `href="/docs/README.md"`},
		"/docs/rest":           {"<h1", "REST", `id="any-section"`, `<a href="/docs">all</a>`, `<a href="https://example.com/x">there</a>`, `<a href="#any-section">below</a>`, `<a href="/docs/decisions/0002">second</a>`, `<a href="/docs/queries/01-hours.sql">hours</a>`, "curl &quot;&lt;x&gt;&quot;", `type="text/markdown" href="/docs/rest.md"`},
		"/docs/decisions/0002": {"<h1", "0002 Second", `<a href="/docs/rest">rest</a>`, `<a href="/docs/queries/01-hours.sql">hours</a>`},
		"/docs/api":            {"<h1>API</h1>", "/api/v1/coins/{coinId}", "listPrices", `"session":false`},
	} {
		response, page := w.ask("GET", path, current, w.browser(), "")
		if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") || len(response.Cookies()) > 0 {
			t.Errorf("%s: got %d %s", path, response.StatusCode, response.Header.Get("Content-Type"))
		}
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%.4000s", path, want, page)
			}
		}
		// What is served nowhere is text and no link; HTML in a guide is left out.
		for _, not := range []string{"decisions/0001.md", "../main.go", "gone.md", "javascript:", "<img"} {
			if strings.Contains(page, not) {
				t.Errorf("%s has %q:\n%.4000s", path, not, page)
			}
		}
	}
	for path, wants := range map[string][]string{
		"/docs/rest.md":              {"# REST\n", "See why, [second](decisions/0002.md), [hours](queries/01-hours.sql), code, [there](https://example.com/x), gone, [below]"},
		"/docs/queries/01-hours.sql": {"-- Bitcoin by the hour"},
		"/docs/decisions/0002.md":    {"[rest](../rest.md), code, [hours](../queries/01-hours.sql)."},
		"/llms.txt":                  {"# Marketlog\n\n> ", "- [REST](http://" + w.addr + "/docs/rest.md): The map of all paths\n", "/openapi.json", "/asyncapi.json", "/api/v1/prices/ws", "/mcp", "/api/v1/sql", "simulated"},
		"/llms-full.txt":             {"# Marketlog\n", "`GET /api/v1/coins/{coinId}`: A test.; parameters: `coinId`", "## Any section"},
	} {
		response, page := w.ask("GET", path, current, []string{"Host: " + w.addr, "Accept: */*"}, "")
		if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/") {
			t.Errorf("%s: got %d %s", path, response.StatusCode, response.Header.Get("Content-Type"))
		}
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%.4000s", path, want, page)
			}
		}
		if strings.Contains(page, "Changelog") {
			t.Errorf("%s has what is no guide", path)
		}
	}
	for _, path := range []string{"/docs/none", "/docs/none.md", "/docs/..%2frest.md", "/docs/queries", "/docs/queries/none.sql", "/docs/decisions/..%2f..%2frest.md"} {
		if response, _ := w.ask("GET", path, current, w.browser(), ""); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, response.StatusCode)
		}
	}
}
