package explain

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/views"
)

// TestFieldsNameNumbersThereAre reads the names that fields of answers give to their numbers.
func TestFieldsNameNumbersThereAre(t *testing.T) {
	fields := map[string]func() []string{"market": marketFieldNames, "global": globalFieldNames, "category": categoryFieldNames, "movers": moversFieldNames, "sentiment": sentimentFieldNames, "candle": candleFieldNames, "chart": chartFieldNames, "rate-statistics": rateStatisticNames,
		benchmarkForm: func() []string { return append(benchmarkFieldNames(), benchmarkChangeNames()...) }}
	for of, least := range map[reflect.Type]int{
		reflect.TypeFor[prices.Aggregated](): 9, reflect.TypeFor[prices.ListEntry](): 5, reflect.TypeFor[charts.Current](): 1, reflect.TypeFor[coins.TableRow](): 17, reflect.TypeFor[coins.Coin](): 9, reflect.TypeFor[coins.Compact](): 3,
		reflect.TypeFor[charts.Point](): 8, reflect.TypeFor[charts.Chart](): 1, reflect.TypeFor[charts.Stats](): 4, reflect.TypeFor[charts.RateChart](): 1, reflect.TypeFor[charts.RatePoint](): 6, reflect.TypeFor[rates.Series](): 1, reflect.TypeFor[coins.Point](): 1, reflect.TypeFor[globalstats.Metrics](): 12, reflect.TypeFor[globalstats.MoversTotals](): 2, reflect.TypeFor[coins.Category](): 3, reflect.TypeFor[fiat.Rates](): 1, reflect.TypeFor[globalstats.Sentiment](): 7,
		reflect.TypeFor[globalstats.FearGreed](): 1, reflect.TypeFor[globalstats.OwnFearGreed](): 2, reflect.TypeFor[globalstats.DefiOverview](): 14,
		reflect.TypeFor[fiat.Currency](): 1, reflect.TypeFor[stablecoins.Entry](): 6, reflect.TypeFor[stablecoins.Components](): 4,
		reflect.TypeFor[coins.Statistics](): 28, reflect.TypeFor[coins.CoinRates](): 5, reflect.TypeFor[coins.BestRate](): 1, reflect.TypeFor[coins.BestRates](): 3, reflect.TypeFor[coins.TopCoin](): 2, reflect.TypeFor[coins.TrendingCoin](): 2, reflect.TypeFor[coins.FoundCoin](): 1,
		reflect.TypeFor[globalstats.Mover](): 6, reflect.TypeFor[globalstats.Summary](): 5, reflect.TypeFor[globalstats.DefiLending](): 8,
		reflect.TypeFor[globalstats.DefiStaking](): 5, reflect.TypeFor[globalstats.DefiLender](): 7, reflect.TypeFor[globalstats.DefiStaker](): 3, reflect.TypeFor[globalstats.DefiCreditor](): 5, reflect.TypeFor[globalstats.DefiBorrowing](): 6,
		reflect.TypeFor[globalstats.LentAsset](): 3, reflect.TypeFor[globalstats.StakedChain](): 4, reflect.TypeFor[globalstats.BorrowedAsset](): 2,
		reflect.TypeFor[rates.Entry](): 1, reflect.TypeFor[rates.SummaryEntry](): 6, reflect.TypeFor[earn.Variant](): 12, reflect.TypeFor[earn.Tier](): 4, reflect.TypeFor[rates.PastEntry](): 1, reflect.TypeFor[rates.PastMetadata](): 7, reflect.TypeFor[rates.ProviderCategory](): 3, reflect.TypeFor[rates.Metadata](): 10, reflect.TypeFor[globalstats.Point](): 1, reflect.TypeFor[stablecoins.Native](): 2, reflect.TypeFor[stablecoins.Episode](): 1, reflect.TypeFor[prices.VsRate](): 1, reflect.TypeFor[views.Alternative](): 1,
		reflect.TypeFor[earn.Benchmark](): 4, reflect.TypeFor[earn.CeFiPart](): 3, reflect.TypeFor[earn.DeFiPart](): 3, reflect.TypeFor[earn.CurrentPart](): 3, reflect.TypeFor[earn.Delta](): 3, reflect.TypeFor[earn.DayRate](): 1,
	} {
		named := 0
		for f := range of.Fields() {
			number, ok := f.Tag.Lookup("explain")
			if !ok {
				continue
			}
			named++
			parts, err := parse(number)
			if err != nil {
				t.Errorf("%s.%s names %s: %v", of, f.Name, number, err)
				continue
			}
			names := fields[parts[0]]
			switch {
			case parts[len(parts)-1] == "{"+memberKey+"}": // of a map's members, whose keys are not known here
				if f.Type.Kind() != reflect.Map {
					t.Errorf("%s.%s names %s, and has no members", of, f.Name, number)
				}
				continue
			case parts[0] == "price" && len(parts) > 2:
				names = priceFieldNames
			case parts[0] == "defi" && len(parts) == 2:
				names = defiFieldNames
			case parts[0] == "defi":
				of := ""
				if len(parts) > 4 {
					of = parts[2]
				}
				at := slices.IndexFunc(defiLists, func(l defiList) bool { return l.name == parts[1] && l.of == of })
				if at < 0 {
					t.Errorf("%s.%s names %s, and there is no such list: %s", of, f.Name, number, defiListDoc())
					continue
				}
				names = defiLists[at].fieldNames
			}
			if names != nil && !slices.Contains(names(), parts[len(parts)-1]) {
				t.Errorf("%s.%s names %s, and there is no such field: %s", of, f.Name, number, strings.Join(names(), ", "))
			}
		}
		if named < least {
			t.Errorf("%s names %d numbers, want at least %d", of, named, least)
		}
	}
}

func TestNearestNames(t *testing.T) {
	words := []string{"price", "market", "candle", "marketCap"}
	for text, want := range map[string]string{"prise": "price", "Price": "price", "markets": "market", "marketcap": "marketCap", "nothing": "", "": "", "xxxxx": ""} {
		if got := nearest(text, words); got != want {
			t.Errorf("nearest to %q is %q, want %q", text, got, want)
		}
	}
}
