package query

import (
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"
)

// healthy is the body of /healthz.
const healthy = `{"status":"ok"}`

// notReady is the answer of /readyz while something is missing, by the part that lacks it.
func notReady(missing map[string][]string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: CodeStarting, Fields: missing, RetryAfter: 1,
		Message: "not ready: " + strings.Join(slices.Sorted(maps.Keys(missing)), ", ")}
}

// StartingHandler answers in the place of a server that is not there yet, or no more: /healthz as the server does,
// and everything else with STARTING and what is missing.
func StartingHandler(missing func() map[string][]string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(fiber.HeaderContentType, contentJSON)
		w.Header().Set(fiber.HeaderCacheControl, "no-store")
		_, _ = w.Write([]byte(healthy))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		parts := missing()
		if len(parts) == 0 {
			parts = map[string][]string{"server": {"starting"}}
		}
		shown, id, h := notReady(parts), rand.Text(), w.Header()
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get(fiber.HeaderAccept), "text/html") {
			startingPage(w, shown)
			return
		}
		h.Set(fiber.HeaderContentType, contentJSON)
		h.Set(fiber.HeaderCacheControl, "no-store")
		h.Set("X-Request-Id", id)
		h.Set(fiber.HeaderRetryAfter, strconv.Itoa(shown.RetryAfter))
		w.WriteHeader(shown.Status)
		_, _ = w.Write(shown.body(id))
	})
	return mux
}

// startingPage is what a browser gets meanwhile; it asks again by itself.
func startingPage(w http.ResponseWriter, shown *Error) {
	h := w.Header()
	h.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	h.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	h.Set(fiber.HeaderCacheControl, "no-store")
	h.Set("Refresh", "1")
	w.WriteHeader(shown.Status)
	fmt.Fprint(w, "<!doctype html><html lang=\"en\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><title>Starting · Marketlog</title><h1>Starting</h1><ul>")
	for _, part := range slices.Sorted(maps.Keys(shown.Fields)) {
		fmt.Fprintf(w, "<li>%s: %s</li>", html.EscapeString(part), html.EscapeString(strings.Join(shown.Fields[part], ", ")))
	}
	fmt.Fprint(w, "</ul>")
}

// After lets endpoints answer 503 STARTING as long as one of the inputs that they read says what it waits for. A process
// that starts reads the ends of its topics, the oldest records first: answers from among them would be older than those that
// were given before the start.
func After(endpoints []Endpoint, waiting ...func() string) []Endpoint {
	for i := range endpoints {
		handle := endpoints[i].Handle
		endpoints[i].Handle = func(ctx context.Context, r *Request) (Answer, error) {
			for _, wait := range waiting {
				if why := wait(); why != "" {
					return Answer{}, Starting(why)
				}
			}
			return handle(ctx, r)
		}
	}
	return endpoints
}

// Settled is a wait for what is made of topics: until they were read, as waiting reports, and then until what was read is
// visible to every reader. Settle is called at least once, and may be called again.
func Settled(settle func(), waiting ...func() string) func() string {
	var settled atomic.Bool
	return func() string {
		if settled.Load() {
			return ""
		}
		for _, wait := range waiting {
			if why := wait(); why != "" {
				return why
			}
		}
		settle()
		settled.Store(true)
		return ""
	}
}
