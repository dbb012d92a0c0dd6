package fetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
)

// server answers requests without a network, so that time can be fake.
type server func(n int) *http.Response

func (s server) transport() http.RoundTripper { return &counting{answer: s} }

type counting struct {
	answer server
	n      int
	at     []time.Time
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	c.at = append(c.at, time.Now())
	response := c.answer(c.n)
	if response == nil {
		return nil, errors.New("connection refused")
	}
	response.Request = r
	return response, nil
}

func reply(status int, body string, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func client(t *testing.T, change func(*fetch.Config), transport http.RoundTripper) *fetch.Client {
	t.Helper()
	config := fetch.DefaultConfig(100, time.Second)
	if change != nil {
		change(&config)
	}
	c, err := fetch.New(config, producers.WallClock{}, transport)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPassingFailuresAreTriedAgain(t *testing.T) {
	for name, first := range map[string]*http.Response{
		"network": nil, "502": reply(502, ""), "429": reply(429, "slow down", "Retry-After", "7"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := &counting{answer: func(n int) *http.Response {
					if n == 1 {
						return first
					}
					return reply(200, "fine")
				}}
				result, err := client(t, nil, wire).Do(t.Context(), "", "http://venue/x")
				if err != nil || string(result.Body) != "fine" || result.Attempts != 2 || result.Status != 200 {
					t.Errorf("got %+v, %v, want the second answer", result, err)
				}
				if name == "429" && wire.at[1].Sub(wire.at[0]) < 7*time.Second {
					t.Errorf("asked again after %s, before Retry-After", wire.at[1].Sub(wire.at[0]))
				}
			})
		})
	}
}

func TestLastingFailuresAreNot(t *testing.T) {
	wire := &counting{answer: func(int) *http.Response { return reply(404, `{"message":"NotFound"}`) }}
	result, err := client(t, nil, wire).Do(t.Context(), "GET", "http://venue/x")
	var status *fetch.StatusError
	if !errors.As(err, &status) || status.Status != 404 || wire.n != 1 || result.Status != 404 {
		t.Errorf("got %v after %d requests, want status 404 after 1", err, wire.n)
	}
}

func TestALongBanIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &counting{answer: func(int) *http.Response { return reply(418, "banned", "Retry-After", "7200") }}
		c := client(t, nil, wire)
		_, _ = c.Fetch(t.Context(), "", "http://venue/x")
		began := time.Now()
		if _, err := c.Fetch(t.Context(), "", "http://venue/x"); !errors.Is(err, fetch.ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
		if wire.n != 1 || time.Since(began) > 0 {
			t.Errorf("%d requests and %s of waiting during a ban", wire.n, time.Since(began))
		}
		time.Sleep(2 * time.Hour)
		if _, _ = c.Fetch(t.Context(), "", "http://venue/x"); wire.n != 2 {
			t.Errorf("%d requests after the ban, want 2", wire.n)
		}
	})
}

func TestTheBudgetSpreadsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &counting{answer: func(int) *http.Response { return reply(200, "") }}
		c := client(t, func(c *fetch.Config) { c.Requests, c.Per = 2, 10*time.Second }, wire)
		began := time.Now()
		for range 6 {
			if _, err := c.Fetch(t.Context(), "", "http://venue/x"); err != nil {
				t.Fatal(err)
			}
		}
		// Two at once, then one every five seconds.
		if got, want := time.Since(began), 20*time.Second; got != want {
			t.Errorf("six requests took %s, want %s", got, want)
		}
	})
}

func TestABombIsRefused(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(make([]byte, 10<<20))
	_ = w.Close()
	// A real server: it is the transport that unpacks.
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	c := client(t, func(c *fetch.Config) { c.MaxBody = 1 << 20 }, nil)
	if body, err := c.Fetch(t.Context(), "", address); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %d bytes, %v, want a refusal", len(body), err)
	}
}

func TestAServerThatKeepsFailingIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &counting{answer: func(int) *http.Response { return reply(500, "") }}
		c := client(t, func(c *fetch.Config) { c.Attempts = 1 }, wire)
		var err error
		for range 20 {
			_, err = c.Fetch(t.Context(), "", "http://venue/x")
		}
		if !errors.Is(err, circuitbreaker.ErrOpen) || wire.n >= 20 {
			t.Errorf("got %v after %d requests of 20, want an open breaker", err, wire.n)
		}
	})
}

func TestCancellationEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, func(c *fetch.Config) { c.Requests, c.Per = 1, time.Hour }, server(func(int) *http.Response { return reply(200, "") }).transport())
		_, _ = c.Fetch(t.Context(), "", "http://venue/x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Fetch(ctx, "", "http://venue/x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestConfigNamesEveryFault(t *testing.T) {
	err := fetch.Config{Requests: 1, Per: 1}.Validate()
	for _, field := range []string{"Timeout", "MaxBody", "Attempts"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want %s named", err, field)
		}
	}
}

