package market

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answering answers requests without a network: the key is known to it from an instant on.
type answering struct {
	knows           time.Time
	refused, longer int
	// started is when it has what it is asked for.
	started         time.Time
	addresses, keys []string // of all requests
}

func (s *answering) RoundTrip(request *http.Request) (*http.Response, error) {
	s.addresses, s.keys = append(s.addresses, request.URL.String()), append(s.keys, request.Header.Get("Authorization"))
	status := http.StatusOK
	if time.Now().Before(s.knows) {
		status = http.StatusUnauthorized
		if s.refused++; s.refused > s.longer {
			status = http.StatusTooManyRequests
		}
	}
	header, body := http.Header{}, "{}"
	if status == http.StatusOK && time.Now().Before(s.started) {
		status, body = http.StatusServiceUnavailable, `{"error":{"code":"STARTING","message":"no minute of rates was folded yet"}}`
		header.Set("Retry-After", "40")
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
}

// A server that learns late of the key that a command made is waited for, and is not asked so often that it takes the command for one who
// guesses keys.
func TestKeyThatIsHeardOfLate(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second, 5 * time.Second, 17 * time.Second} {
		for range 50 { // pauses are drawn
			synctest.Test(t, func(t *testing.T) {
				a := &answering{knows: time.Now().Add(late), longer: 19}
				s := &server{base: "http://server", transport: a}
				s.make = func(context.Context) error {
					s.key, s.made = "ck_live_new", time.Now()
					return nil
				}
				if _, err := connected(t, s, nil).Get(t.Context(), "/api/v1/prices/BTC", nil); err != nil {
					t.Errorf("heard of after %v: %v, after %d refusals", late, err, a.refused)
				}
				if last := a.keys[len(a.keys)-1]; late > 0 && last != "Bearer ck_live_new" {
					t.Errorf("it asks with %q", last)
				}
			})
		}
	}
}

// A server that has started is waited for as long as it asks for, the reason is printed once, and one that never has is not waited for for ever.
func TestServerThatStartsIsWaitedFor(t *testing.T) {
	for _, test := range []struct {
		starts, took time.Duration
		waits        int
		fails        bool
	}{{starts: 0}, {starts: time.Second, took: 40 * time.Second, waits: 1}, {starts: 50 * time.Second, took: 80 * time.Second, waits: 1},
		{starts: time.Hour, took: 80 * time.Second, waits: 1, fails: true}} { // a third wait would end after startWithin
		synctest.Test(t, func(t *testing.T) {
			began, waits := time.Now(), 0
			a := &answering{knows: began, longer: 19, started: began.Add(test.starts)}
			c := connected(t, &server{base: "http://server", key: "ck_live_known", transport: a}, func(why string) {
				if waits++; why != "no minute of rates was folded yet" {
					t.Errorf("it waits for %q", why)
				}
			})
			_, err := c.Get(t.Context(), "/api/v1/rates/USDC", nil)
			// Each wait is a little longer, so that all who wait do not come back at once.
			if took := time.Since(began); (err != nil) != test.fails || waits != test.waits || took < test.took || took > test.took+time.Second {
				t.Errorf("starts after %v: got %v after %v, %d times told, want %v and %d", test.starts, err, took, waits, test.took, test.waits)
			}
		})
	}
}

// connected is a client of a server that was found.
func connected(t *testing.T, s *server, waits func(why string)) *client {
	t.Helper()
	c, err := s.client(waits)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An instance that was restarted is asked where it is now, with the key that it knows; whether there is one is told as it is.
func TestRestartedInstanceIsFound(t *testing.T) {
	a := &answering{}
	s := &server{base: "http://127.0.0.1:8080", key: "first", transport: a}
	gone := errors.New("no instance runs in data: start one with `marketlog run`")
	found := []func() error{
		func() error { s.base, s.key = "http://127.0.0.1:9090", "second"; return nil },
		func() error { return gone },
	}
	s.find = func(context.Context) error {
		now := found[0]
		found = found[1:]
		return now()
	}
	c := connected(t, s, nil)
	for range 2 {
		if _, err := c.Get(t.Context(), "/api/v1/prices/BTC", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Get(t.Context(), "/api/v1/prices/BTC", nil); c.shown(err) != gone {
		t.Errorf("got %v, shown as %v", err, c.shown(err))
	}
	if want := []string{"http://127.0.0.1:8080/api/v1/prices/BTC", "http://127.0.0.1:9090/api/v1/prices/BTC"}; !slices.Equal(a.addresses, want) ||
		!slices.Equal(a.keys, []string{"Bearer first", "Bearer second"}) {
		t.Errorf("asked %q with %q", a.addresses, a.keys)
	}
}

// What the server says is shown as it says it; what it does not, with its address.
func TestErrorsAreShownToPeople(t *testing.T) {
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{http.StatusBadRequest, `{"error":{"code":"VALIDATION_ERROR","message":"no","errors":{"vs":["unknown","odd"],"symbols":["none"]}}}`, "no\nsymbols: none\nvs: unknown; odd"},
		{http.StatusTooManyRequests, `{"error":{"code":"RATE_LIMITED","message":"the limit is used up","retryAfter":7}}`, "the limit is used up"},
		{http.StatusBadGateway, "<html>", "http://server answered 502"},
		{0, "", `asking http://server: Get "http://server/api/v1/system": connection refused`},
	} {
		asked := 0
		c := connected(t, &server{base: "http://server", transport: transport(func(request *http.Request) (*http.Response, error) {
			if asked++; test.status == 0 {
				return nil, errors.New("connection refused")
			}
			return &http.Response{StatusCode: test.status, Body: io.NopCloser(strings.NewReader(test.body)), Request: request}, nil
		})}, nil)
		_, err := c.Get(t.Context(), "/api/v1/system", nil)
		if got := c.shown(err).Error(); got != test.want || asked != 1 {
			t.Errorf("got %q after %d requests, want %q", got, asked, test.want)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }
