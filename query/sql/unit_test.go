package sql

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
)

// request is what a client sends.
func request(address, kind, body string) *fasthttp.RequestCtx {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod(http.MethodPost)
	ctx.Request.SetRequestURI(Path + address)
	if kind != "" {
		ctx.Request.Header.SetContentType(kind)
	}
	ctx.Request.SetBodyString(body)
	return &ctx
}

// A statement comes as JSON, as a text, as curl sends one, or from the form of a page.
func TestStatementsAreReadInEveryForm(t *testing.T) {
	const statement = "SELECT {a:String} || 'x=1&y' AS b"
	for name, c := range map[string]struct {
		address, kind, body string
		format, value       string
		form                bool
	}{
		"JSON":               {"", "application/json; charset=utf-8", `{"query":"SELECT {a:String} || 'x=1&y' AS b","format":"Parquet","parameters":{"a":"é"}}`, "Parquet", "é", false},
		"text":               {"?param_a=1&view=tool", "text/plain", statement, formatJSON, "1", false},
		"text in a format":   {"?format=CSVWithNames", "", statement, "CSVWithNames", "", false},
		"curl":               {"?format=ArrowStream", "application/x-www-form-urlencoded", statement, "ArrowStream", "", false},
		"the form of a page": {"", "application/x-www-form-urlencoded", "query=" + url.QueryEscape(statement) + "&format=Parquet", "Parquet", "", true},
	} {
		got, err := read(request(c.address, c.kind, c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.statement != statement || got.format.name != c.format || got.parameters["a"] != c.value || got.form != c.form {
			t.Errorf("%s: got %+v", name, got)
		}
		if v := got.settings(); v.Get("default_format") != c.format || v.Get("param_a") != c.value || (v.Get("max_result_rows") != "") != (c.format == formatJSON) {
			t.Errorf("%s: got the settings %v", name, v)
		}
	}
	for name, c := range map[string]struct {
		address, kind, body string
		status              int
	}{
		"nothing":               {"", "text/plain", " ;\n", 400},
		"no text":               {"", "text/plain", "SELECT '\xff'", 400},
		"a zero":                {"", "text/plain", "SELECT \x00", 400},
		"no object":             {"", "application/json", "[]", 400},
		"no statement":          {"", "application/json", "{}", 400},
		"a format that is none": {"?format=Null", "text/plain", "SELECT 1", 400},
		"an empty format":       {"?format=", "text/plain", "SELECT 1", 400},
		"a setting as a value":  {"?param_a%3Db=1", "text/plain", "SELECT 1", 400},
		"another type":          {"", "image/png", "SELECT 1", 415},
		"another alphabet":      {"", "text/plain; charset=latin1", "SELECT 1", 415},
	} {
		var shown *query.Error
		if _, err := read(request(c.address, c.kind, c.body)); !errors.As(err, &shown) || shown.Status != c.status {
			t.Errorf("%s: got %v, want %d", name, err, c.status)
		}
	}
	// No setting of the engine can be sent: an address that names one changes nothing.
	got, err := read(request("?max_execution_time=600&readonly=0", "text/plain", "SELECT 1"))
	if err != nil || len(got.settings()) != 5 {
		t.Errorf("got %v, %v", got.settings(), err)
	}
}

// What the engine says is reported with its place in the statement as it was sent, in characters. The texts are the engine's own.
func TestFaultsAreReportedByTheirPlace(t *testing.T) {
	for _, c := range []struct {
		statement, text, code string
		status                int
		want                  query.Error
	}{
		{"SELEC 1", "Code: 62. DB::Exception: Syntax error: failed at position 7 (1): 1. Expected one of: token sequence, Dot, token, OR, AND, IS NOT DISTINCT FROM, IS DISTINCT FROM, IS NULL. (SYNTAX_ERROR)\n", "62", 400,
			query.Error{Status: 400, Code: CodeSQL, Message: "Syntax error: failed at position 7 (1): 1. Expected one of: token sequence, Dot, token, OR, AND, IS NOT DISTINCT FROM, …", Position: 7, Line: 1, Column: 7}},
		{"SELECT 'é',\n 1 FRM x", "Code: 62. DB::Exception: Syntax error: failed at position 21 (x) (line 2, col 8): x. Expected one of: token, Comma, FROM. (SYNTAX_ERROR)", "62", 400,
			query.Error{Status: 400, Code: CodeSQL, Message: "Syntax error: failed at position 21 (x) (line 2, col 8): x. Expected one of: token, Comma, FROM", Position: 20, Line: 2, Column: 8}},
		{"SELECT symbol,\n  pricee FROM v_prices", "Code: 47. DB::Exception: Unknown expression identifier `pricee` in scope SELECT symbol, pricee FROM v_prices. Maybe you meant: ['price']. (UNKNOWN_IDENTIFIER)", "47", 404,
			query.Error{Status: 400, Code: CodeSQL, Message: "Unknown expression identifier `pricee`", Hint: "maybe you meant price", Position: 18, Line: 2, Column: 3}},
		{"SELECT 1 FROM v_price", "Code: 60. DB::Exception: Unknown table expression identifier 'v_price' in scope SELECT 1 FROM v_price. (UNKNOWN_TABLE)", "60", 404,
			query.Error{Status: 400, Code: CodeSQL, Message: "Unknown table expression identifier 'v_price'", Position: 15, Line: 1, Column: 15}},
		{"SELECT 1 SETTINGS max_execution_time = 60", "Code: 164. DB::Exception: Cannot modify 'max_execution_time' setting in readonly mode. (READONLY) (version 26.7.2.1). (READONLY)", "164", 403,
			query.Error{Status: 400, Code: CodeSQL, Message: "Cannot modify 'max_execution_time' setting in readonly mode. (READONLY)"}},
		{"SELECT sleep(3)", "Code: 164. DB::Exception: the function sleep is not allowed here. (READONLY)", "164", 403,
			query.Error{Status: 400, Code: CodeSQL, Message: "the function sleep is not allowed here"}},
		{"SELECT 1", "Code: 159. DB::Exception: Timeout exceeded: elapsed 10000.1 ms, maximum: 10000 ms. (TIMEOUT_EXCEEDED)", "159", 408,
			query.Error{Status: 400, Code: CodeSQLLimit, Message: "Timeout exceeded: elapsed 10000.1 ms, maximum: 10000 ms", Hint: limitHints[159]}},
		{"SELECT 1", "Code: 202. DB::Exception: Too many simultaneous queries: no place came free within 10s. (TOO_MANY_SIMULTANEOUS_QUERIES)", "202", 503,
			query.Error{Status: 503, Code: query.CodeOverloaded, Message: "Too many simultaneous queries: no place came free within 10s", RetryAfter: 1}},
		{"SELECT 1", "unforeseen", "", 500, query.Error{Status: 500, Code: query.CodeInternal, Message: "the engine failed; the statement was not answered"}},
	} {
		var got *query.Error
		if err := refusal(c.statement, c.text, c.status, c.code); !errors.As(err, &got) {
			t.Fatalf("%s: got %v", c.statement, err)
		}
		if got.Status != c.want.Status || got.Code != c.want.Code || got.Message != c.want.Message || got.Hint != c.want.Hint || got.RetryAfter != c.want.RetryAfter ||
			got.Position != c.want.Position || got.Line != c.want.Line || got.Column != c.want.Column {
			t.Errorf("%q, %q:\n got %+v\nwant %+v", c.statement, c.text, *got, c.want)
		}
	}
	// An answer that began and broke off says why at its end.
	var got *query.Error
	body := "{\"meta\":\n[\r\n__exception__\r\nTAG\r\nCode: 396. DB::Exception: Limit for result exceeded. (TOO_MANY_ROWS_OR_BYTES)\n84 TAG\r\n__exception__\r\n"
	if err := brokenOff("SELECT 1", []byte(body), "TAG", errors.New("EOF")); !errors.As(err, &got) || got.Code != CodeSQLLimit || !strings.HasPrefix(got.Message, "Limit for result exceeded") {
		t.Errorf("got %+v", got)
	}
	if err := brokenOff("SELECT 1", []byte("{"), "TAG", errors.New("EOF")); errors.As(err, &got) && got.Code == CodeSQL {
		t.Errorf("an answer without a reason is the statement's fault: %v", err)
	}
}

// A budget has two statements at once, whatever others have.
func TestABudgetHasTwoStatementsAtOnce(t *testing.T) {
	u := New(func() Engine { return nil })
	var got []bool
	for _, budget := range []string{"a", "a", "a", "b"} {
		got = append(got, u.enter(budget))
	}
	if want := []bool{true, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	u.leave("a")
	if !u.enter("a") {
		t.Error("a place that was left is not free")
	}
	u.leave("a")
	u.leave("a")
	u.leave("b")
	if len(u.running) != 0 {
		t.Errorf("%v is kept of budgets that ask nothing", u.running)
	}
}

// A browser sends a form or a text anywhere: a page of another site gets nothing without a key, also where none is asked for.
func TestPagesOfOtherSitesAskNothingWithoutAKey(t *testing.T) {
	for name, c := range map[string]struct {
		headers map[string]string
		foreign bool
	}{
		"a program":              {nil, false},
		"our own page":           {map[string]string{"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}, false},
		"another site":           {map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, true},
		"another port":           {map[string]string{"Origin": "http://127.0.0.1:9000", "Sec-Fetch-Site": "same-site"}, true},
		"an old browser":         {map[string]string{"Origin": "https://evil.example"}, true},
		"a frame without a name": {map[string]string{"Origin": "null"}, true},
		"another site's script":  {map[string]string{"Origin": "https://charts.example", "Sec-Fetch-Site": "cross-site", "Authorization": "Bearer x"}, false},
	} {
		ctx := request("", "text/plain", "SELECT 1")
		ctx.Request.SetHost("127.0.0.1:8080")
		for header, value := range c.headers {
			ctx.Request.Header.Set(header, value)
		}
		if got := foreign(ctx); got != c.foreign {
			t.Errorf("%s: got %t, want %t", name, got, c.foreign)
		}
	}
}
