package schemas

import (
	"strings"
	"testing"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestRatesAreOfACoin(t *testing.T) {
	for _, c := range []struct {
		why                     string
		project, symbol, coinID string
		category, want          string
	}{
		{why: "the source's own word", symbol: "XYZ", coinID: "solana", category: RateLending, want: "solana"},
		{why: "a word that no table has", symbol: "sol", coinID: "solana-2", category: RateLending, want: "solana"},
		{why: "in any letter case", symbol: " usdc ", category: RateBorrowing, want: "usd-coin"},
		{why: "wrapped to move on its own chain", symbol: "WETH", category: RateLending, want: "ethereum"},
		{why: "the same by an id", symbol: "?", coinID: "weth", category: RateVault, want: "ethereum"},
		{why: "wrapped, and a coin of its own", symbol: "WBTC", category: RateLending, want: "wrapped-bitcoin"},
		{why: "that one bridged", symbol: "WBTC.e", category: RateLending, want: "wrapped-bitcoin"},
		{why: "bridged", symbol: "axlUSDC", category: RateLending, want: "usd-coin"},
		{why: "spelled with a sign", symbol: "USD₮0", category: RateLending, want: "tether"},
		{why: "renamed", symbol: "WMATIC", category: RateLending, want: "polygon-ecosystem-token"},
		{why: "the old stablecoin of projects, not the new coin with its symbol", symbol: "FRAX", category: RateLending, want: "frax"},
		{why: "the new coin by its id", symbol: "FRAX", coinID: "frax-share", category: RateLending, want: "frax-share"},
		{why: "staked", symbol: "STETH", category: RateStaking, want: "ethereum"},
		{why: "staked, by an id", symbol: "x", coinID: "rocket-pool-eth", category: RateStaking, want: "ethereum"},
		{why: "a receipt that is lent", symbol: "STETH", category: RateLending, want: "staked-ether"},
		{why: "a receipt that no table has", symbol: "MSOL", category: RateStaking, want: "solana"},
		{why: "that one lent", symbol: "MSOL", category: RateLending},
		{why: "a receipt of a stablecoin", symbol: "SUSDE", category: RateStaking, want: "ethena-usde"},
		{why: "what a venue calls so", project: "bitfinex", symbol: "UST", category: RateLending, want: "tether"},
		{why: "what a venue means something else by", project: "okx", symbol: "BETH", category: RateLending},
		{why: "the first coin of a pool", symbol: "WSOL-USDC", category: RateLiquidity, want: "solana"},
		{why: "the first that is known", symbol: "CTRWA-USD1", category: RateVault, want: "usd1-wlfi"},
		{why: "a symbol with the sign in it", symbol: "BSC-USD", category: RateLending, want: "tether"},
		{why: "a principal of something", symbol: "PT-SUSDE (Core)", category: RateVault, want: "ethena-staked-usde"},
		{why: "a currency", symbol: "EUR", category: RateLending},
		{why: "nothing", category: RateLending},
	} {
		got, ok := RateCoin(&eventsv1.Rate{Project: c.project, Symbol: c.symbol, CoinId: c.coinID}, c.category)
		if got.ID != c.want || ok != (c.want != "") {
			t.Errorf("%s: %s %s in %s is of %q, %t, want %q", c.why, c.symbol, c.coinID, c.category, got.ID, ok, c.want)
		}
	}
}

func TestRatesAreOfACategory(t *testing.T) {
	for _, c := range []struct{ why, project, symbol, reported, called, want string }{
		{why: "the source's own word", project: "lido", symbol: "ETH", reported: RateBorrowing, called: "Lending", want: RateBorrowing},
		{why: "what the project is by our table", project: "lido", symbol: "ETH", called: "Lending", want: RateStaking},
		{why: "what it is by another source", project: "?", symbol: "A-B", called: "Risk Curators", want: RateVault},
		{why: "of several coins", project: "?", symbol: "A-B", called: "Services", want: RateLiquidity},
		{why: "of one, with a sign in it", project: "?", symbol: "BSC-USD"},
		{why: "of one", project: "?", symbol: "ETH", called: "Services"},
	} {
		if got := RateCategory(&eventsv1.Rate{Project: c.project, Symbol: c.symbol, Category: c.reported}, c.called); got != c.want {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
	for called, category := range rateCategoryOf {
		if !IsRateCategory(category) {
			t.Errorf("%s: %q is no category", called, category)
		}
	}
}

// A row says what the coin table does not.
func TestSpellingsOfRatesAreNeeded(t *testing.T) {
	known := embeddedRateCoins()
	for symbol, coin := range known.same {
		if by := Coins().BySymbol(symbol); len(by) > 0 && by[0].ID == coin.ID {
			t.Errorf("%s is %s by the coin table", symbol, coin.ID)
		}
	}
	for symbol, coin := range known.staked {
		if coin.Kind == KindStaked {
			t.Errorf("%s: %s is itself a receipt", symbol, coin.ID)
		}
	}
	for _, bad := range []string{
		"", "symbol,coin_id\n", rateCoinsHeader + "\nWETH,same,no-coin\n", rateCoinsHeader + "\nweth,same,ethereum\n", rateCoinsHeader + "\nWETH,like,ethereum\n",
		rateCoinsHeader + "\nWETH,same,ethereum\nWETH,same,ethereum\n", rateCoinsHeader + "\n,same,ethereum\n",
	} {
		if _, err := parseRateCoins(bad, Coins()); err == nil || !strings.Contains(err.Error(), "rate_coins.csv") {
			t.Errorf("%q: got error %v, want one that names the file", bad, err)
		}
	}
}

func TestRewardsAreAPartOfTheAPY(t *testing.T) {
	for _, c := range []struct {
		raw, reward, unit, compounding string
		want                           float64
		none                           bool
	}{
		{raw: "7", reward: "2", unit: "apy_percent", want: 2},
		{raw: "0.07", reward: "0.02", unit: "apy_fraction", want: 2},
		{raw: "10", reward: "4", unit: "apr_percent", compounding: "none", want: 4},
		{raw: "10", reward: "4", unit: "apr_percent", compounding: "yearly", want: 4},
		{raw: "20", reward: "20", unit: "apr_percent", compounding: "monthly", want: 21.939108490523186}, // all of it
		{raw: "-1", reward: "2", unit: "apr_percent", compounding: "none", want: 2},
		{raw: "7", unit: "apy_percent", none: true},
		{raw: "7", reward: "much", unit: "apy_percent", none: true},
	} {
		got := RewardAPY(c.raw, c.reward, c.unit, c.compounding)
		if (got == nil) != c.none || got != nil && (*got-c.want > 1e-9 || c.want-*got > 1e-9) {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
