package query

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"
)

// A handler of a server that does not run knows of a request what it is told of one that it accepts itself.
func TestDocumentsAreAnsweredForAnotherServer(t *testing.T) {
	s := startServer(t, func(_ *Config, deps *Deps) {
		deps.Mount = func(router fiber.Router, _ *Server) {
			router.Get("/told", func(c *fiber.Ctx) error {
				ctx := c.Context()
				c.Set("X-Told", c.Get("Accept")+" "+c.Query("w"))
				scheme := "http"
				if ctx.IsTLS() {
					scheme = "https"
				}
				return c.SendString(scheme + "://" + string(ctx.Host()) + " " + ctx.RemoteIP().String())
			})
		}
	})
	handler := s.Documents()
	for scheme, state := range map[string]*tls.ConnectionState{"http": nil, "https": {}} {
		request := httptest.NewRequest(http.MethodGet, "/told?w=90", http.NoBody)
		request.Host, request.RemoteAddr, request.TLS = "example.com:8080", "192.0.2.7:5000", state
		request.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		if got, want := w.Body.String(), scheme+"://example.com:8080 192.0.2.7"; got != want || w.Header().Get("X-Told") != "text/html 90" {
			t.Errorf("got %q and %v, want %q", got, w.Header(), want)
		}
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	answer, err := http.Head(server.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || answer.ContentLength <= 0 || len(body) > 0 {
		t.Errorf("HEAD is answered %d with %d bytes of %d, %v", answer.StatusCode, len(body), answer.ContentLength, err)
	}
}
