package pages

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/keys"
)

const prices = "/api/v1/prices?symbols=bitcoin"

// Where nothing is at stake, a person at this machine signs in by looking, and scripts never see what the browser then holds.
func TestVisitorsOfTheSimulatorAtThisMachineAreSignedIn(t *testing.T) {
	w := newFixture(t, usual, nil)
	for _, host := range []string{w.addr, "localhost:" + w.port, "[::1]:" + w.port} {
		response, _ := w.ask("GET", "/", current, []string{"Host: " + host, page, "Sec-Fetch-Site: none"}, "")
		if response.StatusCode != http.StatusOK || len(response.Cookies()) != 1 {
			t.Fatalf("%s: got %d with cookies %v, want a page with one", host, response.StatusCode, response.Cookies())
		}
		c := response.Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Name != "marketlog_"+w.port || time.Until(c.Expires) > sessionLife {
			t.Errorf("%s: got cookie %+v", host, c)
		}
		asked, _ := w.ask("GET", prices, current, []string{"Host: " + host, "Cookie: " + cookie(response), "Sec-Fetch-Site: same-origin"}, "")
		if asked.StatusCode != http.StatusOK {
			t.Errorf("%s: the page's own question got %d, want 200", host, asked.StatusCode)
		}
	}
}

// A proxy in front makes the whole internet come from this machine; another site's page runs in a browser at this machine.
func TestNobodyElseIsSignedInByLooking(t *testing.T) {
	w := newFixture(t, usual, nil)
	at := "Host: " + w.addr
	for name, c := range map[string]struct {
		protocol string
		headers  []string
	}{
		"name of somebody else":          {current, []string{"Host: evil.example:" + w.port, page, "Sec-Fetch-Site: none"}},
		"name that ends like ours":       {current, []string{"Host: localhost.evil.example:" + w.port, page, "Sec-Fetch-Site: none"}},
		"another port":                   {current, []string{"Host: 127.0.0.1:1", page, "Sec-Fetch-Site: none"}},
		"no port":                        {current, []string{"Host: 127.0.0.1", page, "Sec-Fetch-Site: none"}},
		"address that is no loopback":    {current, []string{"Host: 10.0.0.1:" + w.port, page, "Sec-Fetch-Site: none"}},
		"link of another site":           {current, []string{at, page, "Sec-Fetch-Site: cross-site"}},
		"page of another port":           {current, []string{at, page, "Sec-Fetch-Site: same-site"}},
		"no word of where it comes from": {current, []string{at, page}},
		"proxy that speaks 1.0":          {"HTTP/1.0", []string{at, page, "Sec-Fetch-Site: none"}},
		"nginx as it is by default":      {"HTTP/1.0", []string{at, "Connection: close", page, "Sec-Fetch-Site: none"}},
		"proxy that closes":              {current, []string{at, "Connection: close", page, "Sec-Fetch-Site: none"}},
		"Forwarded":                      {current, []string{at, page, "Sec-Fetch-Site: none", "Forwarded: for=192.0.2.1"}},
		"Via":                            {current, []string{at, page, "Sec-Fetch-Site: none", "Via: 1.1 proxy"}},
		"X-Forwarded-For":                {current, []string{at, page, "Sec-Fetch-Site: none", "X-Forwarded-For: 192.0.2.1"}},
		"X-Forwarded-Host":               {current, []string{at, page, "Sec-Fetch-Site: none", "X-Forwarded-Host: evil.example"}},
		"X-Forwarded-Proto":              {current, []string{at, page, "Sec-Fetch-Site: none", "X-Forwarded-Proto: https"}},
		"X-Real-IP":                      {current, []string{at, page, "Sec-Fetch-Site: none", "X-Real-IP: 192.0.2.1"}},
		"bad key":                        {current, []string{at, page, "Sec-Fetch-Site: none", "Authorization: Bearer ck_live_x"}},
		"text over a proxy":              {current, []string{at, "Accept: */*", "X-Forwarded-For: 192.0.2.1"}},
		"text under another name":        {current, []string{"Host: evil.example:" + w.port, "Accept: */*"}},
		"script of another site":         {current, []string{at, "Accept: */*", "Sec-Fetch-Site: cross-site"}},
		"script that names its origin":   {current, []string{at, "Accept: */*", "Origin: http://evil.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/", "/coins/bitcoin"} {
				response, text := w.ask("GET", path, c.protocol, c.headers, "")
				if response.StatusCode != http.StatusUnauthorized || len(response.Cookies()) > 0 || strings.Contains(text, "101,234.56") || strings.Contains(text, "101234.56") {
					t.Errorf("%s: got %d with cookies %v, want 401 without\n%.300s", path, response.StatusCode, response.Cookies(), text)
				}
			}
		})
	}
	for name, change := range map[string]func(*Config){
		"real prices":                  func(c *Config) { c.Automatic = false },
		"an address that others reach": func(c *Config) { c.Listen = strings.Replace(c.Listen, "127.0.0.1", "0.0.0.0", 1) },
	} {
		w := newFixture(t, usual, change)
		for _, headers := range [][]string{w.browser(), {"Host: " + w.addr, "Accept: */*"}} {
			if response, _ := w.ask("GET", "/", current, headers, ""); response.StatusCode != http.StatusUnauthorized || len(response.Cookies()) > 0 {
				t.Errorf("%s: got %d with cookies %v, want 401 without", name, response.StatusCode, response.Cookies())
			}
		}
	}
}

