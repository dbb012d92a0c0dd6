package export

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/stream/history"
)

// columnsOf are the columns of a dataset's files in a format, with their types in the form that is written.
func columnsOf(ctx context.Context, store *history.Store, d Dataset, f Format) ([]column, error) {
	comments := map[string]string{}
	var names []string
	err := each(ctx, store, "SELECT name, comment FROM system.columns WHERE database = 'default' AND table = "+quoted(d.view)+" ORDER BY position", func(row [2]string) {
		names = append(names, row[0])
		comments[row[0]] = row[1]
	})
	if err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", d.view, err)
	}
	if d.columns != nil {
		names = d.columns
	}
	var raw []string
	for _, name := range names {
		raw = append(raw, exprOf(d, name)+" AS "+name)
	}
	var all []column
	err = each(ctx, store, "DESCRIBE TABLE (SELECT "+strings.Join(raw, ", ")+" FROM "+inDatabase(store, d.rows())+")", func(row [2]string) {
		c := written(row[0], row[1], exprOf(d, row[0]))
		c.comment = comments[c.name]
		if own, ok := d.comments[c.name]; ok {
			c.comment = own
		}
		all = append(all, c)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", d.Name, err)
	}
	if f.tardis {
		return slices.Clone(tardisColumns[d.Name]), nil
	}
	if f.flat {
		all = slices.DeleteFunc(all, func(c column) bool { return strings.HasPrefix(c.kind, "Array(") || strings.HasPrefix(c.kind, "Tuple(") })
	}
	return all, nil
}

func exprOf(d Dataset, name string) string {
	if expr, ok := d.exprs[name]; ok {
		return expr
	}
	return "`" + name + "`"
}

// written is a column in the form that every reader takes: dictionaries and enumerations as text, times of seconds as timestamps,
// which Parquet and Arrow would have as numbers.
func written(name, kind, expr string) column {
	c := column{name: name, kind: strings.ReplaceAll(kind, "LowCardinality(String)", "String"), expr: expr}
	switch {
	case strings.HasPrefix(kind, "LowCardinality("):
		c.expr = "toString(" + expr + ")"
	case strings.HasPrefix(kind, "Enum"):
		c.kind, c.expr = "String", "toString("+expr+")"
	case kind == "DateTime('UTC')":
		c.kind, c.expr = "DateTime64(3, 'UTC')", "toDateTime64("+expr+", 3, 'UTC')"
	}
	return c
}

// each hands the first two columns of each row of texts to take.
func each(ctx context.Context, store *history.Store, statement string, take func([2]string)) error {
	rows, err := store.Conn().Query(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	texts := make([]string, len(rows.Columns()))
	var cells []any
	for i := range texts {
		cells = append(cells, &texts[i])
	}
	for rows.Next() {
		if err := rows.Scan(cells...); err != nil {
			return err
		}
		take([2]string(texts[:2]))
	}
	return rows.Err()
}

// inDatabase names the database of the tables.
func inDatabase(store *history.Store, sql string) string {
	return strings.ReplaceAll(sql, "{db}", "`"+store.Database()+"`")
}
