package sql

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
)

// formatJSON is the default one.
const formatJSON = "JSONCompact"

// format is one that an answer can have.
type format struct {
	// name is the engine's, ending that of a file of the format.
	name, contentType, ending string
}

var formats = []format{
	{name: formatJSON, contentType: fiber.MIMEApplicationJSON, ending: "json"},
	{name: "CSVWithNames", contentType: "text/csv; charset=utf-8; header=present", ending: "csv"},
	{name: "Parquet", contentType: "application/vnd.apache.parquet", ending: "parquet"},
	{name: "ArrowStream", contentType: "application/vnd.apache.arrow.stream", ending: "arrows"},
}

var formatNames = func() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}()

// asks is a request that was read.
type asks struct {
	statement  string
	format     format
	parameters map[string]string
	// form means that a page's form sent it, whose answer is a file.
	form bool
}

const (
	// maxStatement is what the server takes of any body, in bytes.
	maxStatement = 64 << 10
	// maxParameters bounds the values of one statement, maxValue one of them in bytes.
	maxParameters = 32
	maxValue      = 4096
)

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// read takes a statement from a JSON object, from the form of a page, or as a text. A program that names no type, or sends a text
// under a form's as curl does, means the text.
func read(ctx *fasthttp.RequestCtx) (*asks, error) {
	if encoding := ctx.Request.Header.Peek(fiber.HeaderContentEncoding); len(encoding) > 0 && string(encoding) != "identity" {
		return nil, errMediaType
	}
	a := &asks{parameters: map[string]string{}}
	name := ""
	arguments := ctx.QueryArgs()
	if arguments.Has("format") {
		name = string(arguments.Peek("format"))
		if name == "" {
			return nil, query.Invalid("format", "is empty; it is one of %s", formatNames)
		}
	}
	for key, value := range arguments.All() {
		if parameter, ok := strings.CutPrefix(string(key), "param_"); ok {
			a.parameters[parameter] = string(value)
		}
	}
	body := ctx.Request.Body()
	kind, err := "", error(nil)
	if named := string(ctx.Request.Header.ContentType()); named != "" {
		var options map[string]string
		kind, options, err = mime.ParseMediaType(named)
		if charset := options["charset"]; err != nil || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return nil, errMediaType
		}
	}
	switch kind {
	case fiber.MIMEApplicationJSON:
		err = a.fromJSON(body, &name)
	case fiber.MIMEApplicationForm:
		if !strings.HasPrefix(string(body), "query=") {
			a.statement = string(body)
			break
		}
		err = a.fromForm(string(body), &name)
	case "", fiber.MIMETextPlain, "application/sql", fiber.MIMEOctetStream:
		a.statement = string(body)
	default:
		return nil, errMediaType
	}
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = formatJSON
	}
	at := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if at < 0 {
		return nil, query.Invalid("format", "%q is not one of %s", strings.ToValidUTF8(name[:min(len(name), 64)], "�"), formatNames)
	}
	a.format = formats[at]
	return a, a.check()
}

var errMediaType = &query.Error{Status: http.StatusUnsupportedMediaType, Code: query.CodeMediaType,
	Message: `send JSON, {"query": "SELECT …"}, or the statement as text/plain; UTF-8 and not compressed`}

func (a *asks) fromJSON(body []byte, format *string) error {
	var fields struct {
		Query      *string           `json:"query"`
		Format     *string           `json:"format"`
		Parameters map[string]string `json:"parameters"`
	}
	if err := json.Unmarshal(body, &fields); err != nil || fields.Query == nil {
		return query.Invalid("query", `is missing; send a JSON object: {"query": "SELECT …", "format": "JSONCompact", "parameters": {"coin": "bitcoin"}}`)
	}
	a.statement = *fields.Query
	if fields.Format != nil {
		*format = *fields.Format
		if *format == "" {
			return query.Invalid("format", "is empty; it is one of %s", formatNames)
		}
	}
	for name, value := range fields.Parameters {
		a.parameters[name] = value
	}
	return nil
}

func (a *asks) fromForm(body string, format *string) error {
	values, err := url.ParseQuery(body)
	if err != nil {
		return query.Invalid("query", "the form cannot be read")
	}
	a.form, a.statement = true, values.Get("query")
	if values.Has("format") {
		*format = values.Get("format")
	}
	return nil
}

func (a *asks) check() error {
	switch {
	case strings.Trim(a.statement, " \t\r\n;") == "":
		return query.Invalid("query", "is empty; send a statement, such as SELECT symbol, price FROM v_prices ORDER BY time DESC LIMIT 10")
	case !utf8.ValidString(a.statement) || strings.ContainsRune(a.statement, 0):
		return query.Invalid("query", "is not text in UTF-8")
	case len(a.parameters) > maxParameters:
		return query.Invalid("parameters", "are %d; at most %d", len(a.parameters), maxParameters)
	}
	for name, value := range a.parameters {
		if !parameterName.MatchString(name) || len(value) > maxValue || !utf8.ValidString(value) {
			return query.Invalid("parameters", "a name is letters, digits and _, at most 64, and a value a text of at most %d bytes", maxValue)
		}
	}
	return nil
}

// settings are the parameters of the engine's HTTP interface.
func (a *asks) settings() url.Values {
	v := url.Values{"default_format": {a.format.name}}
	for name, value := range a.parameters {
		v.Set("param_"+name, value)
	}
	if a.format.name == formatJSON {
		v.Set("max_result_rows", strconv.Itoa(jsonRows))
		v.Set("max_result_bytes", strconv.Itoa(jsonBytes))
		// A script's numbers hold 53 bits, and JSON has no word for what is not a number.
		v.Set("output_format_json_quote_64bit_integers", "1")
		v.Set("output_format_json_quote_denormals", "1")
	}
	return v
}
