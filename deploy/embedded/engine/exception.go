package engine

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Exception is an error that the engine raised. Code is ClickHouse's error code, as in its ErrorCodes.cpp.
type Exception struct {
	Code    int
	Message string // as the engine wrote it: "Code: 60. DB::Exception: …"
}

func (e *Exception) Error() string { return e.Message }

// newException reads the code out of the engine's text. Errors pass through several layers of the library, each of
// which may put its own "Code: N. DB::Exception: " in front; the innermost is the cause.
func newException(text string) *Exception {
	text = strings.TrimPrefix(text, "Error: ")
	code, rest, ok := cutCode(text)
	for ok {
		inner, innerRest, again := cutCode(rest)
		if !again {
			break
		}
		text, code, rest = rest, inner, innerRest
	}
	if !ok {
		code, text = codeUnknown, "Code: 1002. DB::Exception: "+text
	}
	return &Exception{Code: code, Message: text}
}

// place is where the parser says that it failed, in bytes from 1, and the column of that where it gives one.
var place = regexp.MustCompile(`(position |line 1, col(?:umn)? )(\d+)`)

// intoPipe is what is added to a SELECT: see intoFile.
var intoPipe = regexp.MustCompile(`\s*INTO OUTFILE '[^']*' APPEND COMPRESSION 'none'(?: FORMAT \w+)?`)

// behind reports a failure as if it were of the statement alone: places are counted from the end of a prefix that was put before it, of so
// many bytes, and what was added to it is left out.
func behind(err error, prefix int) error {
	var ex *Exception
	if !errors.As(err, &ex) || ex.Code != codeSyntax {
		return err
	}
	return &Exception{Code: ex.Code, Message: place.ReplaceAllStringFunc(intoPipe.ReplaceAllString(ex.Message, ""), func(text string) string {
		parts := place.FindStringSubmatch(text)
		n, err := strconv.Atoi(parts[2])
		if err != nil || n <= prefix {
			return text
		}
		return parts[1] + strconv.Itoa(n-prefix)
	})}
}

func cutCode(text string) (code int, rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, "Code: ")
	if !ok {
		return 0, "", false
	}
	digits, rest, ok := strings.Cut(rest, ". DB::Exception: ")
	if !ok {
		return 0, "", false
	}
	code, err := strconv.Atoi(digits)
	return code, rest, err == nil
}

// exception raises an exception of this package in the engine's own form.
func exception(code int, text string) *Exception {
	name := httpStatuses[code].name
	if name == "" {
		name = map[int]string{codeCancelled: "QUERY_WAS_CANCELLED", codeUnknown: "UNKNOWN_EXCEPTION"}[code]
	}
	return &Exception{Code: code, Message: "Code: " + strconv.Itoa(code) + ". DB::Exception: " + text + ". (" + name + ")"}
}

// Error codes of ClickHouse that this package raises itself.
const (
	codeBadArguments    = 36
	codeNotImplemented  = 48
	codeUnknownFunction = 46
	codeSyntax          = 62
	codeUnknownFormat   = 73
	codeUnknownSetting  = 115
	codeTimeout         = 159
	codeReadonly        = 164
	codeTooManyQueries  = 202
	codeAborted         = 236
	codeTooManyBytes    = 307
	codeCancelled       = 394
	codeAuthentication  = 516
	codeUnknown         = 1002
)

