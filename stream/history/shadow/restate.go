package shadow

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
)

// Kinds of restatements.
const (
	KindAdded   = "added"   // there was no such row
	KindRemoved = "removed" // there is none any more
	KindChanged = "changed" // other values
)

// Restated counts the rows of a table that its shadow has otherwise.
type Restated struct {
	Added, Removed, Changed int64
	// Renewed counts rows with the same values that another version of the logic made, or another place in the log caused.
	Renewed int64
	// Listed is how many of those added, removed and changed were handed over.
	Listed int64
}

// All is how many rows are restated.
func (r Restated) All() int64 { return r.Added + r.Removed + r.Changed }

// pageRows is how many restatements are read with one statement: it bounds the memory for their values.
const pageRows = 10_000

// Restatements compares as Compare does, counts the rows that the shadow has otherwise, and hands over the first of them with their values,
// at most so many: in the order of the day of their key, within it of their time, then of their key. The same tables give the same ones.
// Table and key, times, values and digests of what is handed over are set, and which logic made the rows.
func (t Tables) Restatements(
	ctx context.Context, table string, generation uint32, bounds []Bounds, most int64, emit func(*eventsv1.Restatement) error, progress func(done, all int64),
) (Restated, error) {
	var found Restated
	c, err := t.comparer(ctx, table, generation, bounds)
	if err != nil {
		return found, err
	}
	all, _, err := c.slices(ctx)
	if err != nil {
		return found, fmt.Errorf("comparing %s: %w", table, err)
	}
	r := restater{comparer: c, emit: emit, left: most}
	var rows, done int64
	for _, sl := range all {
		rows += sl.rows
	}
	for len(all) > 0 {
		next := slices.IndexFunc(all, func(sl slice) bool { return !sl.day.Equal(all[0].day) })
		if next < 0 {
			next = len(all)
		}
		day := all[:next]
		all = all[next:]
		if err := r.restate(ctx, day, &found); err != nil {
			return found, fmt.Errorf("reading what changes of %s: %w", table, err)
		}
		for _, sl := range day {
			done += sl.rows
		}
		progress(done, rows)
	}
	found.Listed = most - r.left
	return found, nil
}

// restater hands over the restatements of one table.
type restater struct {
	comparer
	emit func(*eventsv1.Restatement) error
	left int64
}

// restate counts those of the slices of a day and hands over the first.
func (r *restater) restate(ctx context.Context, day []slice, found *Restated) error {
	// differing are the slices in which rows are restated, at how many of each time.
	var differing []slice
	at := map[int64]int64{}
	for _, sl := range day {
		n, err := r.count(ctx, sl, at, found)
		if err != nil {
			return err
		}
		if n > 0 {
			differing = append(differing, sl)
		}
	}
	conditions := []string{"true"}
	room := r.left
	for _, t := range slices.Sorted(maps.Keys(at)) {
		if room -= at[t]; room < 0 { // of the times before all are handed over, of this one as many as are left
			conditions = []string{fmt.Sprintf("t < toInt64(%d)", t), fmt.Sprintf("t = toInt64(%d)", t)}
			break
		}
	}
	for _, condition := range conditions {
		for _, sl := range differing {
			if r.left == 0 {
				return nil
			}
			if err := r.list(ctx, sl, condition); err != nil {
				return err
			}
		}
	}
	return nil
}

// restatedSQL selects the keys of a slice whose values differ, with their time and kind; those of equal values have an empty one.
func (r *restater) restatedSQL(sl slice) string {
	return fmt.Sprintf("SELECT %s, t, multiIf(verdict = '%s', '%s', verdict = '%s', '%s', hl.2 != hs.2, '%s', '') AS r_kind FROM (%s) WHERE verdict IN ('%s', '%s', '%s')",
		r.key(), DiffMissing, KindAdded, DiffExtra, KindRemoved, KindChanged,
		r.rowsSQL(sl, fmt.Sprintf("(%s, %s)", hashSQL(r.shape.values), hashSQL(r.content()))), DiffMissing, DiffExtra, DiffDifferent)
}

func (r *restater) key() string { return strings.Join(r.shape.key, ", ") }

// digestSQL is a hash of what a row has, whichever place and version made it.
func (r *restater) digestSQL() string {
	return "sipHash128(" + strings.Join(r.content(), ", ") + ")"
}

