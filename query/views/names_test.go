package views_test

import (
	"slices"
	"testing"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
)

// A name means the largest of the coins that have it as symbol, old name or id; ids of our own table, and any id that is marked
// as one, can always be asked for.
func TestANameMeansOneCoin(t *testing.T) {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,*:XBT", "chainlink,LINK,Chainlink,2,token,,", "aptos,APT,Aptos,3,coin,,",
		"frax-share,FRAX,Frax,4,token,,*:FXS", "frax,FRAX,Legacy Frax Dollar,5,stablecoin,USD,"))
	w.Now = w.Time("2026-11-20T10:00:00Z")
	for _, record := range []string{
		`coin: {source: "coingecko" source_id: "link" part: "list" symbol: "ln" name: "LINK"}`,
		`coin: {source: "coingecko" source_id: "apricot" part: "list" symbol: "apt" name: "Apricot"}`,
		`coin: {source: "coingecko" source_id: "joke" part: "list" symbol: "bitcoin" name: "A joke"}`,
		`coin: {source: "coingecko" source_id: "xbt-2" part: "list" symbol: "xbt" name: "Exbit"}`,
		`coin: {source: "coingecko" source_id: "tjeremie-ä" part: "list" symbol: "ä" name: "Umlaut"}`,
	} {
		w.Run("said " + record)
	}
	for _, row := range []string{`coin_id: "joke" rank: 9 price: 1`, `coin_id: "link" rank: 8 price: 1`, `coin_id: "xbt-2" rank: 7 price: 1`} {
		w.Run("row " + row)
	}
	w.Minute(w.Now)
	s := w.Catalog.Snapshot()
	for _, test := range []struct {
		name, want string
		others     []string
	}{
		{"btc", "bitcoin", nil}, {"BTC", "bitcoin", nil}, {"bitcoin", "bitcoin", []string{"joke"}}, {"Bitcoin", "bitcoin", []string{"joke"}},
		{"BITCOIN", "bitcoin", []string{"joke"}}, {"XBT", "bitcoin", []string{"xbt-2"}}, {"joke", "joke", nil},
		{"LINK", "chainlink", []string{"link"}}, {"link", "chainlink", []string{"link"}}, {"id:link", "link", nil}, {"LN", "link", nil},
		{"APT", "aptos", []string{"apricot"}}, {"aptos", "aptos", nil}, {"apricot", "apricot", nil},
		{"FRAX", "frax-share", []string{"frax"}}, {"Frax", "frax-share", []string{"frax"}}, {"frax", "frax", []string{"frax-share"}},
		{"frax-share", "frax-share", nil}, {"FXS", "frax-share", nil}, {"id:FRAX", "frax", nil}, {"id:btc", "", nil}, {"Ä", "tjeremie-ä", nil},
		{"nope", "", nil}, {"", "", nil},
	} {
		found, ok := s.Find(test.name)
		if !ok {
			if test.want != "" {
				t.Errorf("%s means no coin, want %s", test.name, test.want)
			}
			continue
		}
		var others []string
		for _, other := range found.Others {
			others = append(others, other.ID)
		}
		if found.ID != test.want || !slices.Equal(others, test.others) {
			t.Errorf("%s means %s, or %v; want %s, or %v", test.name, found.ID, others, test.want, test.others)
		}
	}
	for text, want := range map[string][]string{
		"bitcoyn": {"bitcoin", "joke"}, "id:chain-lnk": {"chainlink"}, "jokes": {"joke"}, "Exbti": {"xbt-2"}, "A joka": {"joke"}, "bitcion": {"bitcoin", "joke"},
		"btcc": nil, "bitcon-2": nil, "": nil,
	} {
		var got []string
		for _, near := range s.Near(text) {
			got = append(got, near.CoinID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is near %v, want %v", text, got, want)
		}
	}
}

// Names of coins are looked up on every hot read.
func TestFindingANameTakesNoMemory(t *testing.T) {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,*:XBT", "ethereum,ETH,Ethereum,2,coin,,"))
	s := w.Catalog.Snapshot()
	var found views.Named
	if n := testing.AllocsPerRun(100, func() { found, _ = s.Find("eth") }); n != 0 || found.ID != "ethereum" {
		t.Errorf("finding eth (%v) allocates %g times", found.CatalogCoin, n)
	}
}
