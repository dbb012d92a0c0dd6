package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/marketlog/marketlog/query"
)

// Codes of errors that are ours. The protocol keeps the range of JSON-RPC's own and of what servers may
// define there to itself, so they are outside it and name the REST status that they correspond to.
const (
	codeUnauthorized = 40100
	codePlanRequired = 40200
	codeNotFound     = 40400
	codeRateLimited  = 42900
)

// Words of errors, in error.data.code.
const (
	textParse          = "parse_error"
	textInvalidRequest = "invalid_request"
	textMethodNotFound = "method_not_found"
	textInvalidParams  = "invalid_params"
	textUnauthorized   = "unauthorized"
	textPlanRequired   = "plan_required"
	textNotFound       = "not_found"
	textRateLimited    = "rate_limited"
	textServerError    = "server_error"
	// textRateLimitStdio is what rateLimited is called over stdio.
	textRateLimitStdio = "rate_limit"
)

// frameError is the error of a frame.
type frameError struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Data    errorData `json:"data"`
}

// errorData is what an error holds beside its number: the word that names it, and what the REST error
// holds beside its own.
type errorData struct {
	Code       string              `json:"code"`
	RequestID  string              `json:"requestId,omitempty"`
	Errors     map[string][]string `json:"errors,omitempty"`
	RetryAfter int                 `json:"retryAfter,omitempty"`
	Scope      string              `json:"scope,omitempty"`
	Candidates any                 `json:"candidates,omitempty"`
}

func invalidRequest(format string, args ...any) *frameError {
	return &frameError{Code: mcp.INVALID_REQUEST, Message: fmt.Sprintf(format, args...), Data: errorData{Code: textInvalidRequest}}
}

func invalidParams(format string, args ...any) *frameError {
	return &frameError{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf(format, args...), Data: errorData{Code: textInvalidParams}}
}

// named is an error of the library with the word that names it.
func named(code int, message string) *frameError {
	word := textInvalidRequest
	switch code {
	case mcp.METHOD_NOT_FOUND:
		word = textMethodNotFound
	case mcp.INVALID_PARAMS:
		word = textInvalidParams
	case mcp.INTERNAL_ERROR:
		word = textServerError
	}
	return &frameError{Code: code, Message: message, Data: errorData{Code: word}}
}

// translate turns an error of REST into that of a frame.
func translate(shown *query.Error, id string) *frameError {
	e := &frameError{Code: mcp.INTERNAL_ERROR, Message: shown.Message, Data: errorData{
		Code: textServerError, RequestID: id, Errors: shown.Fields, RetryAfter: shown.RetryAfter, Scope: shown.Scope, Candidates: shown.Candidates}}
	switch shown.Status {
	case http.StatusBadRequest:
		e.Code, e.Data.Code = mcp.INVALID_PARAMS, textInvalidParams
		// A model often sees the message alone.
		for _, name := range slices.Sorted(maps.Keys(shown.Fields)) {
			e.Message += "; " + name + " " + strings.Join(shown.Fields[name], " and ")
		}
	case http.StatusUnauthorized:
		e.Code, e.Data.Code = codeUnauthorized, textUnauthorized
	case http.StatusPaymentRequired:
		e.Code, e.Data.Code = codePlanRequired, textPlanRequired
	case http.StatusNotFound:
		e.Code, e.Data.Code = codeNotFound, textNotFound
	case http.StatusTooManyRequests:
		e.Code, e.Data.Code = codeRateLimited, textRateLimited
	}
	return e
}

// status is that of the answer that carries the error of a tool. What a client must act on before it
// asks again has its own; else the frame has it all, except that the newer era wants bad parameters
// to be reported by the status too.
func (e *frameError) status(modern bool) int {
	switch e.Code {
	case codeUnauthorized:
		return http.StatusUnauthorized
	case codePlanRequired:
		return http.StatusPaymentRequired
	case codeRateLimited:
		return http.StatusTooManyRequests
	case mcp.INVALID_PARAMS:
		if modern {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// frame writes the error as the answer to the request with an id; nil where it is not known.
func (e *frameError) frame(id json.RawMessage) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	frame, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *frameError     `json:"error"`
	}{mcp.JSONRPC_VERSION, id, e})
	if err != nil {
		panic(err) // strings, maps of strings, numbers and what endpoints list always encode
	}
	return frame
}

// appendQuoted appends JSON as the text of a JSON string. JSON holds no raw control characters but the
// spaces between its tokens, which the encoder of answers does not write.
func appendQuoted(to, text []byte) []byte {
	to = append(to, '"')
	begin := 0
	for i, b := range text {
		if b != '"' && b != '\\' && b >= ' ' {
			continue
		}
		to = append(to, text[begin:i]...)
		begin = i + 1
		switch b {
		case '"', '\\':
			to = append(to, '\\', b)
		default:
			to = fmt.Appendf(to, `\u%04x`, b)
		}
	}
	return append(append(to, text[begin:]...), '"')
}

// resultFrame is the answer to a call: the endpoint's answer unchanged, and as text for clients that
// know no structure. Stamp is what else belongs into the result, empty or beginning with a comma.
func resultFrame(id json.RawMessage, body []byte, stamp string) []byte {
	frame := make([]byte, 0, 2*len(body)+len(body)/4+len(stamp)+256)
	frame = append(append(frame, `{"jsonrpc":"2.0","id":`...), id...)
	frame = append(appendQuoted(append(frame, `,"result":{"content":[{"type":"text","text":`...), body), `}],"structuredContent":`...)
	frame = append(frame, body...)
	frame = append(frame, stamp...)
	return append(frame, `}}`...)
}
