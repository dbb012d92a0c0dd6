package tables

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// View is a view of analysts as its file declares it.
type View struct {
	Name, Comment string
	Columns       []Column
	// Parameters means that it takes some, as a function does. The engine lists no columns of such a view: they follow from the values.
	Parameters bool
}

// Column is a column of a view: its type in ClickHouse's words, and its unit and meaning.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Comment string `json:"comment"`
}

var (
	viewHead   = regexp.MustCompile(`^CREATE OR REPLACE VIEW default\.(v_[a-z0-9_]+)\n\(\n`)
	viewColumn = regexp.MustCompile(`^    ([a-z0-9_]+) (.+?) COMMENT '((?:[^']|'')*)',?$`)
	viewTail   = regexp.MustCompile(`\nCOMMENT '((?:[^']|'')*)'\n?$`)
	parameter  = regexp.MustCompile(`\{[a-z]+:`)
	lowCard    = regexp.MustCompile(`LowCardinality\((\w+)\)`)
)

// Declared reads the declarations of all views of analysts, in the order of their names. It fails where a file has another form than the
// others, which a test rules out.
func Declared() ([]View, error) {
	files, err := fs.Glob(Views, "views/v_*.sql")
	if err != nil {
		return nil, err
	}
	var list []View
	for _, file := range files {
		text, err := fs.ReadFile(Views, file)
		if err != nil {
			return nil, err
		}
		head, tail := viewHead.FindSubmatch(text), viewTail.FindSubmatch(text)
		if head == nil || tail == nil || "views/"+string(head[1])+".sql" != file {
			return nil, fmt.Errorf("%s: want one statement that begins with the name of the file and ends with a comment", file)
		}
		v := View{Name: string(head[1]), Comment: unquoted(string(tail[1])), Parameters: parameter.Match(text)}
		declared, _, ends := strings.Cut(string(text[len(head[0]):]), "\n)\n")
		if !ends {
			return nil, fmt.Errorf("%s: the columns do not end with a bracket on a line of its own", file)
		}
		for line := range strings.SplitSeq(declared, "\n") {
			match := viewColumn.FindStringSubmatch(line)
			if match == nil {
				return nil, fmt.Errorf("%s: want NAME TYPE COMMENT 'TEXT', got %q", file, line)
			}
			v.Columns = append(v.Columns, Column{match[1], lowCard.ReplaceAllString(match[2], "$1"), unquoted(match[3])})
		}
		list = append(list, v)
	}
	return list, nil
}

func unquoted(text string) string { return strings.ReplaceAll(text, "''", "'") }
