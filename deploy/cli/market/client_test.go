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
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	status := http.StatusOK
	if time.Now().Before(s.knows) {
		status = http.StatusUnauthorized
		if s.refused++; s.refused > s.longer {
			status = http.StatusTooManyRequests
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: request}, nil
}

// A server that hears late of the key that a command made is waited for, and is not asked so often that it takes the command for one who
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
