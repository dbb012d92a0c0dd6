package schemas

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// symbolRows reads a hand-checked list without its header.
func symbolRows(t *testing.T, name string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "symbols", name))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: got %d rows and %v, want some", name, len(rows), err)
	}
	return rows[1:]
}

const shibaContract = "0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce"

// smallCatalog has the coin table with prices, and coins that share symbols with each other and with it.
func smallCatalog() *SymbolIndex {
	coins := []SymbolCoin{
		{ID: "bitcoin", Symbol: "BTC", Name: "Bitcoin", Rank: 1, MarketCap: 2e12, Price: 100_000},
		{ID: "bitcoin-of-mars", Symbol: "BTC", Name: "Bitcoin of Mars", Rank: 4100, MarketCap: 2e5, Price: 0.02},
		{ID: "shiba-inu", Symbol: "SHIB", Name: "Shiba Inu", Rank: 30, MarketCap: 5e9, Price: 0.00001, Platforms: []SymbolPlatform{{"ethereum", shibaContract}}},
		{ID: "moss", Symbol: "MOSS", Name: "Moss", Rank: 900, MarketCap: 1e8, Price: 2, Platforms: []SymbolPlatform{{"ethereum", "0x00000000000000000000000000000000000000a1"}}},
		{ID: "moss-2", Symbol: "MOSS", Name: "Moss Carbon", Rank: 2800, MarketCap: 1e6, Price: 0.5, Platforms: []SymbolPlatform{{"polygon-pos", "0x00000000000000000000000000000000000000a2"}}},
		{ID: "far-off", Symbol: "FAR", Name: "Far Off", Rank: 3000, MarketCap: 1e6},
		{ID: "farther-off", Symbol: "FAR", Name: "Farther Off", Rank: 3900, MarketCap: 2e4},
		{ID: "quokka", Symbol: "QUOK", Name: "Quokka Token", Price: 3},
		{ID: "netcoin", Symbol: "NETC", Name: "Netcoin"},
		{ID: "ssv", Symbol: "SSVX", Name: "SSV", Rank: 800, MarketCap: 2e8, Price: 0.08},
		{ID: "bridged-ssv", Symbol: "SSVX", Name: "Bridged SSV", Price: 13.85},
		{ID: "dusty", Symbol: "DUSTY", Name: "Dusty"},
		{ID: "dusty-2", Symbol: "DUSTY", Name: "Dusty Road"},
		{ID: "bulla", Symbol: "BULLA", Name: "Bulla", Rank: 700, MarketCap: 1e7},
		{ID: "3x-long-ant-token", Symbol: "BULLA", Name: "3X Long Ant Token"},
		{ID: "berra", Symbol: "BERRA", Name: "Berra", Rank: 700, MarketCap: 1e7},
		{ID: "3x-short-ant-token", Symbol: "BERRA", Name: "3X Short Ant Token", Rank: 2000, MarketCap: 1e4},
		{ID: "anthill", Symbol: "ANTHL", Name: "Anthill", Rank: 700},
		{ID: "anthill-stock", Symbol: "ANTHL", Name: "Anthill Tokenized Stock on FTX"},
		{ID: "gone", Symbol: "QUOK", Name: "Gone", Inactive: true},
	}
	coins = slices.AppendSeq(coins, TableCoins(Coins()))
	return NewSymbolIndex(slices.Values(coins))
}