// signedIn is the cookie of a session by a key.
func (w *fixture) signedIn(key string) string {
	w.t.Helper()
	response, text := w.ask("POST", "/session", current, []string{"Host: " + w.addr, "Origin: http://" + w.addr, "Sec-Fetch-Site: same-origin", "Content-Type: application/json"}, `{"key":"`+key+`"}`)
	if response.StatusCode != http.StatusNoContent || cookie(response) == "" {
		w.t.Fatalf("signing in: got %d %s", response.StatusCode, text)
	}
	return cookie(response)
}

// A key becomes a session for pages of this server only.
func TestKeysAreTakenFromOwnPagesOnly(t *testing.T) {
	w := newFixture(t, usual, func(c *Config) { c.Automatic = false })
	key, _ := w.key("pro")
	at, own, same, kind := "Host: "+w.addr, "Origin: http://"+w.addr, "Sec-Fetch-Site: same-origin", "Content-Type: application/json"
	body := `{"key":"` + key + `"}`
	for name, c := range map[string]struct {
		headers []string
		body    string
		want    int
	}{
		"no origin":              {[]string{at, same, kind}, body, http.StatusForbidden},
		"foreign origin":         {[]string{at, "Origin: http://evil.example", same, kind}, body, http.StatusForbidden},
		"null origin":            {[]string{at, "Origin: null", same, kind}, body, http.StatusForbidden},
		"two origins":            {[]string{at, own, "Origin: http://evil.example", same, kind}, body, http.StatusForbidden},
		"origin of another port": {[]string{at, "Origin: http://127.0.0.1:1", same, kind}, body, http.StatusForbidden},
		"other site":             {[]string{at, own, "Sec-Fetch-Site: cross-site", kind}, body, http.StatusForbidden},
		"name of somebody else":  {[]string{"Host: evil.example", "Origin: http://evil.example", same, kind}, body, http.StatusMisdirectedRequest},
		"form of another page":   {[]string{at, own, same, "Content-Type: text/plain"}, body, http.StatusUnsupportedMediaType},
		"unknown key":            {[]string{at, own, same, kind}, `{"key":"` + keys.Generate() + `"}`, http.StatusUnauthorized},
		"no key":                 {[]string{at, own, same, kind}, `{}`, http.StatusBadRequest},
		"no JSON":                {[]string{at, own, same, kind}, `key=` + key, http.StatusBadRequest},
	} {
		response, text := w.ask("POST", "/session", current, c.headers, c.body)
		if response.StatusCode != c.want || len(response.Cookies()) > 0 {
			t.Errorf("%s: got %d with cookies %v, want %d without\n%s", name, response.StatusCode, response.Cookies(), c.want, text)
		}
		if strings.Contains(text, key) {
			t.Errorf("%s: the answer repeats the key", name)
		}
	}
	w.signedIn(key)
}

// A browser sends a cookie along whoever asks: what another site makes it ask is answered as if it had none.
func TestCookiesCountFromOwnPagesOnly(t *testing.T) {
	w := newFixture(t, usual, func(c *Config) { c.Hosts = []string{"prices.example.com"} })
	key, _ := w.key("pro")
	held := "Cookie: " + w.signedIn(key)
	at := "Host: " + w.addr
	automatic, _ := w.ask("GET", "/", current, w.browser(), "")
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"own page":                   {[]string{at, held, "Sec-Fetch-Site: same-origin"}, http.StatusOK},
		"own page that names itself": {[]string{at, held, "Origin: http://" + w.addr}, http.StatusOK},
		"address bar":                {[]string{at, held, "Sec-Fetch-Site: none"}, http.StatusOK},
		"other site":                 {[]string{at, held, "Sec-Fetch-Site: cross-site"}, http.StatusUnauthorized},
		"other port of this host":    {[]string{at, held, "Sec-Fetch-Site: same-site"}, http.StatusUnauthorized},
		"foreign origin":             {[]string{at, held, "Origin: http://evil.example"}, http.StatusUnauthorized},
		"name of somebody else":      {[]string{"Host: evil.example:" + w.port, held}, http.StatusUnauthorized},
		"no cookie":                  {[]string{at}, http.StatusUnauthorized},
		"one of another port":        {[]string{at, strings.Replace(held, "_"+w.port, "_1", 1)}, http.StatusUnauthorized},
		"our published name":         {[]string{"Host: prices.example.com", strings.Replace(held, "_"+w.port, "_80", 1)}, http.StatusOK},
		"local one, elsewhere":       {[]string{"Host: 10.0.0.1:" + w.port, "Cookie: " + cookie(automatic)}, http.StatusUnauthorized},
		"cut short":                  {[]string{at, held[:len(held)-4]}, http.StatusUnauthorized},
		"endless":                    {[]string{at, held + strings.Repeat("A", 2000)}, http.StatusUnauthorized},
	} {
		if response, text := w.ask("GET", prices, current, c.headers, ""); response.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d\n%s", name, response.StatusCode, c.want, text)
		}
	}
}

// Every bit of a session counts, and nobody without the pepper can make one.
func TestSessionsCannotBeForged(t *testing.T) {
	w := newFixture(t, usual, nil)
	now := time.Now()
	_, id := w.key("pro")
	token := w.unit.seal(session{ofKey, id, now.Add(time.Hour)})
	if s, ok := w.unit.unseal([]byte(token), now); !ok || s.id != id || s.kind != ofKey {
		t.Fatalf("got %+v, %v", s, ok)
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for bit := range 8 {
			raw[i] ^= 1 << bit
			if _, ok := w.unit.unseal([]byte(base64.RawURLEncoding.EncodeToString(raw)), now); ok {
				t.Errorf("bit %d of byte %d may be changed", bit, i)
			}
			raw[i] ^= 1 << bit
		}
	}
	for n := range raw {
		if _, ok := w.unit.unseal([]byte(base64.RawURLEncoding.EncodeToString(raw[:n])), now); ok {
			t.Errorf("the first %d bytes are enough", n)
		}
	}
	if _, ok := w.unit.unseal([]byte(token), now.Add(time.Hour)); ok {
		t.Error("a session outlives its time")
	}
	other := newFixture(t, usual, nil)
	if _, ok := other.unit.unseal([]byte(token), now); ok {
		t.Error("a session counts in another installation")
	}
}

// A session ends with its key, has the key's plan, and leaves the key's requests alone.
func TestSessionsAreWorthWhatTheirKeyIs(t *testing.T) {
	w := newFixture(t, usual, func(c *Config) { c.Automatic = false })
	key, id := w.key("free")
	held := w.signedIn(key)
	at := "Host: " + w.addr
	for range 30 { // all that the plan allows in a minute
		if response, _ := w.ask("GET", prices, current, []string{at, "Cookie: " + held}, ""); response.StatusCode != http.StatusOK || response.Header.Get("X-Ratelimit-Limit") != "30" {
			t.Fatalf("got %d of a limit of %s, want the free plan's 30", response.StatusCode, response.Header.Get("X-Ratelimit-Limit"))
		}
	}
	again := w.signedIn(key)
	if response, _ := w.ask("GET", prices, current, []string{at, "Cookie: " + again}, ""); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %d, want 429: another session of the key is no further budget", response.StatusCode)
	}
	if response, _ := w.ask("GET", prices, current, []string{at, "Authorization: Bearer " + key}, ""); response.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200: the key's own minute is untouched", response.StatusCode)
	}
	w.table.Follow([]byte(id), nil) // revoked
	for _, path := range []string{prices, "/", "/coins/bitcoin"} {
		if response, _ := w.ask("GET", path, current, w.browser("Cookie: "+held), ""); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got %d, want 401 after the key was revoked", path, response.StatusCode)
		}
	}
}

