package history_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/marketlog/marketlog/schemas/tables"
	"github.com/marketlog/marketlog/stream/history"
)

const schema = "SELECT create_table_query FROM system.tables WHERE database IN (?, 'default') AND name != 'goose_db_version' ORDER BY name"

func TestMigratingTwiceChangesNothing(t *testing.T) {
	store := openStore(t, newConfig(t))
	made, err := store.Migrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := queryStrings(t, store, schema, store.Database())
	if len(made) == 0 || len(before) <= len(made) {
		t.Fatalf("got %d migrations and %d tables and views", len(made), len(before))
	}
	again, err := store.Migrate(t.Context())
	if err != nil || len(again) != 0 {
		t.Fatalf("the second time: got %v, %v, want nothing to do", again, err)
	}
	if after := queryStrings(t, store, schema, store.Database()); !slices.Equal(before, after) {
		t.Errorf("the second time: got\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// Views are recreated only where they are not what this version makes.
func TestViewsAreMadeWhenTheyDiffer(t *testing.T) {
	store := newStore(t)
	ids := func() map[string]string {
		made := map[string]string{}
		for _, row := range queryStrings(t, store, "SELECT name || ' ' || toString(uuid) FROM system.tables WHERE engine = 'View' AND database IN (?, 'default') ORDER BY name", store.Database()) {
			name, id, _ := strings.Cut(row, " ")
			made[name] = id
		}
		return made
	}
	before, text := ids(), queryStrings(t, store, schema, store.Database())
	for _, c := range []struct{ name, statement string }{
		{"nothing", "SELECT 1"},
		{"one is another", "CREATE OR REPLACE VIEW default.v_fiat AS SELECT 1 AS of_another_version"},
		{"one is gone", "DROP VIEW " + store.Database() + ".live_closed"},
		{"two bear each other's name", "EXCHANGE TABLES default.v_gaps AND default.v_lag"},
		{"a view of the owner's", "CREATE VIEW default.my_own AS SELECT 1 AS x"},
	} {
		if err := store.Conn().Exec(t.Context(), c.statement); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, err := store.Migrate(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		after := ids()
		own := after["my_own"] != ""
		delete(after, "my_own")
		if same := maps.Equal(before, after); same != (c.name == "nothing" || own) {
			t.Errorf("%s: views unchanged is %t", c.name, same)
		}
		if own {
			if err := store.Conn().Exec(t.Context(), "DROP VIEW default.my_own"); err != nil {
				t.Fatal(err)
			}
		}
		if got := queryStrings(t, store, schema, store.Database()); !slices.Equal(got, text) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(text, "\n"))
		}
		before = after
	}
}

// A version changes nothing of tables that a newer one has migrated, not even the views, and says which version is needed.
func TestTablesOfANewerVersionAreRefused(t *testing.T) {
	store := newStore(t)
	newest := newestMigration(t)
	for _, statement := range []string{
		"INSERT INTO goose_db_version (version_id, is_applied, date, tstamp) VALUES (9999, 1, today(), now())",
		"ALTER TABLE ticks ADD COLUMN of_tomorrow UInt8",
		"CREATE OR REPLACE VIEW default.v_ticks AS SELECT of_tomorrow FROM " + store.Database() + ".ticks",
	} {
		if err := store.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	before := queryStrings(t, store, schema, store.Database())
	made, err := store.Migrate(t.Context())
	var newer *history.NewerError
	if !errors.As(err, &newer) || len(made) > 0 || newer.Found != 9999 || newer.Known != newest || newer.Database != store.Database() {
		t.Fatalf("got %v, %v, want a refusal of migration 9999 by a version that knows %d", made, err, newest)
	}
	for _, part := range []string{store.Database(), "9999", fmt.Sprint(newest), "backup"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if after := queryStrings(t, store, schema, store.Database()); !slices.Equal(before, after) {
		t.Errorf("refused, it left\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// newestMigration is the last one of this version, by the names of the files.
func newestMigration(t *testing.T) (newest int64) {
	t.Helper()
	for _, version := range migrationVersions(t) {
		newest = max(newest, version)
	}
	return newest
}

func migrationVersions(t *testing.T) (versions []int64) {
	t.Helper()
	entries, err := tables.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, version)
	}
	return versions
}

// Tables of every earlier version are migrated with the rows that they have.
func TestOlderTablesAreMigratedWithTheirRows(t *testing.T) {
	whole := newStore(t)
	want := queryStrings(t, whole, schema, whole.Database())
	versions := migrationVersions(t)
	for _, begun := range []int64{1, 2, 40, versions[len(versions)-2]} {
		cfg := newConfig(t)
		store := openStore(t, cfg)
		older, err := goose.NewProvider(database.DialectClickHouse, clickhouse.OpenDB(&clickhouse.Options{
			Protocol: clickhouse.HTTP, Addr: []string{"embedded:8123"}, Auth: clickhouse.Auth{Database: cfg.Database},
			TransportFunc: func(*http.Transport) (http.RoundTripper, error) { return cfg.Transport, nil },
		}), tables.Files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := older.UpTo(t.Context(), begun); err != nil {
			t.Fatal(err)
		}
		if err := store.Conn().Exec(t.Context(), "INSERT INTO ticks (coin_id, day, trade_id) VALUES ('bitcoin', '2026-11-24', 'kept')"); err != nil {
			t.Fatal(err)
		}
		made, err := store.Migrate(t.Context())
		if err != nil || len(made) == 0 || made[0].Version <= begun {
			t.Fatalf("from migration %d: got %v, %v", begun, made, err)
		}
		if rows := queryStrings(t, store, "SELECT trade_id FROM ticks"); !slices.Equal(rows, []string{"kept"}) {
			t.Errorf("from migration %d: the rows are %v", begun, rows)
		}
		got := queryStrings(t, store, schema, store.Database())
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], store.Database()+".", whole.Database()+".")
		}
		if !slices.Equal(got, want) {
			t.Errorf("from migration %d: got\n%s\nwant\n%s", begun, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// cutEvery is how many statements lie between two that are cut off in one run; the first is drawn, so that each is at some time.
const cutEvery = 31

// Wherever a migration is cut off, before or after a statement took effect, the next one completes it.
func TestInterruptedMigrationIsMadeAgain(t *testing.T) {
	whole := newStore(t)
	want := queryStrings(t, whole, schema, whole.Database())
	cut := errors.New("cut off")
	for _, late := range []bool{false, true} {
		for n, ended := rand.IntN(cutEvery), false; !ended; n += cutEvery {
			cfg := newConfig(t)
			way := &wire{RoundTripper: cfg.Transport}
			cfg.Transport = way
			store := openStore(t, cfg)
			made := 0
			fail := func() error {
				if made++; made > n {
					return cut
				}
				return nil
			}
			if late {
				way.after = fail
			} else {
				way.before = fail
			}
			_, err := store.Migrate(t.Context())
			ended = err == nil
			way.before, way.after = nil, nil
			if _, err := store.Migrate(t.Context()); err != nil {
				t.Fatalf("again after a cut at statement %d: %v", n, err)
			}
			got := queryStrings(t, store, schema, store.Database())
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], store.Database()+".", whole.Database()+".")
			}
			if !slices.Equal(got, want) {
				t.Fatalf("again after a cut at statement %d: got\n%s\nwant\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if err := store.Conn().Exec(t.Context(), "DROP DATABASE "+store.Database()); err != nil {
				t.Fatal(err)
			}
			if ended && n < 30 {
				t.Errorf("a migration makes %d statements, want those of all tables and views", n)
			}
		}
	}
}

func TestEveryViewAndColumnIsExplained(t *testing.T) {
	store := newStore(t)
	views := queryStrings(t, store, "SELECT name FROM system.tables WHERE database = 'default' AND name LIKE 'v\\_%' ORDER BY name")
	want := []string{"v_backfill", "v_candles_1d", "v_candles_1h", "v_candles_1m", "v_chains", "v_coin_events", "v_coins", "v_completeness", "v_completeness_daily", "v_corrections", "v_coverage", "v_dead_letters", "v_defi", "v_defi_lists", "v_defi_past", "v_earn_benchmark", "v_earn_changes", "v_earn_products", "v_fear_greed", "v_fetches", "v_fiat", "v_fixings",
		"v_gaps", "v_global", "v_global_past", "v_imports", "v_lag", "v_latency", "v_listings", "v_mappings", "v_markets", "v_movers", "v_peg", "v_peg_episodes", "v_prices", "v_proofs", "v_protocols", "v_quality", "v_rates", "v_rates_daily", "v_rates_hourly", "v_restated_tables", "v_restatements", "v_sentiment", "v_sources", "v_symbology", "v_ticks", "v_universe", "v_universe_at", "v_usage", "v_venue_candles_1m"}
	if !slices.Equal(views, want) {
		t.Errorf("got views %v, want %v", views, want)
	}
	mute := queryStrings(t, store, `SELECT name FROM system.tables WHERE database = 'default' AND name LIKE 'v\\_%' AND comment = ''
		UNION ALL SELECT concat(table, '.', name) FROM system.columns WHERE database = 'default' AND table LIKE 'v\\_%' AND comment = ''`)
	if len(mute) > 0 {
		t.Errorf("got no comment on %v", mute)
	}
	for _, view := range views {
		if view == "v_universe_at" {
			view += "(at = now())"
			checkDescribed(t, store, view)
		}
		queryStrings(t, store, "SELECT toString(tuple(*)) FROM default."+view)
	}
	// A join that does not look ahead needs it of every row, and ASOF takes no column that may be NULL.
	unpublished := queryStrings(t, store, `SELECT name FROM system.tables WHERE database = 'default' AND name LIKE 'v\\_%' AND name != 'v_universe_at' AND name NOT IN
		(SELECT table FROM system.columns WHERE database = 'default' AND name = 'published' AND type = 'DateTime64(9, \'UTC\')')`)
	if len(unpublished) > 0 {
		t.Errorf("%v have no column published of the type DateTime64(9, 'UTC')", unpublished)
	}
}

// checkDescribed holds the columns of a view that takes parameters against those that its file declares: the engine keeps those, and reports in
// system.columns neither them nor their comments.
func checkDescribed(t *testing.T, store *history.Store, call string) {
	t.Helper()
	name, _, _ := strings.Cut(call, "(")
	text, err := tables.Views.ReadFile("views/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n(\n")
	list, _, _ = strings.Cut(list, "\n)\n")
	var want []string
	for line := range strings.SplitSeq(list, "\n") {
		declared, _, _ := strings.Cut(line, " COMMENT '")
		want = append(want, strings.Join(strings.Fields(declared), " "))
	}
	rows, err := store.Conn().Query(t.Context(), "DESCRIBE (SELECT * FROM default."+call+")")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var column, kind, ignored string
		if err := rows.Scan(&column, &kind, &ignored, &ignored, &ignored, &ignored, &ignored); err != nil {
			t.Fatal(err)
		}
		kind = strings.NewReplacer("( ", "(").Replace(strings.Join(strings.Fields(kind), " "))
		got = append(got, column+" "+kind)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) || want[len(want)-1] != "published DateTime64(9, 'UTC')" {
		t.Errorf("%s: got %v, want %v, the last published", call, got, want)
	}
}
