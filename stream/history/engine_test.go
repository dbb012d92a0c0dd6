package history_test

import (
	"net/http"
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/stream/history"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newConfig names a database that no other test has.
func newConfig(t testing.TB) history.Config {
	t.Helper()
	database, way := enginetest.Database(t)
	return history.Config{Database: database, Transport: way}
}

func openStore(t testing.TB, cfg history.Config) *history.Store {
	t.Helper()
	store, err := history.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// newStore is a migrated store of t alone. The analysts' views belong to the test that migrated last.
func newStore(t testing.TB) *history.Store {
	t.Helper()
	database, way := enginetest.Migrated(t)
	store := openStore(t, history.Config{Database: database, Transport: way})
	if _, err := store.Migrate(t.Context()); err != nil { // the views are those of this database from now on
		t.Fatal(err)
	}
	return store
}

func queryStrings(t testing.TB, store *history.Store, query string, args ...any) []string {
	t.Helper()
	rows, err := store.Conn().Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// wire is a way to ClickHouse that a test can cut.
type wire struct {
	http.RoundTripper
	before func() error // its error is returned in place of a statement
	after  func() error // its error is returned after a statement was made
	// around makes a request in its own way; nil makes it.
	around func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.before != nil {
		if err := w.before(); err != nil {
			return nil, err
		}
	}
	do := func() (*http.Response, error) { return w.RoundTripper.RoundTrip(r) }
	if w.around != nil {
		return w.around(r, do)
	}
	resp, err := do()
	if w.after != nil && err == nil {
		if err := w.after(); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, err
}
