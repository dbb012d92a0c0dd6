package schemas

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// What is written of a question is read as the same question, between other segments of a path, and holds nothing that a path would change.
func TestQuestionsAreReadAsTheyAreWritten(t *testing.T) {
	seed := rand.Uint64N(1e9)
	if text := os.Getenv("MARKETLOG_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("MARKETLOG_SEED=%q, want a number", text)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("drawn by MARKETLOG_SEED=%d", seed)
		}
	})
	r := rand.New(rand.NewPCG(seed, 0))
	text := func() string {
		letters := []rune("aZ09.-_~/%=?#& +:€\x00")
		drawn := make([]rune, 1+r.IntN(6))
		for i := range drawn {
			drawn[i] = letters[r.IntN(len(letters))]
		}
		return strings.TrimSpace(string(drawn)) + "x"[:r.IntN(2)]
	}
	maybe := func() string { return []string{"", text()}[r.IntN(2)] }
	for range 2_000 {
		want := SymbolQuestion{Symbol: text(), Source: VenueSlug(text()), Quote: maybe(),
			Context: SymbolContext{Exchange: maybe(), Platform: maybe(), Contract: maybe(), Name: maybe()}}
		if want.Symbol == "" || want.Source == "" {
			continue
		}
		if r.IntN(2) == 0 {
			want.Price = r.ExpFloat64() * 1e5
		}
		written := want.String()
		if strings.ContainsAny(written, "%?#& \x00") || strings.Contains("/"+written+"/", "/./") || strings.Contains("/"+written+"/", "/../") {
			t.Fatalf("%+v is written as %q", want, written)
		}
		got, rest, ok := ParseSymbolQuestion(strings.Split(written+"/score/a=b", "/"))
		if !ok || got != want || strings.Join(rest, "/") != "score/a=b" {
			t.Fatalf("%q is read as %+v, %q, %t; want %+v", written, got, rest, ok, want)
		}
	}
	for _, text := range []string{"kraken", "kraken/", "/BTC", "kraken/~4", "kraken/~zz", "kraken/BTC/price=0", "kraken/BTC/price=-1", "kraken/BTC/price=NaN", "kraken/BTC/price=Inf", "kraken/BTC/price=x",
		"kraken/BTC/name=", "kraken/BTC/colour=red", "kraken/BTC/name=a/name=b", "kraken/BTC/quote=eur/price=1"} {
		if q, _, ok := ParseSymbolQuestion(strings.Split(text, "/")); ok {
			t.Errorf("%q is read as %+v", text, q)
		}
	}
}
