package oracle

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Row is a row of a view, by the names of its columns. NULL is nil, an instant a time.Time, a list a slice and a named tuple a
// map.
type Row map[string]any

// View is all rows of a view.
type View struct {
	Name string
	// Key are the columns that identify its rows.
	Key  []string
	Rows []Row
}

// ReadView reads all columns of all rows of a view of analysts.
func ReadView(ctx context.Context, conn driver.Conn, name string, key ...string) (View, error) {
	rows, err := conn.Query(ctx, "SELECT * FROM default."+name)
	if err != nil {
		return View{}, fmt.Errorf("asking for %s: %w", name, err)
	}
	defer rows.Close()
	v := View{Name: name, Key: key}
	for rows.Next() {
		values := make([]any, len(rows.Columns()))
		for i, t := range rows.ColumnTypes() {
			values[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(values...); err != nil {
			return View{}, fmt.Errorf("reading %s: %w", name, err)
		}
		row := Row{}
		for i, column := range rows.Columns() {
			row[column] = reflect.ValueOf(values[i]).Elem().Interface()
		}
		v.Rows = append(v.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return View{}, fmt.Errorf("reading %s: %w", name, err)
	}
	return v, nil
}

// publishedColumn is when a row could be read first. It does not depend on what was folded, and is compared only where it is wanted:
// TestDemoPublishesNothingBeforeItHappened holds it.
const publishedColumn = "published"

// CompareViews names every row that one view has and the other has not, and every column that differs. Floats are the same if
// they differ by a part in a million million, or in columns that are small differences of large numbers by a part in a thousand
// million of their unit.
func CompareViews(want, got View) []string {
	wanted, wrong := want.byKey("wanted")
	found, twice := got.byKey("found")
	wrong = append(wrong, twice...)
	for key, row := range wanted {
		other, ok := found[key]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s is missing: want %v", key, row))
			continue
		}
		for _, column := range columnsOf(row, other) {
			if _, given := row[column]; column == publishedColumn && !given {
				continue
			}
			if w, g := flatten(column, row[column]), flatten(column, other[column]); !sameFields(w, g) {
				wrong = append(wrong, fmt.Sprintf("%s: %s is %v, want %v", key, column, g, w))
			}
		}
	}
	for key, row := range found {
		if _, ok := wanted[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s should not be: got %v", key, row))
		}
	}
	sort.Strings(wrong)
	return wrong
}

func (v View) byKey(side string) (rows map[string]Row, wrong []string) {
	rows = map[string]Row{}
	for _, row := range v.Rows {
		var parts []string
		for _, column := range v.Key {
			for _, f := range flatten(column, row[column]) {
				parts = append(parts, f.text)
			}
		}
		key := v.Name + " of " + strings.Join(parts, " ")
		if rows[key] != nil {
			wrong = append(wrong, fmt.Sprintf("%s is twice among those %s", key, side))
		}
		rows[key] = row
	}
	return rows, wrong
}

func columnsOf(rows ...Row) []string {
	names := map[string]bool{}
	for _, row := range rows {
		for name := range row {
			names[name] = true
		}
	}
	var list []string
	for name := range names {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}

// flatten writes a value as its numbers and words.
func flatten(name string, value any) []field {
	if at, ok := value.(time.Time); ok {
		return []field{{name: name, text: at.UTC().Format(time.RFC3339Nano)}}
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return []field{{name: name, text: "NULL"}}
	case reflect.Pointer:
		if v.IsNil() {
			return []field{{name: name, text: "NULL"}}
		}
		return flatten(name, v.Elem().Interface())
	case reflect.Float64:
		return []field{{name: name, number: v.Float()}}
	case reflect.Slice:
		fields := []field{{name: name, text: fmt.Sprintf("%d values", v.Len())}}
		for i := range v.Len() {
			fields = append(fields, flatten(fmt.Sprintf("%s[%d]", name, i), v.Index(i).Interface())...)
		}
		return fields
	case reflect.Map:
		var fields []field
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
		for _, k := range keys {
			fields = append(fields, flatten(name+"."+k.String(), v.MapIndex(k).Interface())...)
		}
		return fields
	default:
		return []field{{name: name, text: fmt.Sprint(value)}}
	}
}

func sameFields(want, got []field) bool {
	if len(want) != len(got) {
		return false
	}
	for i, w := range want {
		g := got[i]
		apart := 1e-12 * math.Max(math.Abs(w.number), math.Abs(g.number))
		if strings.Contains(w.name, "change") || strings.Contains(w.name, "bps") {
			apart = math.Max(apart, 1e-9)
		}
		if w.name != g.name || w.text != g.text || !(math.Abs(w.number-g.number) <= apart) {
			return false
		}
	}
	return true
}

// instant is a time of the log as a column has it.
func instant(at int64) time.Time { return time.Unix(0, at).UTC() }

// known is NULL for a time that is not reported.
func known(at int64) any {
	if at == 0 {
		return nil
	}
	return instant(at)
}

// newest keeps of sayings with the same key the last, in the order of the log.
func newest[T any](records []T, key func(T) string) []T {
	last := map[string]int{}
	for i, s := range records {
		last[key(s)] = i
	}
	var kept []T
	for i, s := range records {
		if last[key(s)] == i {
			kept = append(kept, s)
		}
	}
	return kept
}

// group puts what has the same name together, and returns the names in order.
func group[T any](list []T, name func(T) string) (names []string, groups map[string][]T) {
	groups = map[string][]T{}
	for _, v := range list {
		n := name(v)
		if groups[n] == nil {
			names = append(names, n)
		}
		groups[n] = append(groups[n], v)
	}
	sort.Strings(names)
	return names, groups
}
