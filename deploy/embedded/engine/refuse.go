//go:build linux || darwin

package engine

import (
	"regexp"
	"strings"
)

// The setting readonly=1 alone does not make the engine safe to show: the library counts as a local tool of its user,
// so that setting still lets through SYSTEM SHUTDOWN, KILL QUERY, INTO OUTFILE, the function file() on any path, and
// the network through DESCRIBE of url() and its like. What follows closes these.

// outside are functions that reach files or the network, or run text as SQL. Functions can be named in many places
// (calls, lambdas, APPLY) and quotings, so the bare word is refused wherever it stands, in strings and comments too.
var outside = regexp.MustCompile(`(?:^|[^A-Za-z0-9_])(?:file|eval|catboostEvaluate|[aA][iI](?:Classify|Embed|Extract|Generate|Translate))(?:$|[^A-Za-z0-9_])`)

// refuse judges a statement of an analyst; nil lets it through. kind is the engine's own judgement.
func refuse(kind class, q *request) error {
	readonly := func(why string) error { return exception(codeReadonly, why) }
	switch kind {
	case readOnly:
	case unparsed:
		// The engine says best where the mistake is. But of several statements it would run those before it.
		if strings.Contains(q.sql, ";") {
			return exception(codeSyntax, "Syntax error, or multi-statements, which are not allowed")
		}
	default:
		return readonly("only reading is allowed here")
	}
	switch q.shape.first {
	case "SELECT", "WITH", "FROM", "(", "SHOW", "EXPLAIN":
	case "DESCRIBE", "DESC", "EXISTS":
		// Finding the columns of a table function runs it, readonly or not.
		if strings.ContainsAny(q.sql, "(/") {
			return readonly("only tables can be described here")
		}
	default:
		if kind == readOnly {
			return readonly("only SELECT, SHOW, DESCRIBE, EXISTS and EXPLAIN are allowed here")
		}
	}
	if outside.MatchString(q.sql) {
		return readonly("functions that reach outside the database are not allowed here, nor their names: " +
			strings.Trim(outside.FindString(q.sql), " \t\r\n"))
	}
	// An escape in a quoted name can spell such a name in many ways. (A backslash in a string alone is no matter.)
	if strings.Contains(q.sql, `\`) && strings.ContainsAny(q.sql, "`\"“”") {
		return readonly("a backslash beside quoted names is not allowed here")
	}
	for _, p := range q.params {
		if strings.Contains(q.sql, "Identifier") && (outside.MatchString(p.value) || strings.Contains(p.value, `\`)) {
			return readonly("the name in parameter " + p.name + " is not allowed here")
		}
	}
	return nil
}

// harmless tells the settings that only shape the output. output_format_schema would write a file.
func harmless(name string) bool {
	if name == "output_format_schema" {
		return false
	}
	for _, prefix := range []string{"output_format_", "format_csv_", "format_tsv_", "date_time_output_format"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
