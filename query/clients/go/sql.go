package marketlog

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// FileFormat is how a file has rows.
type FileFormat string

// The formats of files.
const (
	Parquet      FileFormat = "Parquet"
	ArrowStream  FileFormat = "ArrowStream"
	CSVWithNames FileFormat = "CSVWithNames"
)

// Rows are those of a statement. Numbers are float64, and integers of 64 bits texts, as in JSON; Parquet and Arrow have them as numbers.
type Rows struct {
	Columns []string
	Types   []string // of ClickHouse
	Rows    [][]any
}

// All gives each row by the names of its columns.
func (r *Rows) All() iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for _, values := range r.Rows {
			row := make(map[string]any, len(values))
			for i, value := range values {
				row[r.Columns[i]] = value
			}
			if !yield(row) {
				return
			}
		}
	}
}

const sqlPath = "/api/v1/sql"

// SQL gives the rows of a statement, at most 100,000. parameters are the values of its {name:Type}: texts, numbers, booleans and times; a nil map is
// none.
func (c *Client) SQL(ctx context.Context, query string, parameters map[string]any) (*Rows, error) {
	body, err := statement(query, parameters)
	if err != nil {
		return nil, err
	}
	text, err := c.send(ctx, "POST", sqlPath, body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Meta []struct{ Name, Type string }
		Data [][]any
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("reading the rows: %w", err)
	}
	rows := &Rows{Rows: answer.Data}
	for _, column := range answer.Meta {
		rows.Columns, rows.Types = append(rows.Columns, column.Name), append(rows.Types, column.Type)
	}
	for i, row := range rows.Rows {
		if len(row) != len(rows.Columns) {
			return nil, fmt.Errorf("row %d has %d values, for %d columns", i, len(row), len(rows.Columns))
		}
	}
	return rows, nil
}

// SQLFile gives the rows of a statement as a file, at most 5,000,000; parameters are as of SQL.
func (c *Client) SQLFile(ctx context.Context, query string, parameters map[string]any, format FileFormat) ([]byte, error) {
	body, err := statement(query, parameters)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, "POST", sqlPath+"?format="+string(format), body)
}

// statement is the body of a statement; the server takes the values of parameters as texts.
func statement(query string, parameters map[string]any) (map[string]any, error) {
	texts := map[string]string{}
	for name, value := range parameters {
		switch value := value.(type) {
		case string, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
			texts[name] = fmt.Sprint(value)
		case time.Time:
			texts[name] = value.UTC().Format("2006-01-02 15:04:05.999999999")
		default:
			return nil, fmt.Errorf("the parameter %s is a %T; give a text, a number, a boolean or a time", name, value)
		}
	}
	return map[string]any{"query": query, "parameters": texts}, nil
}
