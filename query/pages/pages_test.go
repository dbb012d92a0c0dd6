package pages

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Whatever is answered, it comes with the strictest policy that a browser has.
func TestEveryAnswerIsConfined(t *testing.T) {
	w := newFixture(t, usual, nil)
	for path, status := range map[string]int{
		"/": 200, "/coins/bitcoin": 200, "/system": 200, "/rates": 200, "/rates/usdc": 200, "/stablecoins": 200, "/market": 200, "/sql": 200, "/docs": 200, "/docs/rest": 200, "/docs/api": 200, "/favicon.ico": 200, "/licences.txt": 200, "/open/x": 410,
		"/assets/" + w.unit.manifest.Pages[pagePrices].Script: 200, "/assets/" + w.unit.manifest.Pages[pageCoin].Style: 200,
	} {
		response, page := w.ask("GET", path, current, w.browser(), "")
		if response.StatusCode != status {
			t.Errorf("%s: got %d, want %d\n%.300s", path, response.StatusCode, status, page)
		}
		h := response.Header
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
			if got := h.Get("Content-Security-Policy"); !strings.Contains(got, want) || strings.Contains(got, "unsafe") {
				t.Errorf("%s: got policy %q, want %s in it", path, got, want)
			}
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": map[bool]string{true: "same-origin", false: "no-referrer"}[path == "/sql"], "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if cached := h.Get("Cache-Control"); strings.HasPrefix(path, "/assets/") != strings.Contains(cached, "immutable") {
			t.Errorf("%s: Cache-Control is %q", path, cached)
		}
	}
	if response, _ := w.ask("GET", "/assets/manifest.json", current, w.browser(), ""); response.StatusCode != http.StatusNotFound {
		t.Errorf("/assets/manifest.json: got %d, want 404", response.StatusCode)
	}
}

// inPage is the JSON that a page hands to its script.
var inPage = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// The first numbers are in the page: as a table for those without scripts, as JSON for the script.
func TestPagesShowNumbersWithoutTheirScript(t *testing.T) {
	w := newFixture(t, usual, nil)
	_, page := w.ask("GET", "/", current, w.browser(), "")
	for _, want := range []string{"<h1>Prices</h1>", "$101,234.56", "-2.50%", "$2.00T", `href="/coins/bitcoin"`, "Simulated", "<title>Prices · Marketlog</title>"} {
		if !strings.Contains(page, want) {
			t.Errorf("/ lacks %q:\n%.2000s", want, page)
		}
	}
	var v pricesView
	if match := inPage.FindStringSubmatch(page); match == nil || json.Unmarshal([]byte(match[1]), &v) != nil || v.Rows[0].Price != 101234.56 || len(v.Rows[0].Line) != 3 || v.Market == nil {
		t.Errorf("got %+v, want the rows as JSON", v)
	}
	_, page = w.ask("GET", "/coins/bitcoin", current, w.browser(), "")
	for _, want := range []string{"Bitcoin", "$101,234.56", "Why this number", "kraken", "no_rate", "10:00:05"} {
		if !strings.Contains(page, want) {
			t.Errorf("/coins/bitcoin lacks %q:\n%.2000s", want, page)
		}
	}
	for path, wants := range map[string][]string{
		"/system":      {"<h1>System</h1>", "kraken", "down", "3.2", "resolve", "0.125"},
		"/rates":       {"<h1>Rates</h1>", `href="/rates/usd-coin"`, "7.26%", "4.50%", "-0.50%", "3.10%", "ETH"},
		"/rates/usdc":  {"<h1>USDC rates</h1>", "Aave V3", "7.26%", "0.0701 apr fraction, compounded daily", "defillama-yields"},
		"/stablecoins": {"<h1>Stablecoins</h1>", "Tether", "$1.0002", "&#43;2.2", "97.5", "-700.0", "off its peg"},
		"/sql":         {"<h1>SQL</h1>", `action="/api/v1/sql"`, "required>-- Bitcoin by the hour\n--\n-- Columns: start.\nSELECT start FROM v_candles_1h</textarea>", `"name":"Later"`, `value="Parquet"`},
		"/sql?query=SELECT%201%3C2%20AS%20%22a%22": {`required>SELECT 1&lt;2 AS &#34;a&#34;</textarea>`},
		"/market": {"<h1>Market</h1>", "$2.00T", "-1.25%", "Solana", "&#43;8.50%", "61 Greed", "bullish", "$120.00B", "3.21%"},
	} {
		_, page = w.ask("GET", path, current, w.browser(), "")
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%.4000s", path, want, page)
			}
		}
		// Prices are not rates.
		if strings.Contains(page, "99999.5") || strings.Contains(page, "0.9987") {
			t.Errorf("%s shows a price among the rates:\n%.4000s", path, page)
		}
	}
	if response, page := newFixture(t, answers{"getCoin": ""}, nil).ask("GET", "/coins/none", current, w.browser(), ""); response.StatusCode == http.StatusOK {
		t.Errorf("/coins/none: got %d\n%.300s", response.StatusCode, page)
	}
}

