package fiat_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/stream/history/read"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// watched reports when beginnings were read.
type watched struct {
	read.Reader
	read func()
}

func (s *watched) CurrenciesSince(ctx context.Context) (map[string]time.Time, error) {
	defer s.read()
	return s.Reader.CurrenciesSince(ctx)
}

func newFixture(t testing.TB) *querytest.Fixture {
	coins := querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,")
	w := querytest.NewFixture(t, coins)
	w.Open(enginetest.Migrated(t))
	store := &watched{Reader: w.History()}
	unit := fiat.New(coins, w.Catalog, nil, store)
	w.Lines["remember"] = func([]string) { // reads what the store holds
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		store.read = cancel
		if err := unit.Run(ctx, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
			t.Fatalf("reading the beginnings of currencies: %v, want only the end of the context", err)
		}
	}
	w.Serve(unit.Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