// httpStatuses maps error codes as ClickHouse's exceptionCodeToHTTPStatus.cpp does. Ours are: 403 for READONLY; 413 for
// TOO_MANY_BYTES, a body over its limit; 503 for TOO_MANY_SIMULTANEOUS_QUERIES and ABORTED, which clients try again.
var httpStatuses = map[int]struct {
	name   string
	status int
}{
	194: {"REQUIRED_PASSWORD", http.StatusUnauthorized},
	192: {"UNKNOWN_USER", http.StatusForbidden},
	193: {"WRONG_PASSWORD", http.StatusForbidden},
	516: {"AUTHENTICATION_FAILED", http.StatusForbidden},
	512: {"SET_NON_GRANTED_ROLE", http.StatusForbidden},
	497: {"ACCESS_DENIED", http.StatusForbidden},
	164: {"READONLY", http.StatusForbidden},
	36:  {"BAD_ARGUMENTS", http.StatusBadRequest},
	427: {"CANNOT_COMPILE_REGEXP", http.StatusBadRequest},
	6:   {"CANNOT_PARSE_TEXT", http.StatusBadRequest},
	25:  {"CANNOT_PARSE_ESCAPE_SEQUENCE", http.StatusBadRequest},
	26:  {"CANNOT_PARSE_QUOTED_STRING", http.StatusBadRequest},
	38:  {"CANNOT_PARSE_DATE", http.StatusBadRequest},
	41:  {"CANNOT_PARSE_DATETIME", http.StatusBadRequest},
	72:  {"CANNOT_PARSE_NUMBER", http.StatusBadRequest},
	441: {"CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING", http.StatusBadRequest},
	675: {"CANNOT_PARSE_IPV4", http.StatusBadRequest},
	676: {"CANNOT_PARSE_IPV6", http.StatusBadRequest},
	27:  {"CANNOT_PARSE_INPUT_ASSERTION_FAILED", http.StatusBadRequest},
	376: {"CANNOT_PARSE_UUID", http.StatusBadRequest},
	15:  {"DUPLICATE_COLUMN", http.StatusBadRequest},
	44:  {"ILLEGAL_COLUMN", http.StatusBadRequest},
	37:  {"UNKNOWN_ELEMENT_IN_AST", http.StatusBadRequest},
	123: {"UNKNOWN_TYPE_OF_AST_NODE", http.StatusBadRequest},
	8:   {"THERE_IS_NO_COLUMN", http.StatusBadRequest},
	167: {"TOO_DEEP_AST", http.StatusBadRequest},
	168: {"TOO_BIG_AST", http.StatusBadRequest},
	223: {"UNEXPECTED_AST_STRUCTURE", http.StatusBadRequest},
	62:  {"SYNTAX_ERROR", http.StatusBadRequest},
	117: {"INCORRECT_DATA", http.StatusBadRequest},
	53:  {"TYPE_MISMATCH", http.StatusBadRequest},
	321: {"VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE", http.StatusBadRequest},
	457: {"BAD_QUERY_PARAMETER", http.StatusBadRequest},
	60:  {"UNKNOWN_TABLE", http.StatusNotFound},
	46:  {"UNKNOWN_FUNCTION", http.StatusNotFound},
	47:  {"UNKNOWN_IDENTIFIER", http.StatusNotFound},
	50:  {"UNKNOWN_TYPE", http.StatusNotFound},
	56:  {"UNKNOWN_STORAGE", http.StatusNotFound},
	81:  {"UNKNOWN_DATABASE", http.StatusNotFound},
	115: {"UNKNOWN_SETTING", http.StatusNotFound},
	152: {"UNKNOWN_DIRECTION_OF_SORTING", http.StatusNotFound},
	63:  {"UNKNOWN_AGGREGATE_FUNCTION", http.StatusNotFound},
	73:  {"UNKNOWN_FORMAT", http.StatusNotFound},
	336: {"UNKNOWN_DATABASE_ENGINE", http.StatusNotFound},
	78:  {"UNKNOWN_TYPE_OF_QUERY", http.StatusNotFound},
	511: {"UNKNOWN_ROLE", http.StatusNotFound},
	229: {"QUERY_IS_TOO_LARGE", http.StatusRequestEntityTooLarge},
	307: {"TOO_MANY_BYTES", http.StatusRequestEntityTooLarge},
	48:  {"NOT_IMPLEMENTED", http.StatusNotImplemented},
	209: {"SOCKET_TIMEOUT", http.StatusServiceUnavailable},
	76:  {"CANNOT_OPEN_FILE", http.StatusServiceUnavailable},
	439: {"CANNOT_SCHEDULE_TASK", http.StatusServiceUnavailable},
	202: {"TOO_MANY_SIMULTANEOUS_QUERIES", http.StatusServiceUnavailable},
	236: {"ABORTED", http.StatusServiceUnavailable},
	381: {"HTTP_LENGTH_REQUIRED", http.StatusLengthRequired},
	159: {"TIMEOUT_EXCEEDED", http.StatusRequestTimeout},
	779: {"UNSUPPORTED_MEDIA_TYPE", http.StatusUnsupportedMediaType},
}

func httpStatus(code int) int {
	if s, ok := httpStatuses[code]; ok {
		return s.status
	}
	return http.StatusInternalServerError
}