// An instance has prices within seconds and rows of the market after its first minutes: the page does not wait for them.
func TestPricesAreShownBeforeTheMarketIs(t *testing.T) {
	canned := answers{}
	for id, text := range usual {
		canned[id] = text
	}
	canned["listCoinMarketTable"] = `{"data":[],"meta":{}}`
	w := newFixture(t, canned, nil)
	response, shown := w.ask("GET", "/", current, w.browser(), "")
	bitcoin, ethereum := strings.Index(shown, "$101,234.56"), strings.Index(shown, "$3,000.50")
	if response.StatusCode != http.StatusOK || bitcoin < 0 || ethereum < bitcoin {
		t.Errorf("got %d, want Bitcoin at its price of the list and Ethereum below\n%.3000s", response.StatusCode, shown)
	}
	canned["summarizePrices"] = `{"data":{"prices":{}}}`
	w = newFixture(t, canned, nil)
	if response, _ := w.ask("GET", "/", current, w.browser(), ""); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Refresh") == "" {
		t.Errorf("without any price: got %d, want 503 and another try", response.StatusCode)
	}
}

// hostile is a coin whose texts are meant to be more than texts.
const hostile = `</script></title><img src=x onerror=alert(1)>\u202e{{.}}`

// What others write is text, in the page and in what the page hands to its script.
func TestHostileNamesStayText(t *testing.T) {
	canned := answers{}
	for id, text := range usual {
		canned[id] = strings.ReplaceAll(text, "Bitcoin", hostile)
		for _, name := range []string{`"kraken"`, `"Aave V3"`, `"Tether"`, `"USDC"`, `"Solana"`} {
			canned[id] = strings.ReplaceAll(canned[id], name, `"`+hostile+`"`)
		}
	}
	w := newFixture(t, canned, nil)
	for _, path := range []string{"/", "/coins/bitcoin", "/rates", "/rates/usdc", "/stablecoins", "/market"} {
		_, shown := w.ask("GET", path, current, w.browser(), "")
		if strings.Contains(shown, "<img") || strings.Count(shown, "<script") != 2 || strings.Count(shown, "</script>") != 2 || strings.Count(shown, "</title>") != 1 {
			t.Errorf("%s: a name became more than text:\n%.3000s", path, shown)
		}
		if !strings.Contains(shown, "&lt;img src=x onerror=alert(1)&gt;") {
			t.Errorf("%s: the name is not shown as it is:\n%.3000s", path, shown)
		}
		_, text := w.ask("GET", path, current, []string{"Host: " + w.addr, "Accept: */*"}, "")
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s: %q comes to the terminal:\n%s", path, r, text)
			}
		}
	}
}