func TestSymbolsAreResolvedByTheFirstMethodThatCan(t *testing.T) {
	resolver := &Resolver{Table: Coins(), Catalog: smallCatalog(), Overrides: NewSymbolOverrides(
		&eventsv1.SymbolOverride{Source: "kraken", Symbol: "MOSS", CoinId: "moss-2", Time: 100},
		&eventsv1.SymbolOverride{Source: GeneralSource, Symbol: "DUSTY", CoinId: "dusty-2", Time: 200},
		&eventsv1.SymbolOverride{Source: GeneralSource, Symbol: "DUSTY", Time: 300},
		&eventsv1.SymbolOverride{Source: "okx", Symbol: "ETH", CoinId: NoCoin, Time: 100},
	)}
	used := map[SymbolMethod]bool{}
	for _, test := range []struct {
		name       string
		req        SymbolRequest
		coin       string
		method     SymbolMethod
		confidence int
	}{
		{"an operator's word holds for its source", SymbolRequest{Symbol: "moss", Source: "Kraken", At: 100}, "moss-2", MethodOverride, 100},
		{"not before its time", SymbolRequest{Symbol: "MOSS", Source: "kraken", At: 99}, "moss", MethodRanking, 97},
		{"nor for another source", SymbolRequest{Symbol: "MOSS", Source: "okx", At: 100}, "moss", MethodRanking, 97},
		{"a general one for all sources", SymbolRequest{Symbol: "DUSTY", Source: "okx", At: 200}, "dusty-2", MethodOverride, 100},
		{"until it is taken back", SymbolRequest{Symbol: "DUSTY", Source: "okx", At: 300}, "dusty", MethodSearch, 65},

		{"an operator's word that it is no coin", SymbolRequest{Symbol: "eth", Source: "okx", At: 100}, "", "", 0},

		{"the only coin that a venue's list has, of which nobody reports a price", SymbolRequest{Symbol: "NETC"}, "netcoin", MethodSearch, 75},
		{"a price that fits neither of two coins", SymbolRequest{Symbol: "SSVX", Price: 100}, "bridged-ssv", MethodSearch, 65},
		{"a price that is not of the only coin", SymbolRequest{Symbol: "QUOK", Price: 5}, "quokka", MethodSearch, 65},
		{"a source's own id, at a price that is not the coin's", SymbolRequest{Symbol: "moss-2", Source: "coingecko", Price: 100}, "moss-2", MethodProvider, 85},
		{"an address, at a price that is not the coin's", SymbolRequest{Symbol: shibaContract, Price: 1}, "shiba-inu", MethodProvider, 85},
		{"a venue's name, at a price that is not the coin's", SymbolRequest{Symbol: "XXBT", Source: "kraken", Price: 60_000}, "bitcoin", MethodExchange, 85},
		{"an old name at a venue, at a price that is not the coin's", SymbolRequest{Symbol: "XBT", Source: "kraken", Price: 60_000}, "bitcoin", MethodExchange, 85},
		{"a name, at a price that is not the coin's", SymbolRequest{Symbol: "Quokka Token", Price: 5}, "quokka", MethodSearch, 65},
		{"the name given, at a price that is not the coin's", SymbolRequest{Symbol: "MOSS", Price: 100, Context: SymbolContext{Name: "Moss Carbon"}}, "moss-2", MethodSearch, 65},

		{"a source's own id", SymbolRequest{Symbol: "moss-2", Source: "coingecko"}, "moss-2", MethodProvider, 100},
		{"another source's own id", SymbolRequest{Symbol: "btc-bitcoin", Source: "coinpaprika"}, "bitcoin", MethodProvider, 100},
		{"an address on its platform", SymbolRequest{Symbol: "MOSS", Context: SymbolContext{Platform: "Polygon POS", Contract: "0x00000000000000000000000000000000000000A2"}}, "moss-2", MethodProvider, 100},
		{"an address alone", SymbolRequest{Symbol: shibaContract}, "shiba-inu", MethodProvider, 95},
		{"an address with its platform before it", SymbolRequest{Symbol: "ethereum:" + shibaContract}, "shiba-inu", MethodProvider, 100},
		{"an address of nothing excludes coins with others", SymbolRequest{Symbol: "SHIB", Context: SymbolContext{Contract: "0x00000000000000000000000000000000000000ff"}}, "", "", 0},

		{"a venue's name", SymbolRequest{Symbol: "XDG", Source: "kraken"}, "dogecoin", MethodExchange, 100},
		{"a venue's name, of a coin whose price nobody reports", SymbolRequest{Symbol: "UST", Source: "bitfinex", Price: 100_000}, "tether", MethodExchange, 100},
		{"a venue's name in the context", SymbolRequest{Symbol: "UST", Source: GeneralSource, Context: SymbolContext{Exchange: "Bitfinex"}}, "tether", MethodExchange, 100},
		{"an old name at a venue", SymbolRequest{Symbol: "XBT", Source: "kraken"}, "bitcoin", MethodExchange, 95},
		{"what a venue calls otherwise is not the coin of the table", SymbolRequest{Symbol: "HOT", Source: "htx"}, "", "", 0},
		{"a former name of a venue", SymbolRequest{Symbol: "hot", Source: "Huobi"}, "", "", 0},

		{"a symbol of one coin", SymbolRequest{Symbol: "eth", Source: GeneralSource}, "ethereum", MethodUnique, 90},
		{"inactive coins do not count", SymbolRequest{Symbol: "QUOK"}, "quokka", MethodUnique, 90},
		{"the only coin, at a price that is none of its", SymbolRequest{Symbol: "QUOK", Price: 40}, "quokka", MethodSearch, 65},
		{"an old name for no venue", SymbolRequest{Symbol: "XBT"}, "bitcoin", MethodUnique, 90},

		{"the coin with the price", SymbolRequest{Symbol: "MOSS", Price: 0.52}, "moss-2", MethodPrice, 85},
		{"the coin with the price, though it is small", SymbolRequest{Symbol: "BTC", Price: 0.021}, "bitcoin-of-mars", MethodPrice, 85},
		{"a price that is of neither, but nearer to one", SymbolRequest{Symbol: "BTC", Price: 60_000}, "bitcoin", MethodSearch, 65},
		{"a price that is about that of one", SymbolRequest{Symbol: "BTC", Price: 80_000}, "bitcoin", MethodDatabase, 90},

		{"the coin of the table", SymbolRequest{Symbol: "BTC"}, "bitcoin", MethodDatabase, 89},
		{"the larger of two", SymbolRequest{Symbol: "MOSS"}, "moss", MethodRanking, 97},
		{"the larger of two that are both small", SymbolRequest{Symbol: "FAR"}, "far-off", MethodRanking, 84},
		{"a coin beside a fund that no source reports the size of", SymbolRequest{Symbol: "BULLA"}, "bulla", MethodRanking, 84},
		{"a coin beside a stock that no source reports the size of", SymbolRequest{Symbol: "ANTHL"}, "anthill", MethodRanking, 84},
		{"a coin beside a fund that is known to be small", SymbolRequest{Symbol: "BERRA"}, "berra", MethodRanking, 99},
		{"two of the table", SymbolRequest{Symbol: "FRAX"}, "frax-share", MethodRanking, 80},
		{"the one with the name", SymbolRequest{Symbol: "DUSTY", Context: SymbolContext{Name: "dusty  road"}}, "dusty-2", MethodSearch, 80},
		{"a platform leaves one", SymbolRequest{Symbol: "MOSS", Context: SymbolContext{Platform: "polygon-pos"}}, "moss-2", MethodRanking, 84},

		{"a name", SymbolRequest{Symbol: "Quokka Token"}, "quokka", MethodSearch, 80},
		{"an id", SymbolRequest{Symbol: "bitcoin-of-mars"}, "bitcoin-of-mars", MethodSearch, 80},
		{"the beginning of a name", SymbolRequest{Symbol: "quokk"}, "quokka", MethodSearch, 70},
		{"too little of a name", SymbolRequest{Symbol: "quo"}, "", "", 0},
		{"nothing", SymbolRequest{Symbol: ""}, "", "", 0},
		{"nothing that is long", SymbolRequest{Symbol: strings.Repeat("Q", 5000)}, "", "", 0},
	} {
		got := resolver.Resolve(test.req)
		id := ""
		if got.Coin != nil {
			id = got.Coin.ID
			used[got.Method] = true
			if got.Candidates[0].Coin.ID != id || got.Candidates[0].Score != got.Confidence {
				t.Errorf("%s: %+v: got first candidate %v, want %s at %d", test.name, test.req, got.Candidates[0], id, got.Confidence)
			}
		}
		if id != test.coin || got.Method != test.method || got.Confidence != test.confidence {
			t.Errorf("%s: %+v: got %q by %q at %d, want %q by %q at %d", test.name, test.req, id, got.Method, got.Confidence, test.coin, test.method, test.confidence)
		}
	}
	for _, method := range SymbolMethods {
		if !used[method] {
			t.Errorf("%s decided nothing here", method)
		}
	}
}

