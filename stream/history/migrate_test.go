package history_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
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

// Wherever a migration is cut off, before or after a statement took effect, the next one completes it.
func TestInterruptedMigrationIsMadeAgain(t *testing.T) {
	whole := newStore(t)
	want := queryStrings(t, whole, schema, whole.Database())
	cut := errors.New("cut off")
	for _, late := range []bool{false, true} {
		for n, ended := 0, false; !ended; n += 41 {
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
	want := []string{"v_backfill", "v_candles_1d", "v_candles_1h", "v_candles_1m", "v_chains", "v_coin_events", "v_coins", "v_dead_letters", "v_defi", "v_defi_lists", "v_defi_past", "v_earn_benchmark", "v_earn_changes", "v_earn_products", "v_fear_greed", "v_fetches", "v_fiat", "v_fixings",
		"v_gaps", "v_global", "v_global_past", "v_lag", "v_mappings", "v_markets", "v_movers", "v_peg", "v_peg_episodes", "v_prices", "v_protocols", "v_rates", "v_rates_daily", "v_rates_hourly", "v_sentiment", "v_sources", "v_ticks", "v_usage", "v_venue_candles_1m"}
	if !slices.Equal(views, want) {
		t.Errorf("got views %v, want %v", views, want)
	}
	mute := queryStrings(t, store, `SELECT name FROM system.tables WHERE database = 'default' AND name LIKE 'v\\_%' AND comment = ''
		UNION ALL SELECT concat(table, '.', name) FROM system.columns WHERE database = 'default' AND table LIKE 'v\\_%' AND comment = ''`)
	if len(mute) > 0 {
		t.Errorf("got no comment on %v", mute)
	}
	for _, view := range views {
		queryStrings(t, store, "SELECT toString(tuple(*)) FROM default."+view)
	}
}
