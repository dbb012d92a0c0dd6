//go:build linux || darwin

package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// answer is the response to a request, before it is put on a wire.
type answer struct {
	header http.Header
	length int64 // of body in bytes, -1 if not known yet
	body   io.ReadCloser
}

// answer runs q on a connection of p.
func (e *Engine) answer(ctx context.Context, p *pool, q *request) (*answer, error) {
	if q.client > 0 {
		return e.greet(q)
	}
	if p.fixed {
		if err := permitFormat(q.outputFormat()); err != nil {
			return nil, err
		}
		settled, err := p.rules.settle(q.session.settings)
		if err != nil {
			return nil, err
		}
		q.session.settings = settled
	}
	sql := q.sql
	if q.rows != nil && !p.fixed {
		// Before a connection is taken: the rows may come slowly.
		path, free, err := holdRows(q.rows)
		if err != nil {
			return nil, err
		}
		defer free()
		sql = q.fromFile(path)
	}
	m, err := p.take(ctx, q.session)
	if err != nil {
		return nil, err
	}
	if err := judge(p, m, q); err != nil {
		p.give(m)
		return nil, err
	}
	if q.shape.selects() && (p.fixed || !inPieces(q.outputFormat())) {
		s, err := e.startPiped(ctx, p, m, q)
		if err != nil {
			return nil, suggest(q.outputFormat(), err)
		}
		a := e.compose(q)
		if s.whole { // of a longer one nothing is known yet
			a.header.Set("X-ClickHouse-Summary", s.summary)
		}
		a.frame(s.length(), s)
		return a, nil
	}
	s, err := e.start(ctx, p, m, sql, q.format, q.params, q.shape.selects())
	if err != nil {
		return nil, err
	}
	a := e.compose(q)
	if q.shape.insert {
		// The rows counted are those written to views of the table as well, as in ClickHouse.
		a.header.Set("X-ClickHouse-Summary", `{"written_rows":"`+strconv.FormatUint(s.written, 10)+`"}`)
	}
	a.frame(s.length(), s)
	return a, nil
}

// unserved are formats that nobody gets: they need a schema, a template, a registry or certain columns, hold no bounds of
// rows, or are the frame of another protocol, so that nothing but their own program could recognize whether an answer is whole.
var unserved = []string{
	"AvroConfluent", "CapnProto", "GeoJSON", "MySQLWire", "PNG", "PostgreSQLWire", "Prometheus", "Protobuf", "ProtobufList",
	"ProtobufSingle",
	"RawBLOB", "Template",
}

// anyRows says which formats hold any rows.
const anyRows = " Any rows fit into Parquet, ArrowStream, JSONEachRow and CSVWithNames."

// permitFormat refuses a format that is not served; its name counts in any letter case.
func permitFormat(format string) error {
	if slices.ContainsFunc(unserved, func(name string) bool { return strings.EqualFold(name, format) }) {
		return exception(codeBadArguments, "The format "+format+" is not served."+anyRows)
	}
	return nil
}

// suggest adds to the failure of a statement in a format of one column which formats hold any rows.
func suggest(format string, err error) error {
	var ex *Exception
	if !strings.EqualFold(format, "Npy") || !errors.As(err, &ex) {
		return err
	}
	return &Exception{Code: ex.Code, Message: ex.Message + anyRows}
}

// frame makes output the body of the answer.
func (a *answer) frame(length int64, output io.ReadCloser) {
	tag := rand.Text()[:16]
	a.header.Set("X-ClickHouse-Exception-Tag", tag)
	a.length, a.body = length, &framed{ReadCloser: output, tag: tag}
}

// outputFormat is the one that the answer to q comes in.
func (q *request) outputFormat() string { return cmp.Or(q.shape.format, q.format) }