func TestSymbolsAreReadAsVenuesSpellThem(t *testing.T) {
	resolver := &Resolver{Table: Coins(), Catalog: smallCatalog()}
	for _, test := range []struct {
		symbol, source, coin, fiat string
		units                      float64
		most                       int
		method                     SymbolMethod // empty: any
	}{
		{"1000SHIB", "binance", "shiba-inu", "", 1000, 85, MethodDatabase},
		{"1000000SHIB", "okx", "shiba-inu", "", 1e6, 85, MethodDatabase},
		{"1000QUOK", "okx", "quokka", "", 1000, 80, MethodSearch},
		{"1INCH", "okx", "1inch", "", 1, 100, ""},
		{"BTC/USDT", "", "bitcoin", "", 1, 100, ""},
		{"btc-usd", "coinbase", "bitcoin", "", 1, 100, ""},
		{"XBTUSD", "kraken", "bitcoin", "", 1, 100, ""},
		{"XXBTZEUR", "kraken", "bitcoin", "", 1, 100, ""},
		{"tBTCUSD", "bitfinex", "bitcoin", "", 1, 100, ""},
		{"BTCUSDT", "", "bitcoin", "", 1, 80, ""}, // without a venue only its letters state that it is a pair
		{"BTCETH", "", "", "", 1, 0, ""},
		{"BTCUSD", "", "", "", 1, 0, ""},
		{"QUOKUSDT", "", "", "", 1, 0, ""},
		{"QUOKUSDT", "binance", "", "", 1, 0, ""},
		{"DOT.S", "kraken", "polkadot", "", 1, 100, ""},
		{"DOT.S", "okx", "", "", 1, 0, ""},
		{"EUR", "kraken", "", "EUR", 1, 0, ""},
		{"zusd", "kraken", "", "USD", 1, 0, ""},
		{" eth ", "okx", "ethereum", "", 1, 100, ""},
	} {
		got := resolver.Resolve(SymbolRequest{Symbol: test.symbol, Source: test.source})
		id := ""
		if got.Coin != nil {
			id = got.Coin.ID
		}
		if id != test.coin || got.Fiat != test.fiat || got.Units != test.units || got.Confidence > test.most || test.method != "" && got.Method != test.method {
			t.Errorf("%q at %q: got %q %q units %v by %q at %d, want %q %q units %v at most %d", test.symbol, test.source, id, got.Fiat, got.Units, got.Method, got.Confidence, test.coin, test.fiat, test.units, test.most)
		}
	}
}