func TestWhatDidNotChangeIsNotSentAgain(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` && r.Header.Get("If-Modified-Since") == "Fri, 20 Nov 2026 15:00:00 GMT" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Last-Modified", "Fri, 20 Nov 2026 15:00:00 GMT")
		_, _ = w.Write([]byte("rates"))
	})
	c := client(t, nil, nil)
	first, err := c.Get(t.Context(), address, poll.Request{}, poll.Validators{})
	if err != nil || first.Status != 200 || string(first.Body) != "rates" {
		t.Fatalf("first answer = %+v, %v, want a whole one", first, err)
	}
	again, err := c.Get(t.Context(), address, poll.Request{}, first.Validators)
	if err != nil || again.Status != 304 || len(again.Body) != 0 || again.Validators != first.Validators {
		t.Errorf("second answer = %+v, %v, want 304 with the same validators", again, err)
	}
}

// A server that says "not modified" to a question without a condition has nothing that we hold.
func TestNotModifiedWithoutAConditionIsAFailure(t *testing.T) {
	wire := &counting{answer: func(int) *http.Response { return reply(304, "") }}
	_, err := client(t, nil, wire).Get(t.Context(), "http://venue", poll.Request{Path: "/x"}, poll.Validators{})
	var status *fetch.StatusError
	if !errors.As(err, &status) || status.Status != 304 || wire.n != 1 {
		t.Errorf("got %v after %d requests, want status 304 after 1", err, wire.n)
	}
}

// A redirect within the host is followed; one to another host is an error that names both, and is not tried again.
func TestRedirectsStayOnTheHost(t *testing.T) {
	for _, c := range []struct{ name, from, to, wrong string }{
		{name: "a path", from: "https://venue/a", to: "/b"},
		{name: "the host spelled out", from: "https://venue/a", to: "https://VENUE:443/b"},
		{name: "to https", from: "http://venue/a", to: "https://venue/b"},
		{name: "elsewhere", from: "https://venue/a", to: "https://elsewhere/b", wrong: "venue leads to elsewhere"},
		{name: "a name that begins alike", from: "https://venue/a", to: "https://venue.elsewhere/b", wrong: "venue leads to venue.elsewhere"},
		{name: "another port", from: "https://venue/a", to: "https://venue:8443/b", wrong: "venue leads to venue:8443"},
		{name: "an address of the own machine", from: "http://venue/a", to: "http://127.0.0.1:8080/b", wrong: "venue leads to 127.0.0.1:8080"},
		{name: "to http", from: "https://venue/a", to: "http://venue/b", wrong: "https://venue leads to http://venue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			wire := keyed(func(r *http.Request) *http.Response {
				asked = append(asked, r.URL.String()+" "+r.Header.Get("X-Key"))
				if r.URL.Path == "/a" {
					return reply(http.StatusFound, "", "Location", c.to)
				}
				return reply(200, "fine")
			})
			x := client(t, func(c *fetch.Config) { c.KeyHeader, c.Key = "X-Key", "secret" }, wire)
			body, err := x.Fetch(t.Context(), "", c.from)
			switch {
			case c.wrong == "" && (err != nil || string(body) != "fine" || len(asked) != 2 || !strings.HasSuffix(asked[1], "/b secret")):
				t.Errorf("got %q, %v after asking %q, want the answer of the second place, and that it receives the key", body, err, asked)
			case c.wrong != "" && (!errors.Is(err, producers.ErrLedAway) || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("got %q, %v, want an error that says %q", body, err, c.wrong)
			case c.wrong != "" && len(asked) != 1:
				t.Errorf("asked %q, want the first place only, once", asked)
			}
		})
	}
}

func TestRedirectsEnd(t *testing.T) {
	wire := keyed(func(*http.Request) *http.Response { return reply(http.StatusFound, "", "Location", "/a") })
	if _, err := client(t, func(c *fetch.Config) { c.Attempts = 1 }, wire).Fetch(t.Context(), "", "http://venue/a"); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("got %v, want an error that counts the redirects", err)
	}
}

// What a source wants signed is signed again for each attempt, and is not led to another host.
func TestSignedRequestsGoToTheirHostOnly(t *testing.T) {
	var asked []string
	wire := keyed(func(r *http.Request) *http.Response {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, fmt.Sprintf("%s %s %s %s %d", r.URL, r.Header.Get("X-Key"), r.Header.Get("X-Sign"), body, r.ContentLength))
		switch r.URL.Path {
		case "/a":
			return reply(200, "fine")
		default:
			return reply(http.StatusFound, "", "Location", "http://elsewhere/c")
		}
	})
	c := client(t, func(c *fetch.Config) {
		c.KeyHeader, c.Key = "X-Key", "key secret"
		c.Sign = func(secrets []string, r poll.Request, _ time.Time) (poll.Request, error) {
			return poll.Request{Path: r.Path + "&by=" + secrets[1], Body: r.Body + "!", Header: map[string]string{"X-Sign": r.Path}}, nil
		}
	}, wire)
	if answer, err := c.Get(t.Context(), "http://venue", poll.Request{Path: "/a?x=1", Body: "{}"}, poll.Validators{}); err != nil || string(answer.Body) != "fine" {
		t.Fatalf("got %q, %v", answer.Body, err)
	}
	if _, err := c.Fetch(t.Context(), "", "http://venue/b?x=1"); err == nil || !strings.Contains(err.Error(), "venue leads to elsewhere") {
		t.Errorf("led elsewhere: %v", err)
	}
	want := []string{"http://venue/a?x=1&by=secret key /a?x=1 {}! 3", "http://venue/b?x=1&by=secret key /b?x=1 ! 1"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

type keyed func(*http.Request) *http.Response

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	response := k(r)
	response.Request = r
	return response, nil
}
