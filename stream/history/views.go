package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/schemas/tables"
	"github.com/marketlog/marketlog/stream/faults"
)

// viewIntervals are the intervals that a view which names {interval} is made for, and the function that finds the start of
// one.
var viewIntervals = []struct {
	name, floor string
	length      time.Duration
}{
	{"1h", "toStartOfHour", time.Hour},
	{"1d", "toStartOfDay", 24 * time.Hour},
}

// createViews recreates all views, unless they are there as this version makes them: some sixty statements, at each start of a node. Those of
// analysts live in the default database, so that a plain client finds them without naming one.
func (s *Store) createViews(ctx context.Context) error {
	names, err := fs.Glob(tables.Views, "views/*.sql")
	if err != nil {
		return fmt.Errorf("listing views: %w", err)
	}
	var statements []string
	texts := sha256.New()
	for _, name := range names {
		text, err := tables.Views.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		for _, statement := range viewStatements(string(text), s.cfg.Database) {
			statements = append(statements, statement)
			fmt.Fprintf(texts, "%d %s", len(statement), statement)
		}
	}
	wanted := hex.EncodeToString(texts.Sum(nil))
	found, recorded, err := s.viewsMade(ctx, statements)
	if err != nil {
		return err
	}
	if recorded == wanted+" "+found {
		return nil
	}
	for _, statement := range statements {
		if err := s.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("creating view %s: %w", viewName(statement), Unavailable(err))
		}
		faults.Hit("migrate.view")
	}
	if found, _, err = s.viewsMade(ctx, statements); err != nil {
		return err
	}
	// Recorded last: views that were made in part, or changed since by another version or by hand, are made again.
	if err := s.conn.Exec(ctx, "ALTER TABLE "+viewsRecord+" MODIFY COMMENT "+Literal(viewsComment+wanted+" "+found)); err != nil {
		return fmt.Errorf("recording the digest of the views: %w", Unavailable(err))
	}
	return nil
}

const (
	// viewsRecord is the table whose comment records the views: it is there before all others.
	viewsRecord  = "goose_db_version"
	viewsComment = "views "
)

// viewsMade is a digest of the views as the store has them, and what was recorded when they were made: the digest of their statements, and
// this one then.
func (s *Store) viewsMade(ctx context.Context, statements []string) (found, recorded string, err error) {
	databases, names := []string{s.cfg.Database}, []string{viewsRecord}
	for _, statement := range statements {
		database, name, _ := strings.Cut(viewName(statement), ".")
		if !slices.Contains(databases, database) {
			databases = append(databases, database)
		}
		names = append(names, name)
	}
	// Databases and names are conditions of their own, so that the store looks at no others. No view has the name of one in another database.
	err = s.conn.QueryRow(ctx, "SELECT lower(hex(groupBitXorIf(sipHash64(database, name, create_table_query), engine = 'View'))), "+
		"anyIf(comment, name = "+Literal(viewsRecord)+" AND database = "+Literal(s.cfg.Database)+") "+
		"FROM system.tables WHERE database IN ("+Literals(databases)+") AND name IN ("+Literals(names)+")").
		Scan(&found, &recorded)
	if err != nil {
		return "", "", fmt.Errorf("reading the views: %w", Unavailable(err))
	}
	return found, strings.TrimPrefix(recorded, viewsComment), nil
}

// viewName is the name of the view that a statement makes, with its database.
func viewName(statement string) string {
	_, name, _ := strings.Cut(statement, "VIEW ")
	name, _, _ = strings.Cut(name, "\n")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// tablesInViews are what views hold of our tables, which is the same for all of a process: the coins alone make 60 kB.
var tablesInViews = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"{partitions}":   strconv.Itoa(int(candlePartitions())),
		"{coins}":        coinTuples(),
		"{coin_ids}":     "[" + Literals(coinFields(schemas.Coins().All(), func(c schemas.Coin) string { return c.ID })) + "]",
		"{coin_symbols}": "[" + Literals(coinFields(schemas.Coins().All(), func(c schemas.Coin) string { return c.Symbol })) + "]",
		"{stablecoins}":  "[" + Literals(coinFields(pegged(), func(c schemas.Coin) string { return c.ID })) + "]",
		"{pegs}":         "[" + Literals(coinFields(pegged(), func(c schemas.Coin) string { return c.Peg })) + "]",
		"{clockless}":    "(" + Literals(clockless()) + ")",
	}
})

// clockless are the topics in which no clock is written.
func clockless() []string {
	var names []string
	for _, topic := range schemas.Topics {
		if topic.Clockless {
			names = append(names, topic.Name)
		}
	}
	return names
}

// candlePartitions is how many partitions of candles.v1 state how far live minutes are closed.
func candlePartitions() int32 {
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	if err != nil {
		panic(err) // a name of our own
	}
	return topic.Partitions
}

// viewStatements fills a view's text in, once for each interval if it names one.
func viewStatements(text, database string) []string {
	text = strings.ReplaceAll(text, "{database}", database)
	for name, table := range tablesInViews() {
		text = strings.ReplaceAll(text, name, table)
	}
	if !strings.Contains(text, "{interval}") {
		return []string{text}
	}
	var statements []string
	for _, i := range viewIntervals {
		statements = append(statements, strings.NewReplacer("{interval}", i.name, "{seconds}", strconv.Itoa(int(i.length/time.Second)), "{floor}", i.floor).Replace(text))
	}
	return statements
}

// coinTuples is the coin table as a list of tuples: id, symbol, kind and peg.
func coinTuples() string {
	var tuples []string
	for _, c := range schemas.Coins().All() {
		tuples = append(tuples, "("+Literals([]string{c.ID, c.Symbol, string(c.Kind), c.Peg})+")")
	}
	return "[" + strings.Join(tuples, ", ") + "]"
}

// pegged are the stablecoins of the coin table.
func pegged() []schemas.Coin {
	return slices.DeleteFunc(slices.Clone(schemas.Coins().All()), func(c schemas.Coin) bool { return c.Peg == "" })
}

func coinFields(coins []schemas.Coin, of func(schemas.Coin) string) []string {
	fields := make([]string, len(coins))
	for i, c := range coins {
		fields[i] = of(c)
	}
	return fields
}

// Literals writes strings as a list of ClickHouse, without brackets.
func Literals(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = Literal(s)
	}
	return strings.Join(quoted, ", ")
}

// LiveTable says where the candles of live prices of one length are: in which table or view, and by what expressions the number of minutes
// that each was folded from and the start of the newest of them.
type LiveTable struct{ Source, Minutes, Newest string }

// LiveCandles are these tables, by the length of their candles: a minute, an hour or a day.
var LiveCandles = map[time.Duration]LiveTable{
	time.Minute:    {"candles_1m FINAL", "toUInt16(1)", "start"},
	time.Hour:      {"candles_1h", "minutes", "newest"},
	24 * time.Hour: {"candles_1d", "minutes", "newest"},
}

// Literal writes a string as ClickHouse reads one.
func Literal(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
