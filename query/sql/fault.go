package sql

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/marketlog/marketlog/query"
)

// Codes of what is wrong with a statement.
const (
	// CodeSQL is a statement that cannot be run as it is written.
	CodeSQL = "SQL_ERROR"
	// CodeSQLLimit is one that needs more than it may.
	CodeSQLLimit = "SQL_LIMIT"
)

// maxFault bounds the text of a refusal, in bytes.
const maxFault = 64 << 10

// Codes of ClickHouse's errors that mean something else than a fault of the statement.
const (
	codeTooManyQueries = 202
	codeAborted        = 236
	codeCancelled      = 394
	codeUnknown        = 1002
)

// limitHints say of each limit what to do about it.
var limitHints = map[int]string{
	158: "read less: narrow the time or the coins",
	159: "a statement has 10 seconds: narrow the time or the coins, or use the views of candles and days",
	160: "a statement has 10 seconds: narrow the time or the coins, or use the views of candles and days",
	209: "read the answer faster, or ask for less",
	241: "a statement has 512 MB: group by fewer keys, sort fewer rows, or narrow the time",
	307: "a statement may be 64 kB long, an answer in JSON 16 MB; Parquet and ArrowStream are passed on as they come",
	396: "an answer in JSON has at most 100,000 rows and 16 MB: add a LIMIT, or ask for Parquet or ArrowStream, which may have 5,000,000",
}

var (
	raised = regexp.MustCompile(`^(?:Code: (\d+)\. DB::Exception: )+`)
	// symbol is the name of the code, at the end.
	symbol = regexp.MustCompile(`\.? ?\([A-Z0-9_]+\)\s*$`)
	// position is given for a statement that cannot be parsed, in bytes from 1.
	position = regexp.MustCompile(`failed at position (\d+)`)
	// unknown is how the engine names what it does not know.
	unknown = regexp.MustCompile("(?:identifier|[Ff]unction with name|[Uu]nknown function|[Ss]etting) [`'\"]?([\\w.]+)[`'\"]?")
	meant   = regexp.MustCompile(`(?i)\.? ?maybe you meant:? \[?([^\]]*?)\]?$`)
	version = regexp.MustCompile(` \(version [\d.]+\)`)
	// expected begins what the parser would have taken, which can be a hundred words.
	expected = regexp.MustCompile(`(?s)(\. Expected (?:one of: )?(?:[^,]*,){6}).*`)
	// scope repeats the statement, as the engine rewrote it.
	scope = regexp.MustCompile(`(?s) in scope .*?(\. Maybe you meant|\z)`)
)

// codeIn is the code that a text of the engine begins with; empty where it names none.
func codeIn(text string) string {
	if match := raised.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

// refusal turns what the engine reports about a statement into an answer of the API.
func refusal(statement, text string, status int, code string) error {
	number, err := strconv.Atoi(code)
	if err != nil {
		number = codeUnknown
	}
	message := strings.TrimSpace(text)
	message = symbol.ReplaceAllString(version.ReplaceAllString(raised.ReplaceAllString(message, ""), ""), "")
	message = strings.ToValidUTF8(message, "�")
	switch number {
	case codeTooManyQueries, codeAborted, codeCancelled:
		return &query.Error{Status: http.StatusServiceUnavailable, Code: query.CodeOverloaded, Message: message, RetryAfter: 1}
	case codeUnknown:
		if status >= http.StatusInternalServerError {
			return &query.Error{Status: http.StatusInternalServerError, Code: query.CodeInternal, Message: "the engine failed; the statement was not answered"}
		}
	}
	shown := &query.Error{Status: http.StatusBadRequest, Code: CodeSQL}
	if hint, ok := limitHints[number]; ok {
		shown.Code, shown.Hint = CodeSQLLimit, hint
	}
	message = expected.ReplaceAllString(scope.ReplaceAllString(message, "$1"), "$1 …")
	if match := meant.FindStringSubmatchIndex(message); match != nil {
		shown.Hint = "maybe you meant " + strings.ReplaceAll(message[match[2]:match[3]], "'", "")
		message = message[:match[0]]
	}
	shown.Message = message
	at := 0
	if match := position.FindStringSubmatch(message); match != nil {
		at, _ = strconv.Atoi(match[1])
	} else if match := unknown.FindStringSubmatch(message); match != nil && shown.Code == CodeSQL {
		at = find(statement, match[1])
	}
	if at > 0 && at <= len(statement)+1 {
		before := statement[:at-1]
		shown.Position = utf8.RuneCountInString(before) + 1
		shown.Line = strings.Count(before, "\n") + 1
		shown.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	}
	return shown
}

// find is where a name is in a statement as a word, in bytes from 1; 0 where it does not.
func find(statement, name string) int {
	// A name that the engine qualified is there as it was written.
	for _, candidate := range []string{name, name[strings.LastIndexByte(name, '.')+1:]} {
		if candidate == "" {
			continue
		}
		word := regexp.MustCompile(`(?i)(^|\W)(` + regexp.QuoteMeta(candidate) + `)($|\W)`)
		if match := word.FindStringSubmatchIndex(statement); match != nil {
			return match[4] + 1
		}
	}
	return 0
}

// tooLong refuses an answer in JSON that is longer than it may be.
func tooLong() error {
	return &query.Error{Status: http.StatusBadRequest, Code: CodeSQLLimit, Message: "the answer in JSON is longer than 16 MB", Hint: limitHints[396]}
}
