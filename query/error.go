package query

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/stream"
)

// Codes of errors, as clients see them.
const (
	CodeValidation       = "VALIDATION_ERROR"
	CodeInvalidKey       = "INVALID_API_KEY"
	CodePlanRequired     = "PLAN_REQUIRED"
	CodeForbidden        = "FORBIDDEN"
	CodeNotFound         = "NOT_FOUND"
	CodeMethodNotAllowed = "METHOD_NOT_ALLOWED"
	CodeTimeout          = "REQUEST_TIMEOUT"
	CodeTooLarge         = "PAYLOAD_TOO_LARGE"
	CodeMediaType        = "UNSUPPORTED_MEDIA_TYPE"
	CodeUpgrade          = "UPGRADE_REQUIRED"
	CodeRateLimit        = "RATE_LIMIT_EXCEEDED"
	CodeHeadersTooLarge  = "HEADERS_TOO_LARGE"
	CodeInternal         = "INTERNAL"
	CodeUnavailable      = "UNAVAILABLE"
	CodeStale            = "STALE_DATA"
	CodeOverloaded       = "OVERLOADED"
	CodeStarting         = "STARTING"
	// CodeAgedOut means that the past is kept, but not back to what was asked for, or not in its grain.
	CodeAgedOut = "AGED_OUT"
	// CodeNotSupported means that what was asked for is a question that the service will answer, but does not yet.
	CodeNotSupported = "NOT_SUPPORTED"
)

// Error is the one kind of error that the HTTP edge returns unchanged; any other becomes a 500
// without details.
type Error struct {
	Status  int
	Code    string
	Message string
	// Fields holds what is wrong per parameter.
	Fields map[string][]string
	// RetryAfter is in whole seconds, 0 for none.
	RetryAfter int
	// Scope names the limit that refused: minute, month or charts.
	Scope string
	// Candidates are what could have been meant by what was not found; nil for none.
	Candidates any
	// AvailableFrom is the earliest instant, Unix nanoseconds, from which on what has aged out is still kept; 0 for none.
	AvailableFrom int64
	// Position is where in a statement the fault is, in characters from 1, Line and Column the same by lines; 0 where that is not
	// known.
	Position, Line, Column int
	// Hint says what to do instead.
	Hint string
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// NotFound means that something named in the path does not exist.
func NotFound(format string, args ...any) *Error {
	return &Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: fmt.Sprintf(format, args...)}
}

// AgedOut means that what was asked for as of an instant is not kept so far back, or not in the grain asked for; from is since when
// it is, the zero time where that is not known.
func AgedOut(from time.Time, format string, args ...any) *Error {
	e := &Error{Status: http.StatusGone, Code: CodeAgedOut, Message: fmt.Sprintf(format, args...)}
	if !from.IsZero() {
		// Rounded up: answers have milliseconds, and as of the instant that this one names there is an answer.
		e.AvailableFrom = from.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).UnixNano()
	}
	return e
}

// NotSupported means that a parameter does not work yet with what was asked for.
func NotSupported(param, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	return &Error{Status: http.StatusBadRequest, Code: CodeNotSupported, Message: message, Fields: map[string][]string{param: {message}}}
}

// Invalid means that one parameter is wrong.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: CodeValidation, Message: "the request has invalid parameters",
		Fields: map[string][]string{param: {fmt.Sprintf(format, args...)}}}
}

// Starting means that an answer cannot be given yet.
func Starting(why string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: CodeStarting, Message: "starting: " + why, RetryAfter: 1}
}

// ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	Error ErrorDetail `json:"error" doc:"What went wrong"`
}

// ErrorDetail is the body of an error.
type ErrorDetail struct {
	Code          string              `json:"code" doc:"Stable machine-readable code" example:"VALIDATION_ERROR"`
	Message       string              `json:"message" doc:"Human-readable"`
	RequestID     string              `json:"requestId" doc:"Id of this request in the service's log"`
	Errors        map[string][]string `json:"errors,omitempty" doc:"Faults, by parameter"`
	RetryAfter    int                 `json:"retryAfter,omitempty" doc:"Seconds until a request can be accepted"`
	Scope         string              `json:"scope,omitempty" enum:"minute,month,charts" doc:"The limit that was exceeded"`
	Candidates    any                 `json:"candidates,omitempty" doc:"Suggestions for what was not found, likeliest first"`
	AvailableFrom string              `json:"availableFrom,omitempty" format:"date-time" doc:"Since when what has aged out is kept"`
	Position      int                 `json:"position,omitempty" doc:"Place of the fault in a statement, in characters from 1"`
	Line          int                 `json:"line,omitempty" doc:"Line of that place, from 1"`
	Column        int                 `json:"column,omitempty" doc:"Character of that line, from 1"`
	Hint          string              `json:"hint,omitempty" doc:"What to do instead"`
}