// The price of a thousand units is not that of one.
func TestMultipliedSymbolsAreMatchedByThePriceOfOneUnit(t *testing.T) {
	catalog := NewSymbolIndex(slices.Values(slices.AppendSeq([]SymbolCoin{
		{ID: "shiba-inu", Symbol: "SHIB", Name: "Shiba Inu", Rank: 30, MarketCap: 5e9, Price: 0.00001},
		{ID: "shib-of-mars", Symbol: "SHIB", Name: "Shib of Mars", Rank: 4000, MarketCap: 5e5, Price: 0.0102},
	}, TableCoins(Coins()))))
	resolver := &Resolver{Table: Coins(), Catalog: catalog}
	got := resolver.Resolve(SymbolRequest{Symbol: "1000SHIB", Source: "binance", Price: 0.0101})
	if got.Coin == nil || got.Coin.ID != "shiba-inu" || got.Method != MethodPrice {
		t.Errorf("1000SHIB at 0.0101: got %+v by %s, want shiba-inu by its price", got.Coin, got.Method)
	}
}

func TestHandCheckedSymbolsOfVenues(t *testing.T) {
	resolver := &Resolver{Table: Coins(), Catalog: NewSymbolIndex(TableCoins(Coins()))}
	for _, row := range symbolRows(t, "venues.csv") {
		got := resolver.Resolve(SymbolRequest{Symbol: row[1], Source: row[0]})
		_, ours := Coins().ByID(row[2])
		switch {
		case ours && (got.Coin == nil || got.Coin.ID != row[2] || got.Confidence < 85):
			t.Errorf("%s at %s: got %+v at %d, want %s", row[1], row[0], got.Coin, got.Confidence, row[2])
		case !ours && got.Coin != nil && got.Confidence >= 85:
			t.Errorf("%s at %s: got %s at %d, want nothing sure: it is %s there", row[1], row[0], got.Coin.ID, got.Confidence, row[2])
		}
	}
}

