package schemas

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
	"sync"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

//go:embed rate_coins.csv
var rateCoinsCSV string

const rateCoinsHeader = "symbol,kind,coin_id"

// RateReason says why a rate is of no coin or of no category. The list is closed, so that rates can be counted by it.
type RateReason string

// Reasons of a rate that is not attached.
const (
	// RateCoinUnknown is a symbol that no table has, nor any of those that it is joined from.
	RateCoinUnknown RateReason = "coin_unknown"
	// RateCategoryUnknown is a rate of one coin whose source does not say what it is for, of a project of which nobody does.
	RateCategoryUnknown RateReason = "category_unknown"
)

// RateReasons is the closed list.
var RateReasons = []RateReason{RateCoinUnknown, RateCategoryUnknown}

// rateCoins state which coin a symbol of a rate means, beside the coin table and before it.
type rateCoins struct {
	// same are other spellings of a coin: wrapped to move on a chain, bridged, renamed.
	same map[string]Coin
	// staked are receipts by the coin that is staked for them.
	staked map[string]Coin
}

var embeddedRateCoins = sync.OnceValue(func() *rateCoins {
	known, err := parseRateCoins(rateCoinsCSV, Coins())
	if err != nil {
		panic("the embedded table of rates' symbols is broken, which a test forbids: " + err.Error())
	}
	return known
})

// parseRateCoins reads a table in the form of rate_coins.csv, and reports all faults at once.
func parseRateCoins(text string, coins *CoinTable) (*rateCoins, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading rate_coins.csv: %w", err)
	}
	if len(rows) == 0 || strings.Join(rows[0], ",") != rateCoinsHeader {
		return nil, fmt.Errorf("reading rate_coins.csv: its first line is not %s", rateCoinsHeader)
	}
	known := &rateCoins{same: map[string]Coin{}, staked: map[string]Coin{}}
	kinds := map[string]map[string]Coin{"same": known.same, "staked": known.staked}
	var faults []error
	for i, row := range rows[1:] {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("rate_coins.csv line %d: %w", i+2, fmt.Errorf(format, args...)))
		}
		symbol, kind := row[0], kinds[row[1]]
		coin, ok := coins.ByID(row[2])
		if !ok {
			fault("coin_id: %q is not in coins.csv", row[2])
		}
		if symbol == "" || symbol != rateSymbol(symbol) {
			fault("symbol: %q is empty, not in capital letters or has blanks around it", symbol)
		}
		if kind == nil {
			fault("kind: %q is neither same nor staked", row[1])
			continue
		}
		if _, twice := kind[symbol]; twice {
			fault("symbol: %s appears twice as %s", symbol, row[1])
		}
		kind[symbol] = coin
	}
	return known, errors.Join(faults...)
}

// rateSymbol is a symbol as tables spell it.
func rateSymbol(s string) string { return strings.ToUpper(strings.TrimSpace(s)) }

// other is the coin that a symbol means and that the coin table does not name so. A staking rate is of what is staked,
// whatever the receipt is called; what is lent or put into a pool is the receipt itself.
func (k *rateCoins) other(symbol, category string) (Coin, bool) {
	if category == RateStaking {
		if coin, ok := k.staked[symbol]; ok {
			return coin, true
		}
	}
	coin, ok := k.same[symbol]
	return coin, ok
}

// symbol is the coin that a symbol of a project means; of a project that is a venue, what the venue means by it.
func (k *rateCoins) symbol(project, symbol, category string) (Coin, bool) {
	if coin, ok := k.other(symbol, category); ok {
		return coin, true
	}
	coin, _, ok := Coins().Resolve(project, symbol)
	return coin, ok
}

// RateCoin is the coin that a rate of a category (one of those that IsRateCategory knows, or empty) belongs to: the one that
// the source itself names if the coin table has it, else the one that the symbol means. A pool of several coins belongs to
// the first of them that is known. Wrapped native coins (WETH, WSOL) and bridged ones (USDC.E, USD₮0) are the coin itself.
// It is not ok where no coin is known.
func RateCoin(reported *eventsv1.Rate, category string) (coin Coin, ok bool) {
	known := embeddedRateCoins()
	if listed, ok := Coins().ByID(reported.CoinId); ok {
		if listed.Kind == KindWrapped || listed.Kind == KindStaked {
			if coin, ok := known.other(listed.Symbol, category); ok {
				return coin, true
			}
		}
		return listed, true
	}
	whole := rateSymbol(reported.Symbol)
	if coin, ok := known.symbol(reported.Project, whole, category); ok {
		return coin, true
	}
	for _, part := range rateParts(whole) {
		if coin, ok := known.symbol(reported.Project, part, category); ok {
			return coin, true
		}
	}
	return Coin{}, false
}

// rateParts are the symbols that a pool's symbol is joined from.
func rateParts(symbol string) []string {
	return strings.FieldsFunc(symbol, func(r rune) bool { return r == '-' || r == '/' || r == ' ' || r == '(' || r == ')' || r == ',' })
}

// rateCategoryOf are the categories of rates by those that DefiLlama puts projects into, as in rate_projects.csv; a project of
// another category does not say what its rates are for.
var rateCategoryOf = map[string]string{
	"Lending": RateLending, "CDP": RateLending, "RWA Lending": RateLending, "Uncollateralized Lending": RateLending,
	"Liquid Staking": RateStaking, "Liquid Restaking": RateStaking, "Restaking": RateStaking, "Staking Pool": RateStaking, "Collateral Markets": RateStaking,
	"Restaked BTC": RateStaking, "Anchor BTC": RateStaking,
	"Dexs": RateLiquidity, "Derivatives": RateLiquidity, "Bridge": RateLiquidity, "Cross Chain Bridge": RateLiquidity, "Liquidity Manager": RateLiquidity,
	"Yield": RateVault, "Yield Aggregator": RateVault, "Risk Curators": RateVault, "Onchain Capital Allocator": RateVault, "Basis Trading": RateVault,
	"CeDeFi": RateVault, "Leveraged Farming": RateVault, "Farm": RateVault, "RWA": RateVault,
}

// RateCategory is the category of a rate: the source's own word, else what its project is, by RateProjectCategory or else
// by project, the category that a source of reference values puts it into (empty if none does); else liquidity if it is of
// several coins. It is empty where nothing identifies one.
func RateCategory(reported *eventsv1.Rate, project string) string {
	if category := cmp.Or(reported.Category, RateProjectCategory(reported.Project), rateCategoryOf[project]); category != "" {
		return category
	}
	whole := rateSymbol(reported.Symbol)
	if _, one := embeddedRateCoins().symbol(reported.Project, whole, ""); !one && len(rateParts(whole)) > 1 {
		return RateLiquidity
	}
	return ""
}
