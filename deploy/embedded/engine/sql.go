package engine

import (
	"strings"
)

// token is a piece of SQL: a word, a quoted name, a string, or one other character.
type token struct {
	kind       tokenKind
	text       string // of a name: without its quotes and escapes
	start, end int    // in the SQL
}

type tokenKind int

const (
	word tokenKind = iota
	name           // in backticks or double quotes
	literal
	other
	end // no token: after the last one
)

// is compares a keyword.
func (t token) is(keyword string) bool { return t.kind == word && strings.EqualFold(t.text, keyword) }

// scan yields the tokens of sql, without blanks and comments. It knows as much of ClickHouse's lexer as is needed not
// to be led astray by quotes and comments.
func scan(sql string, yield func(token) bool) {
	for at := 0; at < len(sql); {
		start := at
		c := sql[at]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			at++
			continue
		case strings.HasPrefix(sql[at:], "--") || strings.HasPrefix(sql[at:], "//") || strings.HasPrefix(sql[at:], "#!") || strings.HasPrefix(sql[at:], "# "):
			at = after(sql, at, "\n")
			continue
		case strings.HasPrefix(sql[at:], "/*"):
			at = after(sql, at+2, "*/")
			continue
		case wordByte(c):
			for at < len(sql) && wordByte(sql[at]) {
				at++
			}
			if !yield(token{word, sql[start:at], start, at}) {
				return
			}
			continue
		case c == '\'' || c == '"' || c == '`':
			text, end := unquote(sql, at)
			at = end
			kind := name
			if c == '\'' {
				kind = literal
			}
			if !yield(token{kind, text, start, at}) {
				return
			}
			continue
		case c == '$':
			if tag, ok := heredoc(sql[at:]); ok {
				at = after(sql, at+len(tag), tag)
				if !yield(token{literal, sql[start:at], start, at}) {
					return
				}
				continue
			}
		}
		at++
		if !yield(token{other, sql[start:at], start, at}) {
			return
		}
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func after(sql string, at int, mark string) int {
	if i := strings.Index(sql[at:], mark); i >= 0 {
		return at + i + len(mark)
	}
	return len(sql)
}

// unquote reads the quoted piece that begins at at: a backslash escapes, a doubled quote is a quote.
func unquote(sql string, at int) (text string, end int) {
	quote := sql[at]
	var b strings.Builder
	for at++; at < len(sql); at++ {
		switch c := sql[at]; {
		case c == '\\' && at+1 < len(sql):
			at++
			if sql[at] == 'x' && at+2 < len(sql) {
				b.WriteByte(hexDigit(sql[at+1])<<4 | hexDigit(sql[at+2]))
				at += 2
				continue
			}
			b.WriteByte(sql[at])
		case c == quote && at+1 < len(sql) && sql[at+1] == quote:
			at++
			b.WriteByte(quote)
		case c == quote:
			return b.String(), at + 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), len(sql)
}

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0
}

// heredoc recognises the opening $tag$ of a string without escapes.
func heredoc(sql string) (tag string, ok bool) {
	for i := 1; i < len(sql); i++ {
		if sql[i] == '$' {
			return sql[:i+1], true
		}
		if !wordByte(sql[i]) {
			return "", false
		}
	}
	return "", false
}

// shape is what of a statement's text matters here.
type shape struct {
	first    string // its first keyword in capitals, or "(" or ""
	format   string // the name after the last FORMAT outside of brackets
	insert   bool   // an INSERT that is followed by rows
	infileAt int    // for such an INSERT: where FROM INFILE belongs
	rowsAt   int    // for such an INSERT: where its own text ends and rows may begin
	values   bool   // its rows are in VALUES form, with no FORMAT named
	outputAt int    // where INTO OUTFILE belongs: before the FORMAT clause, else at the end
}

// inspect reads the shape of sql. Of an INSERT with rows it reads only what comes before them.
func inspect(sql string) shape {
	s := shape{outputAt: len(sql)}
	var top []token // those outside of brackets
	depth := 0
	for t := range func(yield func(token) bool) { scan(sql, yield) } {
		if s.first == "" {
			s.first = strings.ToUpper(t.text)
			if t.is("INSERT") {
				return s.insertShape(sql)
			}
		}
		switch {
		case t.kind == other && (t.text == "(" || t.text == "[" || t.text == "{"):
			depth++
		case t.kind == other && (t.text == ")" || t.text == "]" || t.text == "}"):
			depth--
		case depth <= 0:
			top = append(top, t)
		}
	}
	// FORMAT is also a name that a column may have: as a clause it is followed by one word, and then by the end or SETTINGS.
	for i := len(top) - 2; i >= 0; i-- {
		if top[i].is("FORMAT") && (top[i+1].kind == word || top[i+1].kind == name) && (i+2 == len(top) || top[i+2].is("SETTINGS")) {
			s.format, s.outputAt = top[i+1].text, top[i].start
			break
		}
	}
	return s
}

// insertShape reads on in an INSERT.
func (s shape) insertShape(sql string) shape {
	depth := 0
	settingsAt, formatAt := -1, -1
	inInsert, wantFormat := true, false
	for t := range func(yield func(token) bool) { scan(sql, yield) } {
		switch {
		case wantFormat:
			s.format, wantFormat = t.text, false
			if inInsert {
				s.insert, s.rowsAt, s.infileAt = true, t.end, formatAt
				if settingsAt >= 0 {
					s.infileAt = settingsAt
				}
				return s
			}
		case t.kind == other && (t.text == "(" || t.text == "[" || t.text == "{"):
			depth++
		case t.kind == other && (t.text == ")" || t.text == "]" || t.text == "}"):
			depth--
		case depth > 0 || t.kind != word:
		case t.is("FORMAT"):
			formatAt, wantFormat = t.start, true
		case inInsert && t.is("SETTINGS"):
			settingsAt = t.start
		case inInsert && (t.is("SELECT") || t.is("WITH") || t.is("INFILE")):
			inInsert = false
		case inInsert && t.is("VALUES"):
			s.insert, s.values, s.format, s.rowsAt, s.infileAt = true, true, "Values", t.end, t.start
			if settingsAt >= 0 {
				s.infileAt = settingsAt
			}
			return s
		}
	}
	return s
}

// selects reports whether the statement is a SELECT, whose output can be long.
func (s shape) selects() bool {
	switch s.first {
	case "SELECT", "WITH", "FROM", "(":
		return true
	}
	return false
}

// inPieces reports whether the library's stream of pieces is whole in a format: it writes each piece as a result of its own,
// so that of formats with a header, a frame or an index nothing usable comes out.
func inPieces(format string) bool {
	switch format {
	case "Native", "RowBinary", "TabSeparated", "TSV", "TabSeparatedRaw", "TSVRaw", "Raw", "CSV", "JSONEachRow", "JSONL", "JSONLines", "NDJSON",
		"JSONStringsEachRow", "JSONCompactEachRow", "JSONCompactStringsEachRow", "TSKV", "LineAsString":
		return true
	}
	return false
}

// intoFile is the SELECT with its output sent into the file at path, in format where it names none.
func (s shape) intoFile(sql, path, format string) string {
	// A line of its own: the text may end with a comment.
	clause := "\nINTO OUTFILE " + quoteString(path) + " APPEND COMPRESSION 'none' "
	if s.format == "" {
		clause += "FORMAT " + format
	}
	return sql[:s.outputAt] + clause + sql[s.outputAt:]
}

func quoteString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func quoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}
