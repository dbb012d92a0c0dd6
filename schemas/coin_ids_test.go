package schemas

import (
	"iter"
	"slices"
	"strings"
	"testing"
)

func TestSourcesIDsBecomeCanonical(t *testing.T) {
	for _, c := range []struct {
		why                string
		source, id, symbol string
		name, want         string
	}{
		{why: "our own source", source: "coingecko", id: "bitcoin", symbol: "btc", name: "Bitcoin", want: "bitcoin"},
		{why: "our own source lists coins that no table has", source: "coingecko", id: "harbor_9", want: "harbor_9"},
		{why: "symbol and name in the id", source: "coinpaprika", id: "btc-bitcoin", symbol: "BTC", name: "Bitcoin", want: "bitcoin"},
		{why: "the id alone", source: "coinpaprika", id: "eth-ethereum", want: "ethereum"},
		{why: "spelled with a point", source: "coinpaprika", id: "yfi-yearnfinance", symbol: "YFI", name: "yearn.finance", want: "yearn-finance"},
		{why: "an exception", source: "coinpaprika", id: "bnb-binance-coin", symbol: "BNB", name: "BNB", want: "binancecoin"},
		{why: "an exception whatever else is given", source: "coinpaprika", id: "toncoin-the-open-network", symbol: "XYZ", name: "Other", want: "the-open-network"},
		{why: "the old coin kept its id when it gave its symbol away", source: "coinpaprika", id: "luna-terra", symbol: "LUNC", name: "Terra Classic", want: "terra-luna"},
		{why: "the new coin has the name that the old id has", source: "coinpaprika", id: "luna-terra-v2", symbol: "LUNA", name: "Terra", want: "terra-luna-2"},
		{why: "another coin's id of the source is known", source: "coinpaprika", id: "usdc-usdc", symbol: "USDC", name: "USDC"},
		{why: "an id with another symbol proves nothing", source: "coinpaprika", id: "sol-solana", symbol: "SOLX", name: "Wormholed"},
		{why: "renamed, under its old id", source: "coinpaprika", id: "rpl-old-pool", symbol: "RPL", name: "Rocket Pool", want: "rocket-pool"},
		{why: "a namesake of the source's own", source: "coinpaprika", id: "pepe-pepe-2", symbol: "PEPE", name: "Pepe"},
		{why: "the name alone, of a source with numbers for ids", source: "numbers", id: "1", symbol: "btc", name: "BITCOIN", want: "bitcoin"},
		{why: "the symbol alone", source: "numbers", id: "2", symbol: "BTC"},
		{why: "the name of another", source: "numbers", id: "3", symbol: "BTC", name: "Bitcoin Classic"},
		{why: "no id", source: "coingecko", symbol: "BTC", name: "Bitcoin"},
		{why: "names without letters", source: "numbers", id: "4", symbol: "$", name: "!"},
	} {
		got, ok := CanonicalCoin(c.source, c.id, c.symbol, c.name)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: CanonicalCoin(%q, %q, %q, %q) = %q, %t, want %q", c.why, c.source, c.id, c.symbol, c.name, got, ok, c.want)
		}
	}
}

// Each exception is one: without it the id would say nothing, or another coin.
func TestEmbeddedExceptionsAreNeeded(t *testing.T) {
	rule := &CoinIDs{byName: embeddedCoinIDs().byName}
	for at, id := range embeddedCoinIDs().known {
		coin, ok := Coins().ByID(id)
		if !ok {
			t.Errorf("%s means %q, which is in no table", at.id, id)
			continue
		}
		if by, _ := rule.Canonical(at.source, at.id, coin.Symbol, ""); by == id {
			t.Errorf("%s of %s is %s by its spelling, and needs no row", at.id, at.source, id)
		}
	}
}

// moreCoinIDs distinguishes more coins than the embedded table has, by their ids, symbols and names; whatever that table
// says of a coin stays as it is.
func moreCoinIDs(coins iter.Seq[Coin]) *CoinIDs {
	embedded := embeddedCoinIDs()
	ids := &CoinIDs{known: embedded.known, claimed: embedded.claimed, byName: map[string]string{}}
	for c := range coins {
		ids.add(c)
	}
	for key, id := range embedded.byName {
		ids.byName[key] = id
	}
	return ids
}

func TestAmbiguousNamesMeanNothing(t *testing.T) {
	ids := moreCoinIDs(slices.Values([]Coin{
		{ID: "harbor", Symbol: "hbr", Name: "Harbor"},
		{ID: "harbor-2", Symbol: "hbr", Name: "Harbor Two"},
		{ID: "pier", Symbol: "pier", Name: "Pier"},
		{ID: "pier-wormhole", Symbol: "PIER", Name: "PIER."},
		{ID: "pier-again", Symbol: "pier", Name: "pier"},
		{ID: "not-bitcoin", Symbol: "btc", Name: "Bitcoin"},
		{ID: "nameless"},
	}))
	for _, c := range []struct{ id, symbol, name, want string }{
		{"hbr-harbor", "HBR", "Harbor", "harbor"},
		{"hbr-harbor-two", "HBR", "Harbor Two", "harbor-2"},
		{"pier-pier", "PIER", "Pier", ""},
		{"btc-bitcoin", "BTC", "Bitcoin", "bitcoin"},
		{"usdc-usd-coin", "USDC", "USD Coin", "usd-coin"},
		{"", "", "", ""},
	} {
		if got, ok := ids.Canonical("coinpaprika", c.id, c.symbol, c.name); got != c.want || ok != (c.want != "") {
			t.Errorf("Canonical(%q, %q, %q) = %q, %t, want %q", c.id, c.symbol, c.name, got, ok, c.want)
		}
	}
	if got, ok := CanonicalCoin("coinpaprika", "hbr-harbor", "HBR", "Harbor"); ok {
		t.Errorf("the embedded table took %q from another", got)
	}
}

func TestCoinIDFaultsAreNamedTogether(t *testing.T) {
	_, err := parseCoinIDs(`source,source_id,coin_id
coinpaprika,a-a,bitcoin
coinpaprika,a-a,ethereum
coinpaprika,b-b,bitcoin
coinpaprika,c-c,no-such-coin
coingecko,d,tether
Coin Paprika,e-e,solana
coinpaprika,,cardano
coinpaprika,f-f,
`, Coins())
	if err == nil {
		t.Fatal("faults were not found")
	}
	for _, want := range []string{
		"line 3: source_id: a-a appears twice", "line 4: coin_id: bitcoin is two coins of coinpaprika", `line 5: coin_id: "no-such-coin" is not in coins.csv`,
		`line 6: source: "coingecko"`, `line 7: source: "Coin Paprika"`, "line 8: source_id",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("faults lack %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "line 9") {
		t.Errorf("a row without a coin is a fault:\n%v", err)
	}
	if _, err := parseCoinIDs("id\n", Coins()); err == nil || !strings.Contains(err.Error(), coinIDsHeader) {
		t.Errorf("another header: %v, want it named", err)
	}
}
