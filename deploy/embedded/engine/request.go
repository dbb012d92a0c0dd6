package engine

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
)

// setting is one query-level setting of ClickHouse.
type setting struct{ name, value string }

// param is the value of one {name:Type} placeholder, in the escaping of ClickHouse's TabSeparated format.
type param struct{ name, value string }

// session is what a request wants its connection to be set to, beyond the pool's own settings.
type session struct {
	database string
	settings []setting // sorted by name
}

func (s session) equal(o session) bool {
	return s.database == o.database && slices.Equal(s.settings, o.settings)
}

// request is a query of ClickHouse's HTTP interface.
type request struct {
	sql     string
	shape   shape
	rows    io.Reader // of an INSERT; nil if they are in sql or there are none
	format  string    // if sql names none
	session session
	params  []param
	id      string
	gzip    bool   // the answer may be compressed
	blocks  bool   // the answer comes in ClickHouse's own compressed blocks
	client  uint64 // the protocol revision of a client that says hello; else 0
}

// hello is what clickhouse-go asks first. It reads the answer in its own revision of the Native format, all later
// answers in the revision that the answer names: 0, since the library writes no other.
const hello = "SELECT displayName(), version(), revision(), timezone()"

// ignored are parameters of the HTTP interface that are not settings of the query, or have no meaning here.
var ignored = []string{
	"query", "database", "default_format", "query_id", "quota_key", "user", "password", "role", "stacktrace",
	"session_id", "session_timeout", "session_check", "client_protocol_version", "compress", "decompress",
	"network_compression_method", "network_zstd_compression_level", "enable_http_compression",
	"http_zlib_compression_level", "wait_end_of_query", "buffer_size", "send_progress_in_http_headers",
	"http_headers_progress_interval_ms", "add_http_cors_header", "cancel_http_readonly_queries_on_client_close",
	"http_write_exception_in_output_format", "http_response_buffer_size", "http_receive_timeout", "http_send_timeout",
}

var (
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	formatName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
)

// readRequest reads a query as ClickHouse's HTTP server does. maxText bounds, in bytes, a body that holds SQL; the
// rows of an INSERT whose statement is in the URL are read later.
func readRequest(r *http.Request, maxText int64) (*request, error) {
	values := r.URL.Query()
	q := &request{format: "TabSeparated", session: session{database: "default"}}
	q.blocks = flag(values.Get("compress"))
	body := io.Reader(http.NoBody)
	if r.Body != nil {
		body = r.Body
	}
	if flag(values.Get("decompress")) {
		if maxText < 1<<30 { // the sizes that blocks claim are believed
			return nil, exception(codeNotImplemented, "a statement in compressed blocks (decompress=1) is not taken here; send it plain, or as gzip with Content-Encoding")
		}
		body = compress.NewReader(body)
	}
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, exception(codeBadArguments, "the body is not gzip: "+err.Error())
		}
		body = unzipped
	default:
		return nil, exception(codeNotImplemented, "a body in Content-Encoding "+encoding+" is not understood here")
	}
	if kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		if err := readForm(body, options["boundary"], values, maxText); err != nil {
			return nil, err
		}
		body = http.NoBody
	}
	if err := q.readText(values.Get("query"), body, maxText); err != nil {
		return nil, err
	}
	return q, q.readParameters(values, r.Header)
}

// readText takes the SQL from the URL, from the body, or, as ClickHouse does, the one followed by the other.
func (q *request) readText(query string, body io.Reader, limit int64) error {
	q.sql = query
	if query != "" {
		if q.shape = inspect(query); q.shape.insert && q.shape.format != "" && strings.Trim(query[q.shape.rowsAt:], " \t\r\n;") == "" {
			q.sql, q.rows = query[:q.shape.rowsAt], body
			return nil
		}
		q.sql += "\n"
	}
	text, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return fmt.Errorf("reading the query: %w", err)
	}
	if int64(len(text)) > limit {
		return exception(codeTooManyBytes, "the body is longer than "+strconv.FormatInt(limit, 10)+" bytes")
	}
	q.sql = strings.TrimRight(q.sql+string(text), " \t\r\n;\x00")
	q.shape = inspect(q.sql)
	if q.sql == "" {
		return exception(codeSyntax, "Empty query")
	}
	if s := q.shape; s.insert && s.format != "" && !s.values && s.rowsAt < len(q.sql) {
		// Trailing blanks may belong to the rows: take them from the untrimmed text.
		whole := query + strings.Repeat("\n", min(1, len(query))) + string(text)
		rows := strings.TrimLeft(whole[s.rowsAt:], " \t\r")
		q.sql, q.rows = q.sql[:s.rowsAt], strings.NewReader(strings.TrimPrefix(rows, "\n"))
	}
	return nil
}

// fromFile is the INSERT with its rows taken from a file.
func (q *request) fromFile(path string) string {
	head, tail := q.sql[:q.shape.infileAt], q.sql[q.shape.infileAt:q.shape.rowsAt]
	if q.shape.values {
		tail = tail[:len(tail)-len("VALUES")] + " FORMAT Values"
	}
	return head + " FROM INFILE " + quoteString(path) + " COMPRESSION 'none' " + tail
}

func (q *request) readParameters(values url.Values, header http.Header) error {
	q.id = values.Get("query_id")
	q.gzip = flag(values.Get("enable_http_compression")) && strings.Contains(header.Get("Accept-Encoding"), "gzip")
	for _, database := range []string{header.Get("X-ClickHouse-Database"), values.Get("database")} {
		if database != "" {
			q.session.database = database
		}
	}
	for _, format := range []string{header.Get("X-ClickHouse-Format"), values.Get("default_format")} {
		if format == "" {
			continue
		}
		if !formatName.MatchString(format) {
			return exception(codeUnknownFormat, "Unknown format "+format)
		}
		q.format = format
	}
	for name, all := range values {
		value := all[len(all)-1]
		if placeholder, ok := strings.CutPrefix(name, "param_"); ok {
			q.params = append(q.params, param{placeholder, value})
			continue
		}
		if slices.Contains(ignored, name) {
			continue
		}
		if !settingName.MatchString(name) {
			return exception(codeUnknownSetting, "Setting "+name+" is neither a builtin setting nor started with the prefix")
		}
		q.session.settings = append(q.session.settings, setting{name, value})
	}
	slices.SortFunc(q.session.settings, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	if q.sql == hello && q.format == "Native" {
		q.client, _ = strconv.ParseUint(values.Get("client_protocol_version"), 10, 64)
	}
	return nil
}

func flag(s string) bool { return s == "1" || strings.EqualFold(s, "true") }

// readForm moves the fields of a multipart body into values. Its files would be external tables.
func readForm(body io.Reader, boundary string, values url.Values, limit int64) error {
	form := multipart.NewReader(io.LimitReader(body, limit), boundary)
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return exception(codeBadArguments, "the form cannot be read: "+err.Error())
		}
		if part.FileName() != "" {
			return exception(codeNotImplemented, "external tables are not taken here")
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return exception(codeBadArguments, "the form cannot be read: "+err.Error())
		}
		values.Set(part.FormName(), string(text))
	}
}
