package marketlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script answers one request after the other, and keeps what was asked.
type script struct {
	answers []func(*http.Request) (*http.Response, error)
	asked   []*http.Request
}

func (s *script) RoundTrip(request *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, request)
	if len(s.asked) > len(s.answers) {
		return nil, fmt.Errorf("the script has no %d answers", len(s.asked))
	}
	return s.answers[len(s.asked)-1](request)
}

// client asks a script.
func (s *script) client(t *testing.T, retry Retry) *Client {
	t.Helper()
	client, err := New(Options{URL: "http://server/", Key: "key", Retry: retry, Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func answer(status int, body io.Reader, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		header := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			header.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body)}, nil
	}
}

func text(status int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(request *http.Request) (*http.Response, error) {
		return answer(status, strings.NewReader(body), headers...)(request)
	}
}

func refused(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// A call is made again when the server states it may, and is answered then.
func TestCallsAreMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []func(*http.Request) (*http.Response, error){
			text(429, `{"error":{"code":"RATE_LIMITED","message":"slower"}}`, "Retry-After", "3"), refused, text(503, "<html>"),
			text(200, `{"data":{"symbol":"BTC"},"meta":{}}`, "X-Data-Source", "simulated"),
		}}
		client := s.client(t, Retry{})
		begin := time.Now()
		got, err := client.GetPrice(t.Context(), "BTC", nil)
		if err != nil || got.Data.Symbol != "BTC" || !client.Simulated() {
			t.Errorf("got %+v, %v, simulated %v", got, err, client.Simulated())
		}
		// 3 to 3.25 s as the server states, then 0.6 to 1 s and 1.2 to 2 s.
		if took := time.Since(begin); took < 4800*time.Millisecond || took > 6250*time.Millisecond {
			t.Errorf("it took %s; want the 3 s of Retry-After, and little more for the rest", took)
		}
		for _, request := range s.asked {
			if request.URL.String() != "http://server/api/v1/prices/BTC" || request.Header.Get("Authorization") != "Bearer key" {
				t.Errorf("asked for %s with %v", request.URL, request.Header)
			}
		}
	})
}

// What does not fit is not waited for, and what cannot succeed is not asked for again.
func TestErrorsComeAtOnce(t *testing.T) {
	limited := text(429, `{"error":{"code":"RATE_LIMITED","message":"slower","retryAfter":20}}`)
	for _, test := range []struct {
		name    string
		answer  func(*http.Request) (*http.Response, error)
		retry   Retry
		timeout time.Duration
	}{
		{"longer than may be waited", limited, Retry{Longest: 10 * time.Second}, time.Hour},
		{"behind the caller's deadline", limited, Retry{}, 10 * time.Second},
		{"a single attempt", limited, Retry{Attempts: 1}, time.Hour},
		{"no success later", text(404, `{"error":{"code":"NOT_FOUND","message":"no such coin"}}`), Retry{}, time.Hour},
		{"another address", text(302, "", "Location", "http://elsewhere/"), Retry{}, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: []func(*http.Request) (*http.Response, error){test.answer}}
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				begin := time.Now()
				_, err := s.client(t, test.retry).GetUsage(ctx)
				if _, is := errors.AsType[*APIError](err); !is || len(s.asked) != 1 || time.Since(begin) != 0 {
					t.Errorf("got %v after %d attempts and %s", err, len(s.asked), time.Since(begin))
				}
			})
		})
	}
}

// Whoever wants to is asked before each wait, with what is waited for, and may give up.
func TestCallersAreAskedBeforeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starting := text(503, `{"error":{"code":"STARTING","message":"not yet"}}`, "Retry-After", "40")
		s := &script{answers: []func(*http.Request) (*http.Response, error){starting, refused, text(429, "{}"), text(200, "{}"), starting, starting, starting}}
		var told []string
		var waits time.Duration
		retry := Retry{Longest: 90 * time.Second, Again: func(err error, wait time.Duration) bool {
			told = append(told, fmt.Sprintf("%T", err))
			waits += wait
			return len(told) < 5
		}}
		client := s.client(t, retry)
		begin := time.Now()
		if _, err := client.GetUsage(t.Context()); err != nil || waits != time.Since(begin) {
			t.Errorf("got %v after %s, told of %s", err, time.Since(begin), waits)
		}
		if _, err := client.GetUsage(t.Context()); !is[*Unavailable](err) || len(s.asked) != 6 {
			t.Errorf("got %v after %d attempts", err, len(s.asked))
		}
		const want = "[*marketlog.Unavailable *marketlog.ConnectionFailed *marketlog.RateLimited *marketlog.Unavailable *marketlog.Unavailable]"
		if fmt.Sprint(told) != want {
			t.Errorf("told of %v, want %s", told, want)
		}
	})
}

