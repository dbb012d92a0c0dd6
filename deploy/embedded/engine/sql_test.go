package engine

import (
	"strings"
	"testing"
)

func TestInspectFindsWhereRowsBegin(t *testing.T) {
	for _, c := range []struct{ sql, format, fromFile string }{
		{"INSERT INTO t FORMAT Native", "Native", "INSERT INTO t  FROM INFILE 'F' COMPRESSION 'none' FORMAT Native"},
		{"insert into `a FORMAT b`.t (x, y) settings a = 1 format CSV", "CSV", "insert into `a FORMAT b`.t (x, y)  FROM INFILE 'F' COMPRESSION 'none' settings a = 1 format CSV"},
		{"/* FORMAT X */ INSERT INTO t -- FORMAT Y\nVALUES", "Values", "/* FORMAT X */ INSERT INTO t -- FORMAT Y\n FROM INFILE 'F' COMPRESSION 'none'  FORMAT Values"},
		{"INSERT INTO t (format) FORMAT TSV", "TSV", "INSERT INTO t (format)  FROM INFILE 'F' COMPRESSION 'none' FORMAT TSV"},
	} {
		q := request{sql: c.sql, shape: inspect(c.sql)}
		if !q.shape.insert || q.shape.format != c.format || q.fromFile("F") != c.fromFile {
			t.Errorf("%s: got %+v, %s, want %s", c.sql, q.shape, q.fromFile("F"), c.fromFile)
		}
	}
	for _, sql := range []string{"INSERT INTO t SELECT 1 FORMAT Native", "SELECT 'INSERT INTO t FORMAT CSV'", "INSERT INTO t", "", "INSERT INTO t (a) WITH 1 AS x SELECT x"} {
		if s := inspect(sql); s.insert {
			t.Errorf("%s: got %+v, want no rows", sql, s)
		}
	}
	for sql, want := range map[string]string{
		"SELECT 1 FORMAT JSON":                     "JSON",
		"SELECT (SELECT 1 FORMAT x), 'FORMAT CSV'": "",
		"SELECT 1 FORMAT TSV SETTINGS a = 1":       "TSV",
		"SELECT $x$ FORMAT CSV $x$":                "",
		"SELECT 1 -- FORMAT CSV":                   "",
	} {
		if got := inspect(sql).format; got != want {
			t.Errorf("%s: got format %q, want %q", sql, got, want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, seed := range []string{"INSERT INTO t FORMAT Native", "SELECT `a\\", "INSERT INTO t VALUES (1)", "$a$ $a", "'''\\x", "/*", "--"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		s := inspect(sql)
		if s.insert && (s.infileAt < 0 || s.infileAt > s.rowsAt || s.rowsAt > len(sql)) {
			t.Errorf("%q: got %+v", sql, s)
		}
		end := 0
		for tok := range func(yield func(token) bool) { scan(sql, yield) } {
			if tok.start < end || tok.end <= tok.start || tok.end > len(sql) {
				t.Errorf("%q: got token %+v after %d", sql, tok, end)
			}
			end = tok.end
		}
	})
}

func TestErrorCodesHaveTheEnginesNames(t *testing.T) {
	db := connect(t, openEngine(t))
	for code, s := range httpStatuses {
		var name string
		if err := db.QueryRow(t.Context(), "SELECT errorCodeToName(?)", code).Scan(&name); err != nil || name != s.name {
			t.Errorf("%d: got %s %v, want %s", code, name, err, s.name)
		}
	}
}

func TestTheInnermostCodeCounts(t *testing.T) {
	for text, want := range map[string]int{
		"Code: 60. DB::Exception: Unknown table. (UNKNOWN_TABLE)":                                       60,
		"Code: 36. DB::Exception: Code: 241. DB::Exception: Code: 241. DB::Exception: memory. (MEMORY)": 241,
		"Error: Code: 62. DB::Exception: Syntax":                                                        62,
		"something else":                                                                                codeUnknown,
	} {
		if got := newException(text); got.Code != want || strings.Count(got.Message, "Code: ") != 1 {
			t.Errorf("%s: got %d %s, want %d", text, got.Code, got.Message, want)
		}
	}
}