// A terminal gets a table that fits it, and where everything else is.
func TestTerminalsGetATable(t *testing.T) {
	w := newFixture(t, usual, nil)
	for path, want := range map[string]string{"/": "101,234.56", "/coins/bitcoin": "101,234.56", "/rates": "MEDIAN STAKE BEST", "/rates?w=40": "LEND BEST", "/rates/usdc": "Aave V3", "/stablecoins": "-700.0", "/market": "bullish", "/sql": "/api/v1/sql?format=CSVWithNames"} {
		response, page := w.ask("GET", path, current, []string{"Host: " + w.addr, "Accept: */*", "User-Agent: curl/8"}, "")
		if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") || len(response.Cookies()) > 0 {
			t.Fatalf("%s: got %d %s with cookies %v\n%s", path, response.StatusCode, response.Header.Get("Content-Type"), response.Cookies(), page)
		}
		if !strings.Contains(page, want) || !strings.Contains(page, "\nSIMULATED: invented prices\n") {
			t.Errorf("%s lacks %s or the warning:\n%s", path, want, page)
		}
		for line := range strings.Lines(page) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s: a line of %d columns: %s", path, n, line)
			}
		}
	}
	_, page := w.ask("GET", "/", current, []string{"Host: " + w.addr, "Accept: */*"}, "")
	for _, path := range []string{"/api/v1", "/openapi.json", "/api/v1/prices/ws", "/mcp", "15/16"} {
		if !strings.Contains(page, path) {
			t.Errorf("/ lacks %s:\n%s", path, page)
		}
	}
	closed := newFixture(t, usual, func(c *Config) { c.Automatic = false })
	response, page := closed.ask("GET", "/", current, []string{"Host: " + closed.addr, "Accept: */*"}, "")
	if response.StatusCode != http.StatusUnauthorized || !strings.Contains(page, "marketlog keys create") || !strings.Contains(page, "/openapi.json") {
		t.Errorf("got %d, want 401 with what to do\n%s", response.StatusCode, page)
	}
	key, _ := closed.key("free")
	if response, page := closed.ask("GET", "/", current, []string{"Host: " + closed.addr, "Accept: */*", "Authorization: Bearer " + key}, ""); response.StatusCode != http.StatusOK || !strings.Contains(page, "101,234.56") {
		t.Errorf("with a key: got %d\n%s", response.StatusCode, page)
	}
}

func TestPricesAreReadable(t *testing.T) {
	for n, want := range map[float64]string{84779.3: "84,779.30", 987.5532: "987.55", 2.64091: "2.6409", 1.00022: "1.0002", 0.070691: "0.07069", 0.0000123456: "0.00001235", 0: "0.0000", 1234567.891: "1,234,567.89", -1500: "-1,500.00"} {
		if got := formatPrice(n); got != want {
			t.Errorf("%v: got %s, want %s", n, got, want)
		}
	}
}

// What the pages load stays small: a phone on a slow network loads it.
func TestBundlesAreSmall(t *testing.T) {
	files, m, err := readAssets()
	if err != nil {
		t.Fatal(err)
	}
	for page, most := range map[string]int{pagePrices: 25 << 10, pageCoin: 95 << 10, pageSystem: 25 << 10, pageRates: 25 << 10, pageStablecoins: 25 << 10, pageMarket: 25 << 10, pageSQL: 25 << 10, pageReference: 25 << 10, pageSignIn: 15 << 10} {
		b := m.Pages[page]
		if b.Script == "" || b.Style == "" || files[m.Icon] == nil {
			t.Fatalf("%s: the manifest names %+v", page, b)
		}
		size := 0
		for _, name := range append([]string{b.Script, b.Style}, b.Imports...) {
			if files[name] == nil {
				t.Fatalf("%s needs %s, which is not there", page, name)
			}
			size += len(files[name].gzipped())
		}
		if size > most {
			t.Errorf("%s loads %d bytes, compressed; want at most %d", page, size, most)
		}
	}
}