// content are the values of a row that are no key, place or version.
func (r *restater) content() []string {
	return r.valuesOf(func(i int) string { return r.shape.values[i] })
}

// valuesOf maps the columns that are no key, place or version.
func (r *restater) valuesOf(f func(i int) string) (all []string) {
	for i, name := range r.shape.columns {
		if !slices.Contains(r.shape.key, name) && !slices.Contains(placeColumns, name) {
			all = append(all, f(i))
		}
	}
	if len(all) == 0 {
		return []string{"''"}
	}
	return all
}

// placeColumns state what caused a row, and which of two stays.
var placeColumns = []string{"log_partition", "log_offset", "version"}

// count adds the restatements of a slice up, and those at each time.
func (r *restater) count(ctx context.Context, sl slice, at map[int64]int64, found *Restated) (restated int64, err error) {
	rows, err := r.store.Conn().Query(ctx, "SELECT r_kind, t, toInt64(count()) FROM ("+r.restatedSQL(sl)+") GROUP BY r_kind, t")
	if err != nil {
		return 0, history.Unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var kind string
		var t, n int64
		if err := rows.Scan(&kind, &t, &n); err != nil {
			return 0, err
		}
		switch kind {
		case KindAdded:
			found.Added += n
		case KindRemoved:
			found.Removed += n
		case KindChanged:
			found.Changed += n
		default:
			found.Renewed += n
			continue
		}
		at[t] += n
		restated += n
	}
	return restated, history.Unavailable(rows.Err())
}

// list hands over the restatements of a slice at the times of a condition, page by page.
func (r *restater) list(ctx context.Context, sl slice, condition string) error {
	for skip := int64(0); r.left > 0; skip += pageRows {
		page, err := r.page(ctx, sl, condition, skip, min(r.left, pageRows))
		if err != nil {
			return err
		}
		for _, restatement := range page {
			if err := r.emit(restatement); err != nil {
				return err
			}
		}
		r.left -= int64(len(page))
		if len(page) < pageRows {
			return nil
		}
	}
	return nil
}

// page reads restatements with the values of both rows, each as an array of texts: '=' and the text, or nothing for NULL.
func (r *restater) page(ctx context.Context, sl slice, condition string, skip, most int64) ([]*eventsv1.Restatement, error) {
	texts := r.valuesOf(func(i int) string { return r.textSQL(i) })
	keys := make([]string, len(r.shape.key))
	for i, name := range r.shape.key {
		keys[i] = r.keySQL(name)
	}
	coin := "''"
	if slices.Contains(r.shape.columns, "coin_id") {
		coin = "toString(coin_id)"
	}
	found := fmt.Sprintf("SELECT %s, t AS r_t, r_kind FROM (%s) WHERE r_kind != '' AND %s ORDER BY t, %s LIMIT %d OFFSET %d", r.key(), r.restatedSQL(sl), condition, r.key(), most, skip)
	side := func(table string, live int) string {
		return fmt.Sprintf("SELECT %s, %s AS r_coin, %d AS r_live, toUInt32(bitShiftRight(version, 64)) AS r_logic, lower(hex(%s)) AS r_digest, [%s] AS r_texts FROM %s FINAL WHERE %s AND (%s) IN (SELECT %s FROM (%s))",
			r.key(), coin, live, r.digestSQL(), strings.Join(texts, ", "), table, r.withinSQL(sl), r.key(), r.key(), found)
	}
	query := fmt.Sprintf(`SELECT [%s], r_t, r_kind, r_coins, r_logics, r_digests, r_lives, r_values FROM (%s) AS listed INNER JOIN (
			SELECT %s, any(r_coin) AS r_coins, groupArray(r_live) AS r_lives, groupArray(r_logic) AS r_logics, groupArray(r_digest) AS r_digests, groupArray(r_texts) AS r_values
			FROM (%s UNION ALL %s) GROUP BY %s) AS said USING (%s) ORDER BY r_t, %s`,
		strings.Join(keys, ", "), found, r.key(), side(r.table, 1), side(r.shadow, 0), r.key(), r.key(), r.key())
	rows, err := r.store.Conn().Query(ctx, query)
	if err != nil {
		return nil, history.Unavailable(err)
	}
	defer rows.Close()
	var page []*eventsv1.Restatement
	for rows.Next() {
		var key, digests []string
		var seconds int64
		var lives []uint8
		var logics []uint32
		var values [][]string
		restatement := &eventsv1.Restatement{Table: r.table}
		if err := rows.Scan(&key, &seconds, &restatement.Kind, &restatement.CoinId, &logics, &digests, &lives, &values); err != nil {
			return nil, err
		}
		restatement.EventTime = seconds * int64(time.Second)
		for i, name := range r.shape.key {
			restatement.Key = append(restatement.Key, &eventsv1.RestatedValue{Name: name, Value: key[i]})
		}
		var before, after []said
		for i, live := range lives {
			if live == 1 {
				restatement.LogicBefore, restatement.DigestBefore, before = logics[i], digests[i], r.said(values[i])
			} else {
				restatement.LogicAfter, restatement.DigestAfter, after = logics[i], digests[i], r.said(values[i])
			}
		}
		restatement.Before, restatement.After, restatement.Others = differing(before, after)
		page = append(page, restatement)
	}
	return page, history.Unavailable(rows.Err())
}