// judge refuses what may not run, has the rest see the settings as they are here, and marks connections that a statement leaves in a state of its own.
func judge(p *pool, m *member, q *request) error {
	kind, statements := m.classify(q.sql)
	if statements > 1 {
		return exception(codeSyntax, "Multi-statements are not allowed")
	}
	if p.fixed {
		if err := permit(kind, q, p.hidden); err != nil || kind != readOnly { // in one that cannot be parsed the place of the fault counts
			return err
		}
		q.sql = p.rules.showSettings(q.sql)
		q.shape = inspect(q.sql)
		return nil
	}
	// SET, USE and temporary tables must not reach the next borrower.
	m.spoiled = kind == control
	return nil
}

func (e *Engine) compose(q *request) *answer {
	format := q.outputFormat()
	if q.id == "" {
		q.id = rand.Text()
	}
	h := http.Header{}
	h.Set("Content-Type", contentType(format))
	h.Set("X-ClickHouse-Query-Id", q.id)
	h.Set("X-ClickHouse-Format", format)
	h.Set("X-ClickHouse-Timezone", timezone)
	h.Set("X-ClickHouse-Server-Display-Name", displayName)
	return &answer{header: h}
}

const (
	displayName = "marketlog"
	timezone    = "UTC" // of every connection, set when it is opened
)

func contentType(format string) string {
	switch {
	case strings.HasSuffix(format, "EachRow"):
		return "application/x-ndjson; charset=UTF-8"
	case strings.HasPrefix(format, "JSON"):
		return "application/json; charset=UTF-8"
	case strings.HasPrefix(format, "CSV"):
		return "text/csv; charset=UTF-8; header=" + map[bool]string{true: "present", false: "absent"}[strings.Contains(format, "Names")]
	case strings.HasPrefix(format, "TabSeparated"), strings.HasPrefix(format, "TSV"):
		return "text/tab-separated-values; charset=UTF-8"
	case strings.HasPrefix(format, "XML"):
		return "application/xml; charset=UTF-8"
	case strings.HasPrefix(format, "Pretty"), format == "Vertical", format == "Values", format == "Markdown":
		return "text/plain; charset=UTF-8"
	}
	return "application/octet-stream"
}

// greet answers the hello of clickhouse-go in the client's revision of the Native format.
func (e *Engine) greet(q *request) (*answer, error) {
	var block proto.Block
	for _, c := range []struct{ name, kind string }{
		{"displayName()", "String"}, {"version()", "String"}, {"revision()", "UInt32"}, {"timezone()", "String"},
	} {
		if err := block.AddColumn(c.name, column.Type(c.kind)); err != nil {
			return nil, fmt.Errorf("answering the hello: %w", err)
		}
	}
	if err := block.Append(displayName, e.version, uint32(0), timezone); err != nil {
		return nil, fmt.Errorf("answering the hello: %w", err)
	}
	var buffer chproto.Buffer
	if err := block.Encode(&buffer, q.client); err != nil {
		return nil, fmt.Errorf("answering the hello: %w", err)
	}
	a := e.compose(q)
	a.length, a.body = int64(len(buffer.Buf)), io.NopCloser(bytes.NewReader(buffer.Buf))
	return a, nil
}

// framed adds ClickHouse's exception frame to output that breaks off.
type framed struct {
	io.ReadCloser
	tag   string
	frame []byte
	broke error
}

func (f *framed) Read(p []byte) (int, error) {
	if f.broke == nil {
		n, err := f.ReadCloser.Read(p)
		if err == nil || err == io.EOF {
			return n, err
		}
		f.broke = err
		text := asException(err).Message
		f.frame = fmt.Appendf(nil, "\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", f.tag, text, len(text)+1, f.tag)
	}
	n := copy(p, f.frame)
	f.frame = f.frame[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// asException gives every failure a code, so that each client can decide what to do.
func asException(err error) *Exception {
	var ex *Exception
	switch {
	case errors.As(err, &ex):
		return ex
	case errors.Is(err, context.DeadlineExceeded):
		return exception(codeTimeout, "Timeout exceeded: "+err.Error())
	case errors.Is(err, context.Canceled):
		return exception(codeCancelled, "Query was cancelled")
	}
	return exception(codeUnknown, err.Error())
}