// statusCodes are the codes of errors that the HTTP library reports by status alone.
var statusCodes = map[int]string{
	http.StatusBadRequest:                  CodeValidation,
	http.StatusNotFound:                    CodeNotFound,
	http.StatusMethodNotAllowed:            CodeMethodNotAllowed,
	http.StatusRequestTimeout:              CodeTimeout,
	http.StatusRequestEntityTooLarge:       CodeTooLarge,
	http.StatusUnsupportedMediaType:        CodeMediaType,
	http.StatusRequestHeaderFieldsTooLarge: CodeHeadersTooLarge,
	http.StatusServiceUnavailable:          CodeOverloaded,
}

// awayRetry is after how many seconds a store that is away is tried again.
const awayRetry = 5

// asError turns any error into one that may be shown, and reports whether its cause must be logged.
func asError(err error) (shown *Error, internal bool) {
	if errors.As(err, &shown) {
		return shown, false
	}
	var routed *fiber.Error
	if errors.As(err, &routed) {
		if code, ok := statusCodes[routed.Code]; ok {
			return &Error{Status: routed.Code, Code: code, Message: http.StatusText(routed.Code)}, false
		}
	}
	if errors.Is(err, stream.ErrUnavailable) {
		return &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, Message: "a store that holds the answer is away or does not answer; try again", RetryAfter: awayRetry}, true
	}
	return &Error{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "internal error"}, true
}

// fail answers with an error and returns its status.
func (s *Server) fail(ctx *fasthttp.RequestCtx, err error) int {
	shown, id := s.Fault(ctx, err)
	ctx.Response.SetStatusCode(shown.Status)
	ctx.Response.SetBodyRaw(shown.body(id))
	return shown.Status
}

// headerRequestID names each request in its answer, and one that failed in the log.
const headerRequestID = "X-Request-Id"

// Fault turns any error into one that may be shown, writes its headers to ctx, and logs
// what the response must not contain. The id names the request in the log. Status and body are the caller's.
func (s *Server) Fault(ctx *fasthttp.RequestCtx, err error) (shown *Error, id string) {
	shown, internal := asError(err)
	if id = string(ctx.Response.Header.Peek(headerRequestID)); id == "" { // refused before it was handled
		id = rand.Text()
	}
	if internal {
		s.deps.Log.Error("request failed", "request_id", id, "method", string(ctx.Method()), "path", string(ctx.Path()), "error", err)
	}
	h := &ctx.Response.Header
	h.SetContentType(contentJSON)
	h.Set(fiber.HeaderCacheControl, "no-store")
	h.Set(headerRequestID, id)
	if shown.RetryAfter > 0 {
		h.Set(fiber.HeaderRetryAfter, strconv.Itoa(shown.RetryAfter))
	}
	if shown.Status == http.StatusUnauthorized {
		h.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="marketlog"`)
	}
	return shown, id
}

// body is the answer's, to the request of an id.
func (e *Error) body(id string) []byte {
	body, err := json.Marshal(ErrorBody{ErrorDetail{
		Code: e.Code, Message: e.Message, RequestID: id, Errors: e.Fields, RetryAfter: e.RetryAfter, Scope: e.Scope, Candidates: e.Candidates,
		AvailableFrom: FormatTime(e.AvailableFrom), Position: e.Position, Line: e.Line, Column: e.Column, Hint: e.Hint,
	}})
	if err != nil {
		// Strings, maps of strings, ints and what endpoints list always encode.
		panic(err)
	}
	return body
}

const (
	// longestPath bounds the paths that are compared with those of operations, in bytes.
	longestPath = 200
	apiPrefix   = "/api/v1"
)

// noRoute is the answer to a path that nothing is served at, with the operation that it may mean.
func (s *Server) noRoute(path string) *Error {
	e := &Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: "nothing is served at this path: /docs/api and /openapi.json have all operations"}
	if near := s.nearestPath(path); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	return e
}

// nearestPath is the path of the operation that a path differs least from, with its values of parameters and with or without the prefix of all; empty where a word of each
// differs by more than a third.
func (s *Server) nearestPath(path string) string {
	if len(path) > longestPath {
		return ""
	}
	path = strings.ToValidUTF8(strings.TrimSuffix(path, "/"), "\uFFFD")
	if !strings.HasPrefix(path, apiPrefix+"/") {
		path = apiPrefix + path
	}
	asked := strings.Split(path, "/")
	best, least := "", longestPath
	for _, operation := range s.paths {
		known := strings.Split(operation, "/")
		if len(known) != len(asked) {
			continue
		}
		total := 0
		for i, word := range known {
			if strings.HasPrefix(word, "{") {
				known[i] = asked[i]
				continue
			}
			apart := levenshtein.ComputeDistance(strings.ToLower(asked[i]), word)
			if apart > max(len(word)/3, 1) {
				total = longestPath
				break
			}
			total += apart
		}
		if total < least {
			best, least = strings.Join(known, "/"), total
		}
	}
	return best
}