// textSQL is a column as text; a list, and what else has no text of its own, by a hash.
func (r *restater) textSQL(i int) string {
	name := "`" + r.shape.columns[i] + "`"
	switch kind := r.shape.types[i]; {
	case isList(kind):
		return "toString(sipHash64(" + name + "))"
	case strings.HasPrefix(kind, "FixedString("):
		return "concat('=', lower(hex(" + name + ")))"
	case strings.HasPrefix(kind, "Nullable("):
		return "ifNull(concat('=', toString(" + name + ")), '')"
	default:
		return "concat('=', toString(" + name + "))"
	}
}

func isList(kind string) bool {
	return strings.HasPrefix(kind, "Array(") || strings.HasPrefix(kind, "Map(") || strings.HasPrefix(kind, "Tuple(")
}

// said is what a row has in one column.
type said struct {
	name, text string
	// list is a column for which no value is kept, only whether it differs.
	list, null bool
}

// said takes the texts of a row apart. Where a column holds a whole record, its fields take the place of it.
func (r *restater) said(texts []string) (all []said) {
	n := 0
	r.valuesOf(func(i int) string {
		name, text := r.shape.columns[i], texts[n]
		n++
		switch {
		case isList(r.shape.types[i]):
			name, _, _ = strings.Cut(name, ".")
			all = append(all, said{name: name, text: text, list: true})
		case r.table == "prices_1h" && name == "record":
			all = append(all, saidByPrice(strings.TrimPrefix(text, "="))...)
		case text == "":
			all = append(all, said{name: name, null: true})
		default:
			all = append(all, said{name: name, text: text[1:]})
		}
		return ""
	})
	return all
}

// saidByPrice is what a recorded price has, in the order of its fields.
func saidByPrice(record string) (all []said) {
	price := &eventsv1.Price{}
	if err := price.UnmarshalVT([]byte(record)); err != nil {
		return []said{{name: "record", text: hex.EncodeToString([]byte(record))}}
	}
	message := price.ProtoReflect()
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		value := message.Get(f)
		switch {
		case f.IsList():
			alone := message.New()
			alone.Set(f, value)
			text, err := proto.MarshalOptions{Deterministic: true}.Marshal(alone.Interface())
			if err != nil {
				text = []byte(err.Error())
			}
			all = append(all, said{name: string(f.Name()), text: string(text), list: true})
		case f.Kind() == protoreflect.DoubleKind:
			all = append(all, said{name: string(f.Name()), text: strconv.FormatFloat(value.Float(), 'g', -1, 64)})
		default:
			all = append(all, said{name: string(f.Name()), text: value.String()})
		}
	}
	return all
}

// differing are the values that two rows of one key have otherwise, and the columns of lists. Where there is but one row they are all
// of it.
func differing(before, after []said) (was, is []*eventsv1.RestatedValue, others []string) {
	put := func(to *[]*eventsv1.RestatedValue, v said) {
		switch {
		case v.list && !slices.Contains(others, v.name):
			others = append(others, v.name)
		case !v.list && !v.null:
			*to = append(*to, &eventsv1.RestatedValue{Name: v.name, Value: v.text})
		}
	}
	both := len(before) > 0 && len(after) > 0
	for i := range max(len(before), len(after)) {
		if both && before[i] == after[i] {
			continue
		}
		if i < len(before) {
			put(&was, before[i])
		}
		if i < len(after) {
			put(&is, after[i])
		}
	}
	return was, is, others
}