// The answer to any path comes as the server wrote it, and its refusals are errors of the same types.
func TestAnyPathIsAsked(t *testing.T) {
	const body = `{"new":  1.50}`
	s := &script{answers: []func(*http.Request) (*http.Response, error){text(200, body, "X-Data-Source", "simulated"), text(404, "{}"), text(200, body)}}
	client := s.client(t, Retry{})
	got, err := client.Get(t.Context(), "/api/v9/news/"+url.PathEscape("a/b"), url.Values{"since": {"1 h"}})
	if err != nil || string(got) != body || !client.Simulated() {
		t.Errorf("got %s, %v, simulated %v", got, err, client.Simulated())
	}
	if _, err := client.Get(t.Context(), "/none", nil); !is[*NotFound](err) {
		t.Errorf("got %v", err)
	}
	var addresses []string
	for _, request := range s.asked {
		addresses = append(addresses, request.Method+" "+request.URL.String()+" "+request.Header.Get("Authorization"))
	}
	if want := "[GET http://server/api/v9/news/a%2Fb?since=1+h Bearer key GET http://server/none Bearer key]"; fmt.Sprint(addresses) != want {
		t.Errorf("asked %v, want %s", addresses, want)
	}
	if _, err := client.Get(t.Context(), "@elsewhere/", nil); err == nil || len(s.asked) != 2 {
		t.Errorf("got %v of what is no path, after %d requests", err, len(s.asked))
	}
}

func TestConnectionsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []func(*http.Request) (*http.Response, error){refused, refused, refused, func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done() // a server that answers nothing
			return nil, request.Context().Err()
		}}}
		_, err := s.client(t, Retry{Attempts: 4}).GetUsage(t.Context())
		failed, is := errors.AsType[*ConnectionFailed](err)
		if !is || failed.Attempts != 4 || failed.URL != "http://server" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %#v, want the deadline of the fourth attempt", err)
		}
	})
}

// Each status is an error of its own type, and all are an APIError with what the server said.
func TestErrorsHaveTypes(t *testing.T) {
	const body = `{"error":{"code":"CODE","message":"no","requestId":"r1","availableFrom":"2026-01-02T03:04:05Z","errors":{"vs":["is wrong","is odd"],"z":["too"]}}}`
	for status, is := range map[int]func(error) bool{
		400: is[*InvalidRequest], 401: is[*NotAuthenticated], 402: is[*PlanRequired], 403: is[*Forbidden], 404: is[*NotFound], 410: is[*AgedOut],
		429: is[*RateLimited], 500: is[*ServerError], 503: func(err error) bool { return is[*Unavailable](err) && is[*ServerError](err) }, 418: is[*APIError],
	} {
		s := &script{answers: []func(*http.Request) (*http.Response, error){text(status, body)}}
		_, err := s.client(t, Retry{Attempts: 1}).GetUsage(t.Context())
		e, ok := errors.AsType[*APIError](err)
		if !is(err) || !ok || e.Status != status || e.Code != "CODE" || e.Field != "vs" || e.Reason != "is wrong; is odd" || e.RequestID != "r1" {
			t.Errorf("%d is %#v, %+v", status, err, e)
		}
		if want := "CODE: no; vs is wrong; is odd; z too"; !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%d reads %q, want %q", status, err, want)
		}
		if remedy := map[int]string{401: "give Options a Key, or set MARKETLOG_API_KEY", 410: "ask for 2026-01-02T03:04:05Z or later"}[status]; e.Remedy != remedy {
			t.Errorf("the remedy of %d is %q, want %q", status, e.Remedy, remedy)
		}
	}
	elsewhere := &script{answers: []func(*http.Request) (*http.Response, error){text(301, "", "Location", "https://server/")}}
	if _, err := elsewhere.client(t, Retry{}).GetUsage(t.Context()); err == nil || !strings.Contains(err.Error(), "the server answered 301 and leads to https://server/: ") {
		t.Errorf("got %v", err)
	}
	s := &script{answers: []func(*http.Request) (*http.Response, error){text(400, `{"error":{"code":"SQL_ERROR","message":"no","line":2,"column":3,"hint":"try that"}}`)}}
	_, err := s.client(t, Retry{}).SQL(t.Context(), "SELECT", nil)
	if e, ok := errors.AsType[*SQLError](err); !ok || e.Line != 2 || e.Column != 3 || e.Remedy != "try that" || !is[*InvalidRequest](err) || !is[*APIError](err) {
		t.Errorf("got %#v", err)
	}
}

func is[Kind error](err error) bool {
	_, is := errors.AsType[Kind](err)
	return is
}

