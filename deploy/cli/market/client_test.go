package market

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server answers requests without a network: the key is known to it from an instant on.
type server struct {
	knows           time.Time
	refused, longer int
	// started is when it has what it is asked for.
	started time.Time
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
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
				s := &server{knows: time.Now().Add(late), longer: 19}
				c := &client{base: "http://server", http: http.Client{Transport: s}}
				c.make = func(context.Context) error {
					c.key, c.made = "ck_live_new", time.Now()
					return nil
				}
				if _, err := c.get(t.Context(), "/api/v1/prices/BTC", nil); err != nil {
					t.Errorf("heard of after %v: %v, after %d refusals", late, err, s.refused)
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
		{starts: time.Hour, took: startWithin, waits: 1, fails: true}} {
		synctest.Test(t, func(t *testing.T) {
			began, waits := time.Now(), 0
			s := &server{knows: began, longer: 19, started: began.Add(test.starts)}
			c := &client{base: "http://server", key: "ck_live_known", http: http.Client{Transport: s}, waits: func(why string) {
				if waits++; !strings.Contains(why, "no minute of rates") {
					t.Errorf("it waits for %q", why)
				}
			}}
			_, err := c.get(t.Context(), "/api/v1/rates/USDC", nil)
			if (err != nil) != test.fails || waits != test.waits || time.Since(began) != test.took {
				t.Errorf("starts after %v: got %v after %v, %d times told, want %v and %d", test.starts, err, time.Since(began), waits, test.took, test.waits)
			}
		})
	}
}
