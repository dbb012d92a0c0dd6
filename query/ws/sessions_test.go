package ws

import (
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// cookieSessions is one session, of whoever sends its cookie.
type cookieSessions struct{}

func (cookieSessions) Session(ctx *fasthttp.RequestCtx, _ time.Time) (query.Grant, bool, error) {
	return query.Grant{Plan: limits.PlanPro, Budget: "session"}, string(ctx.Request.Header.Cookie("session")) == "held", nil
}

// A browser opens sockets for the pages of any site, and sends our cookies along: a session opens a stream for its own pages only,
// also where other origins may connect with a key.
func TestSessionsOpenStreamsForTheirOwnPagesOnly(t *testing.T) {
	w := newFixture(t, func(s *setup) {
		s.sessions = cookieSessions{}
		s.stream.KeyTimeout = 50 * time.Millisecond
		s.stream.Origins = []string{"https://app.example"}
	})
	key := w.key("pro")
	for _, test := range []struct {
		name string
		with dialing
		want websocket.StatusCode // the close code; 0: a stream
	}{
		{"own page", dialing{cookie: "session=held", origin: "http://" + w.base}, 0},
		{"no origin", dialing{cookie: "session=held"}, closeKey},
		{"other site", dialing{cookie: "session=held", origin: "http://evil.example"}, closeOrigin},
		{"other port of this host", dialing{cookie: "session=held", origin: "http://127.0.0.1:1"}, closeOrigin},
		{"origin that may connect with a key", dialing{cookie: "session=held", origin: "https://app.example"}, closeKey},
		{"the same with a key", dialing{cookie: "session=held", key: key, origin: "https://app.example"}, 0},
		{"session that has ended", dialing{cookie: "session=over", origin: "http://" + w.base}, closeKey},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _, err := w.dial(test.with)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == 0 {
				if got := c.frame().Type; got != "welcome" {
					t.Errorf("greeted with %q", got)
				}
				return
			}
			if code := c.closed(); code != test.want {
				t.Errorf("closed with %d, want %d", code, test.want)
			}
		})
	}
}