// What is asked is sent as it is meant: names cannot lead elsewhere, and what is zero is left out, unless it was asked for.
func TestCallsAreSentAsMeant(t *testing.T) {
	at := time.Date(2026, 3, 1, 11, 0, 0, 5e6, time.FixedZone("", 3600))
	for _, test := range []struct {
		make func(*Client) error
		want string
	}{
		{func(c *Client) error { _, err := c.ExplainNumber(t.Context(), "market/a b", nil); return err }, "GET /api/v1/explain/market%2Fa%20b "},
		{func(c *Client) error {
			_, err := c.GetPrice(t.Context(), "BTC", &GetPriceOptions{AsOf: at, Explain: true})
			return err
		},
			"GET /api/v1/prices/BTC?asOf=2026-03-01T10%3A00%3A00.005Z&explain=true "},
		{func(c *Client) error { _, err := c.ListPrices(t.Context(), []string{"BTC", "id:x,y"}, nil); return err }, "GET /api/v1/prices?symbols=BTC%2Cid%3Ax%2Cy "},
		{func(c *Client) error {
			_, err := c.GetMovers(t.Context(), &GetMoversOptions{MinVolume: new(int64)})
			return err
		},
			"GET /api/v1/global-stats/movers?min_volume=0 "},
		{func(c *Client) error { _, err := c.GetLogRecord(t.Context(), "t", 0, 7); return err }, "GET /api/v1/log/t/0/7 "},
		{func(c *Client) error {
			_, err := c.ResolveSymbol(t.Context(), "X", &ResolveSymbolOptions{Context: map[string]any{"name": "x"}, Price: 1.5})
			return err
		},
			"GET /api/v1/symbols/resolve?context=%7B%22name%22%3A%22x%22%7D&price=1.5&symbol=X "},
		{func(c *Client) error {
			_, err := c.ResolveSymbols(t.Context(), []string{"X"}, &ResolveSymbolsOptions{Source: "kraken"})
			return err
		},
			`POST /api/v1/symbols/resolve/batch {"source":"kraken","symbols":["X"]}`},
		{func(c *Client) error {
			_, err := c.SQL(t.Context(), "SELECT 1", map[string]any{"n": 2, "b": true, "at": at})
			return err
		},
			`POST /api/v1/sql {"parameters":{"at":"2026-03-01 10:00:00.005","b":"true","n":"2"},"query":"SELECT 1"}`},
		{func(c *Client) error { _, err := c.GetPrice(t.Context(), "..", nil); return err }, `symbol: it is "..", which names nothing`},
		{func(c *Client) error {
			_, err := c.SQLFile(t.Context(), "SELECT 1", map[string]any{"n": []int{1}}, Parquet)
			return err
		},
			"the parameter n is a []int; give a text, a number, a boolean or a time"},
	} {
		s := &script{answers: []func(*http.Request) (*http.Response, error){text(200, "{}")}}
		err := test.make(s.client(t, Retry{}))
		got := fmt.Sprint(err)
		if len(s.asked) > 0 {
			body, _ := io.ReadAll(s.asked[0].Body)
			got = s.asked[0].Method + " " + s.asked[0].URL.RequestURI() + " " + string(body)
		}
		if got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// Pages are asked for as they are needed, from where the caller states, and can be gone through again.
func TestPagesAreAskedAsNeeded(t *testing.T) {
	page := text(200, `{"data":{"mappings":[{"symbol":"A"},{"symbol":"B"}]},"meta":{}}`)
	s := &script{answers: []func(*http.Request) (*http.Response, error){page, page, text(200, `{"data":{"mappings":[{"symbol":"C"}]},"meta":{}}`), page, refused}}
	client := s.client(t, Retry{Attempts: 1})
	mappings := client.IterSymbolMappings(t.Context(), &ListSymbolMappingsOptions{Limit: 2, Offset: 10})
	rows := 0
	for _, err := range mappings {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	for range mappings {
		break
	}
	var queries []string
	for _, request := range s.asked {
		queries = append(queries, request.URL.RawQuery)
	}
	if want := "[limit=2&offset=10 limit=2&offset=12 limit=2&offset=14 limit=2&offset=10]"; rows != 5 || fmt.Sprint(queries) != want {
		t.Errorf("%d rows of %v, want 5 of %s", rows, queries, want)
	}
	var failed error
	for _, err := range client.IterCoins(t.Context(), nil) {
		failed = err
	}
	if !is[*ConnectionFailed](failed) || s.asked[4].URL.RawQuery != "limit=500&page=1" {
		t.Errorf("got %v of %s", failed, s.asked[4].URL)
	}
}

func TestClientsAreMadeOfVariables(t *testing.T) {
	t.Setenv("MARKETLOG_URL", "https://server")
	t.Setenv("MARKETLOG_API_KEY", "other")
	if client, err := New(Options{}); err != nil || client.base != "https://server" || client.key != "other" {
		t.Errorf("got %+v, %v", client, err)
	}
	t.Setenv("MARKETLOG_URL", "server:8080")
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), `"server:8080"; it must begin with http`) {
		t.Errorf("got %v", err)
	}
}
