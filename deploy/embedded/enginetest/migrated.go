package enginetest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/marketlog/marketlog/stream/history"
)

// Making the tables and views of a database takes a second of processor time, and emptying them a tenth of that: a database
// goes from one test to the next.
var migrated struct {
	sync.Mutex
	free []pristine
}

// pristine is a migrated database without rows, and what its tables were made by.
type pristine struct{ name, schema string }

// Migrated names a database that no other test of this process has while t runs, with all tables and no rows, and the way to it.
// When t ends its tables are emptied for the next test, and dropped if t made, altered or dropped one.
func Migrated(t testing.TB) (name string, way http.RoundTripper) {
	t.Helper()
	migrated.Lock()
	defer migrated.Unlock()
	var p pristine
	if n := len(migrated.free); n > 0 {
		p, migrated.free = migrated.free[n-1], migrated.free[:n-1]
	} else {
		p.name, way = KeptDatabase(t)
		if err := migrate(p.name, way); err != nil {
			t.Fatal(err)
		}
		p.schema = schemaOf(t, p.name)
	}
	t.Cleanup(func() {
		if schemaOf(t, p.name) != p.schema {
			drop(t, p.name)
			return
		}
		empty(t, p.name)
		migrated.Lock()
		defer migrated.Unlock()
		migrated.free = append(migrated.free, p)
	})
	return p.name, shared.Transport()
}

func migrate(name string, way http.RoundTripper) error {
	ctx := context.Background() // the database outlives the test
	store, err := history.Open(ctx, history.Config{Database: name, Transport: way})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	return store.Close()
}

// schemaOf is the statements that would make the tables of a database.
func schemaOf(t testing.TB, name string) string {
	t.Helper()
	return ask(t, fmt.Sprintf("SELECT name, create_table_query FROM system.tables WHERE database = '%s' ORDER BY name", name))
}

// empty removes all rows of a migrated database but the versions of its tables.
func empty(t testing.TB, name string) {
	t.Helper()
	tables := ask(t, fmt.Sprintf("SELECT DISTINCT table FROM system.parts WHERE database = '%s' AND active AND table != 'goose_db_version'", name))
	for table := range strings.FieldsSeq(tables) {
		ask(t, fmt.Sprintf("TRUNCATE TABLE %s.%s", name, table))
	}
}

func drop(t testing.TB, name string) {
	t.Helper()
	ask(t, "DROP DATABASE IF EXISTS "+name)
}

// ask is for what must succeed after a test.
func ask(t testing.TB, statement string) string {
	t.Helper()
	answer, err := shared.Ask(statement, "TabSeparated")
	if err != nil {
		t.Errorf("%s: %v", statement, err)
	}
	return answer
}
