package marketlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query/clients/go/api"
)

// ConnectionFailed is that the server could not be reached, or the connection broke, until the attempts were used up.
type ConnectionFailed struct {
	URL      string
	Attempts int
	Err      error // the last one's
}

func (e *ConnectionFailed) Error() string {
	if e.Attempts == 0 {
		return fmt.Sprintf("the stream of %s: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("%s could not be asked, %d times: %v", e.URL, e.Attempts, e.Err)
}

// Unwrap is the last attempt's error.
func (e *ConnectionFailed) Unwrap() error { return e.Err }

// GapError is that the stream cannot send what came after Since and up to Until. A stream begun with Cursor goes on after it.
type GapError struct {
	// Reason is too_old or other_log.
	Reason string
	// Since is zero where a cursor states it.
	Since, Until time.Time
	Cursor       string
}

func (e *GapError) Error() string {
	since := "the cursor"
	if !e.Since.IsZero() {
		since = e.Since.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("nothing is sent of what came after %s and up to %s (%s); go on with a stream that has the error's Cursor, or set OnGap",
		since, e.Until.Format(time.RFC3339Nano), e.Reason)
}

// APIError is an answer that is not a success. All errors below are one.
type APIError struct {
	// Status is that of HTTP.
	Status int
	// Code is stable, such as NOT_FOUND; empty where a proxy answered.
	Code, Message string
	// Field is the parameter that is wrong and Reason what is wrong with it, where the answer names one; else Reason is the message.
	Field, Reason string
	// Remedy is what to do, where that is known.
	Remedy string
	// RequestID is that in the server's log.
	RequestID string
	// RetryAfter is how long until a request can be accepted, where the server reports it.
	RetryAfter time.Duration
	// Details is all that the server said; its Errors has all parameters that are wrong.
	Details api.ErrorDetail
}

func (e *APIError) Error() string {
	var text strings.Builder
	text.WriteString(cmp.Or(e.Code, strconv.Itoa(e.Status)) + ": " + e.Message)
	for _, field := range slices.Sorted(maps.Keys(e.Details.Errors)) {
		text.WriteString("; " + field + " " + strings.Join(e.Details.Errors[field], "; "))
	}
	if e.Remedy != "" {
		text.WriteString(" (" + e.Remedy + ")")
	}
	return text.String()
}

// InvalidRequest is 400: a parameter is wrong; Details.Errors has all that are.
type InvalidRequest struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *InvalidRequest) Unwrap() error { return e.APIError }

// SQLError is 400: a statement is wrong, at Line and Column (from 1, 0 where that is not known), or needs more than it may (code SQL_LIMIT). It is
// an InvalidRequest.
type SQLError struct {
	*InvalidRequest
	// Position is where the fault begins, in characters from 1.
	Position, Line, Column int64
}

// Unwrap is the same error, as an InvalidRequest.
func (e *SQLError) Unwrap() error { return e.InvalidRequest }

// NotAuthenticated is 401: the key is missing, invalid or revoked.
type NotAuthenticated struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *NotAuthenticated) Unwrap() error { return e.APIError }

// PlanRequired is 402: the plan of the key does not include this.
type PlanRequired struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *PlanRequired) Unwrap() error { return e.APIError }

// Forbidden is 403: this is allowed to nobody who asks this way.
type Forbidden struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *Forbidden) Unwrap() error { return e.APIError }

// NotFound is 404: there is no such coin, provider or path. Details.Candidates may be meant.
type NotFound struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *NotFound) Unwrap() error { return e.APIError }

// AgedOut is 410: what was known at that time is kept no more; Details.AvailableFrom is since when it is.
type AgedOut struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *AgedOut) Unwrap() error { return e.APIError }

// RateLimited is 429: the limit of the plan is used up.
type RateLimited struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *RateLimited) Unwrap() error { return e.APIError }

// ServerError is 500 and above: the fault is the server's, which finds it by RequestID in its log.
type ServerError struct{ *APIError }

// Unwrap is the same error, as an APIError.
func (e *ServerError) Unwrap() error { return e.APIError }

// Unavailable is 503: the server starts, or is overloaded. It is a ServerError.
type Unavailable struct{ *ServerError }

// Unwrap is the same error, as a ServerError.
func (e *Unavailable) Unwrap() error { return e.ServerError }

// longestRefusal bounds what is read of a refusal, in bytes.
const longestRefusal = 1 << 20

// refusal is the error that an answer is.
func refusal(response *http.Response) error {
	var body struct {
		Error api.ErrorDetail `json:"error"`
	}
	// What is not JSON comes from a proxy, and what breaks off cannot be read: the status counts.
	if text, err := io.ReadAll(io.LimitReader(response.Body, longestRefusal)); err == nil {
		if err := json.Unmarshal(text, &body); err != nil {
			body.Error = api.ErrorDetail{}
		}
	}
	if elsewhere := response.Header.Get("Location"); elsewhere != "" && body.Error.Message == "" {
		body.Error.Message = fmt.Sprintf("the server answered %d and leads to %s: give the address that it is at", response.StatusCode, elsewhere)
	}
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	if err != nil && body.Error.RetryAfter != nil {
		seconds = uint64(max(0, *body.Error.RetryAfter))
	}
	return errorOf(response.StatusCode, body.Error, time.Duration(seconds)*time.Second)
}

// errorOf is the error of a status, with what the server said.
func errorOf(status int, details api.ErrorDetail, retryAfter time.Duration) error {
	e := &APIError{Status: status, Code: details.Code, Message: details.Message, RequestID: details.RequestID, RetryAfter: retryAfter, Details: details}
	if e.Message == "" {
		e.Message = fmt.Sprintf("the server answered %d", status)
	}
	e.Reason = e.Message
	if fields := slices.Sorted(maps.Keys(details.Errors)); len(fields) > 0 {
		e.Field = fields[0]
		e.Reason = strings.Join(details.Errors[e.Field], "; ")
	}
	e.Remedy = cmp.Or(details.Hint, remedy(e))
	if strings.HasPrefix(details.Code, "SQL_") {
		return &SQLError{&InvalidRequest{e}, given(details.Position), given(details.Line), given(details.Column)}
	}
	switch status {
	case http.StatusBadRequest:
		return &InvalidRequest{e}
	case http.StatusUnauthorized:
		return &NotAuthenticated{e}
	case http.StatusPaymentRequired:
		return &PlanRequired{e}
	case http.StatusForbidden:
		return &Forbidden{e}
	case http.StatusNotFound:
		return &NotFound{e}
	case http.StatusGone:
		return &AgedOut{e}
	case http.StatusTooManyRequests:
		return &RateLimited{e}
	case http.StatusServiceUnavailable:
		return &Unavailable{&ServerError{e}}
	}
	if status >= 500 {
		return &ServerError{e}
	}
	return e
}

// remedy is what to do where the server does not state it.
func remedy(e *APIError) string {
	switch {
	case e.Status == http.StatusUnauthorized:
		return "give Options a Key, or set MARKETLOG_API_KEY"
	case e.Status == http.StatusGone && !e.Details.AvailableFrom.IsZero():
		return "ask for " + e.Details.AvailableFrom.Format(time.RFC3339Nano) + " or later"
	case e.Status == http.StatusTooManyRequests && e.RetryAfter > 0:
		return "ask again after " + e.RetryAfter.String()
	}
	return ""
}