func TestSigningOutEndsTheSessionOfTheBrowser(t *testing.T) {
	w := newFixture(t, usual, nil)
	for origin, want := range map[string]int{"http://evil.example": http.StatusForbidden, "http://" + w.addr: http.StatusNoContent} {
		response, _ := w.ask("DELETE", "/session", current, []string{"Host: " + w.addr, "Origin: " + origin}, "")
		if response.StatusCode != want || want == http.StatusNoContent != (len(response.Cookies()) == 1 && response.Cookies()[0].Value == "") {
			t.Errorf("from %s: got %d with cookies %v, want %d", origin, response.StatusCode, response.Cookies(), want)
		}
	}
}

// A link is worth a session once, for whoever opens it first, and only for some minutes.
func TestLinksOpenOnce(t *testing.T) {
	w := newFixture(t, usual, func(c *Config) { c.Automatic = false })
	link := w.links.New()
	if response, _ := w.ask("GET", link, current, []string{"Host: evil.example", page}, ""); response.StatusCode != http.StatusMisdirectedRequest || len(response.Cookies()) > 0 {
		t.Errorf("under the name of somebody else: got %d with cookies %v", response.StatusCode, response.Cookies())
	}
	response, _ := w.ask("GET", link, current, w.browser(), "")
	held := "Cookie: " + cookie(response)
	if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/" || cookie(response) == "" {
		t.Fatalf("got %d to %q with cookies %v, want a session and the prices", response.StatusCode, response.Header.Get("Location"), response.Cookies())
	}
	if response, text := w.ask("GET", "/", current, w.browser(held), ""); response.StatusCode != http.StatusOK || !strings.Contains(text, "101,234.56") {
		t.Errorf("got %d, want the prices\n%.300s", response.StatusCode, text)
	}
	late := w.links.New()
	for name, path := range map[string]string{"used": link, "invented": openPath + "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "empty": openPath + "%20"} {
		if response, text := w.ask("GET", path, current, w.browser(), ""); response.StatusCode != http.StatusGone || len(response.Cookies()) > 0 {
			t.Errorf("%s: got %d with cookies %v, want 410 without\n%.300s", name, response.StatusCode, response.Cookies(), text)
		}
	}
	w.linkTime.Add(int64(linkLife))
	if response, _ := w.ask("GET", late, current, w.browser(), ""); response.StatusCode != http.StatusGone || len(response.Cookies()) > 0 {
		t.Errorf("expired: got %d with cookies %v, want 410 without", response.StatusCode, response.Cookies())
	}
}

// However many links are asked for, so many wait; the oldest give way.
func TestLinksAreBounded(t *testing.T) {
	now := time.Unix(1, 0)
	links := NewLinks(func() time.Time { return now })
	var made []string
	for range linksMost + 1 {
		made = append(made, strings.TrimPrefix(links.New(), openPath))
	}
	if links.take(made[0]) || !links.take(made[1]) || links.take(made[1]) || !links.take(made[linksMost]) {
		t.Error("want the first to have given way, and the others to work once")
	}
}

// Over TLS, and under names that a proxy publishes over TLS, a cookie never goes over the wire in the clear.
func TestCookiesOfPublishedNamesAreSecure(t *testing.T) {
	w := newFixture(t, usual, func(c *Config) { c.Hosts = []string{"prices.example.com"} })
	for host, want := range map[string]bool{"prices.example.com": true, w.addr: false} {
		response, _ := w.ask("GET", w.links.New(), current, []string{"Host: " + host, page}, "")
		if len(response.Cookies()) != 1 || response.Cookies()[0].Secure != want {
			t.Errorf("%s: got %v, want Secure: %v", host, response.Cookies(), want)
		}
	}
}