// What symbols say agrees with what the coins' own contracts say.
func TestSymbolsAgreeWithContractAddresses(t *testing.T) {
	rows := symbolRows(t, "contracts.csv")
	var coins []SymbolCoin
	for _, row := range rows {
		own, ok := Coins().ByID(row[1])
		if !ok {
			t.Fatalf("contracts.csv: %s is not in the coin table", row[1])
		}
		coins = append(coins, SymbolCoin{ID: own.ID, Symbol: own.Symbol, Name: own.Name, Rank: own.Rank, Platforms: []SymbolPlatform{{row[2], row[3]}}})
	}
	// Beside each is another contract that takes its symbol and its name.
	for i, row := range rows {
		coins = append(coins, SymbolCoin{ID: row[1] + "-copy", Symbol: row[0], Name: coins[i].Name, Platforms: []SymbolPlatform{{row[2], row[3][:41] + "z"}}})
	}
	resolver := &Resolver{Table: Coins(), Catalog: NewSymbolIndex(slices.Values(slices.AppendSeq(coins, TableCoins(Coins()))))}
	for _, row := range rows {
		bySymbol := resolver.Resolve(SymbolRequest{Symbol: row[0]})
		byAddress := resolver.Resolve(SymbolRequest{Symbol: row[3], Context: SymbolContext{Platform: row[2]}})
		if bySymbol.Coin == nil || bySymbol.Coin.ID != row[1] || bySymbol.Confidence < 85 {
			t.Errorf("%s: got %+v at %d, want %s", row[0], bySymbol.Coin, bySymbol.Confidence, row[1])
		}
		if byAddress.Coin == nil || byAddress.Coin.ID != row[1] || byAddress.Confidence != 100 {
			t.Errorf("%s: got %+v at %d, want %s at 100", row[3], byAddress.Coin, byAddress.Confidence, row[1])
		}
	}
}

func TestOverridesHoldFromTheirTimeOnInAnyOrder(t *testing.T) {
	records := []*eventsv1.SymbolOverride{
		{Source: "kraken", Symbol: "ABC", CoinId: "first", Time: 10},
		{Source: "Kraken", Symbol: "abc", CoinId: "second", Time: 20},
		{Source: "kraken", Symbol: "ABC", Time: 30},
		{Source: "kraken", Symbol: "ABC", CoinId: "third", Time: 40},
		{Source: "huobi", Symbol: "XYZ", CoinId: "other", Time: 5},
	}
	backwards := slices.Clone(records)
	slices.Reverse(backwards)
	for _, order := range [][]*eventsv1.SymbolOverride{records, backwards, append(slices.Clone(records), records...)} {
		overrides := NewSymbolOverrides(order...)
		for at, want := range map[int64]string{9: "", 10: "first", 19: "first", 20: "second", 30: "", 39: "", 40: "third", 1e18: "third"} {
			if got, ok := overrides.At("kraken", "abc", at); got != want || ok != (want != "") {
				t.Errorf("at %d: got %q %v, want %q", at, got, ok, want)
			}
		}
		if got, _ := overrides.At("htx", "XYZ", 5); got != "other" {
			t.Errorf("a former name of a venue: got %q, want other", got)
		}
		if got := len(overrides.InForce(35)); got != 1 {
			t.Errorf("in force at 35: got %d, want 1", got)
		}
	}
	var none *SymbolOverrides
	if _, ok := none.At("kraken", "ABC", 10); ok || none.InForce(10) != nil {
		t.Error("nil holds an override")
	}
}

// Beside a coin of unknown size a ranking is as sure as it is deep.
func TestARivalOfUnknownSizeStandsAtTheEndOfTheRanking(t *testing.T) {
	for last, want := range map[int]int{500: 73, 1_000: 81, 1_600: 85, 40_000: 97} {
		coins := []SymbolCoin{{ID: "mole", Symbol: "MOLE", Rank: 400}, {ID: "vole", Symbol: "MOLE"}, {ID: "last", Symbol: "LAST", Rank: last}}
		got := (&Resolver{Table: Coins(), Catalog: NewSymbolIndex(slices.Values(coins))}).Resolve(SymbolRequest{Symbol: "MOLE", Source: GeneralSource})
		if got.Coin == nil || got.Coin.ID != "mole" || got.Confidence != want {
			t.Errorf("ranked to %d: got %v at %d, want mole at %d", last, got.Coin, got.Confidence, want)
		}
	}
}
