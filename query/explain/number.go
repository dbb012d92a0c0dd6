package explain

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/marketlog/marketlog/query"
)

// form is a family of numbers.
type form struct {
	// Name of it, with its variable parts in braces.
	Form string `json:"form"`
	Doc  string `json:"doc"`
	// parts are how many parts a name of it has at least and at most, with its first word.
	least, most int
}

// forms are all families, by the first word of their names.
var forms = map[string]form{
	"price":       {"price/{coin}[/{field}]", "Price of a coin in USD; or " + strings.Join(priceFieldNames()[1:], ", ") + " of it", 2, 3},
	priceInForm:   {priceInForm + "/{currency}/{region or all}/{coin}[/{field}]", "The same in a currency or a coin that prices can be stated in (vs), of the venues that serve a country or of all", 4, 5},
	"market":      {"market/{coin}/{field}", "Numeric field of a coin's row: " + strings.Join(marketFieldNames(), ", "), 3, 3},
	"candle":      {"candle/{coin}/{interval}/{start}[/{field}]", "Closed candle: interval 1m, 5m, 15m, 1h, 4h or 1d; start as 2026-01-31T12:00:00Z; field open, high, low, close (default), volume, volumeUsd or trades", 4, 5},
	candlesForm:   {candlesForm + "/{coin}/{interval}/{start}/{intervals}/{field}", "Point of a chart that was merged of several intervals (5m, 1h or 1d), by the start of the first and how many with a price they are; fields as of a candle", 6, 6},
	"chart-point": {"chart-point/{coin}/{interval}/{start}", "Point of a chart or a price history, by the start of its interval: the last price in it, up to now; interval 5m, 1h or hourly, 1d or daily", 4, 4},
	"chart":       {"chart/{coin}/{interval}/{from}/{until}/{field}", "What the price of a coin did in the intervals (5m, 1h or 1d) from the start of one until a second: " + strings.Join(chartFieldNames(), ", "), 6, 6},
	"sparkline":   {"sparkline/{coin}/{until}/{left}", "Number of the sparkline of a coin's row, by sparklineUntil and how many numbers follow it: the close of an hour, the last one the price of the row", 4, 4},
	"developer":   {"developer/{coin}/{statistic}", "What a source counts of the source code of a coin, by its own name of it", 3, 3},
	"similarity":  {"similarity/{coin}/{coin}", "How many of the categories of two coins both have: 1 for all, 0 for none", 3, 3},
	"peg":         {"peg/{coin}[/{field}]", "Deviation of a stablecoin from its peg, in bps; or " + strings.Join(pegFieldNames(), ", "), 2, 3},
	"peg-point":   {"peg-point/{coin}/{time}[/price]", "Point of the history of a stablecoin's peg, in bps, by the end of its candle; or the price then", 3, 4},
	"fiat":        {"fiat/{currency}", "Units of a currency for one US dollar", 2, 2},
	"global":      {"global/{field}", "Field of the whole market: " + strings.Join(globalFieldNames(), ", ") + "; or global/dominance/{coin}, the share of one of the largest coins", 2, 3},
	"category":    {"category/{category}/{field}", "Sum over the coins of a category, by its id: " + strings.Join(categoryFieldNames(), ", "), 3, 3},
	"movers":      {"movers/{ranks}/{minVolume}/{field}", "Number of coins of a segment of ranks (" + strings.Join(moverRanges, ", ") + ") that rose or fell within 24 hours, with at least a volume in USD: " + strings.Join(moversFieldNames(), ", "), 4, 4},
	"metric": {"metric/{metric}/{time}", "Point of a series, by the end of its minute, Unix seconds: " + strings.Join(metricNames(), ", ") +
		"; or metric/{metric}/{hourly or daily}/{start}/{field} of what it did in a step: " + strings.Join(metricCandleNames(), ", "), 3, 5},
	coverageForm:        {coverageForm + "/{metric}/{granularity}/{time}", "How much of the newest total a source reports that reported a step of a series afterwards, percent: granularity 5m, 1h or 4h with the time of a point, hourly or daily with the start of a candle", 4, 4},
	"sentiment":         {"sentiment/{ranks}/{field}", "Field of a segment of ranks (1-50, 51-100, 101-250, all): " + strings.Join(sentimentFieldNames(), ", "), 3, 3},
	"fear-greed":        {"fear-greed[/computed[/{component}]]", "Index of fear and greed: the one that is served, our own, and its components; or fear-greed/days/{time}, a source's value of a day", 1, 3},
	"defi":              {"defi/{field}", "Field of all of DeFi: " + strings.Join(defiFieldNames(), ", ") + "; or defi/{list}/{protocol}/{field} of a protocol in a list: " + defiListDoc(), 2, 8},
	"rate":              {"rate/{provider}/{category}/{pool or symbol}", "Yield or borrowing rate, APY in percent; in category price what a venue contributes to the price of a coin, USD, by its symbol; the id that lists have of it is taken too", 4, 12},
	"rate-term":         {"rate-term/{term}/{provider}/{category}/{pool or symbol}", "What comes with a rate: " + strings.Join(rateTermNames(), ", "), 5, 13},
	"provider-rates":    {"provider-rates/{provider}/{category}/{field}", "Statistic of the rates of a provider in a category, of all coins: " + strings.Join(providerStatistics, ", "), 4, 4},
	"venue-price":       {"venue-price/{field}/{venue}/{symbol}", "Number of a market that a price is made from, by the venue's symbol of it: its price in the asset that it is quoted in; or rateUsed, what that costs in USD, or deviationBps, how far it lies from the peg of a stablecoin", 4, 8},
	"symbol":            {"symbol/{source}/{symbol}[/{hint}={text}]/{field}", "Number of the answer to which coin a symbol means, by what was asked, as `question` of the answer has it (hints price, quote, exchange, platform, contract, name): confidence, units, or score/{coin} of a candidate", 4, 11},
	"symbol-mapping":    {"symbol-mapping/{method}/{source}/{symbol}", "How sure the mapping of a symbol of a venue or a source is, percent", 4, 8},
	"vs":                {"vs/{currency}", "What a unit of a currency that prices can be stated in costs, USD", 2, 2},
	rateHistoryForm:     {rateHistoryForm + "/{field}/{start}/{end}/{provider}/{category}/{id}", "What a rate was when it was reported, where start and end are equal, or what it did in an hour or a day, by the id that histories have of it: " + strings.Join(rateHistoryFieldNames(), ", "), 7, 15},
	rateSeriesForm:      {rateSeriesForm + "/{provider}/{coin}/{category}/{interval}/{start}[/{field}]", "Point of the series of a provider's rates of a coin, interval 5m, 1h or 1d: close (default), " + strings.Join(rateSeriesFields[:3], ", "), 6, 7},
	rateChartForm:       {rateChartForm + "/{coin}/{category}/{provider or all}/{interval}/{start}/{field}", "Point of a chart of rates, the median over providers: " + strings.Join(rateSeriesFields, ", ") + ", or providers, the number of them", 7, 7},
	rateRunForm:         {rateRunForm + "/{coin}/{category}/{provider or all}/{interval}/{start}/{intervals}/{field}", "Point of a chart of rates that was merged of several intervals, by the start of the first and how many with a rate they are; fields as of " + rateChartForm, 8, 8},
	rateChartStatsForm:  {rateChartStatsForm + "/{coin}/{category}/{provider or all}/{interval}/{from}/{until}/{field}", "What the points of a chart of rates did from the start of an interval (5m, 1h or 1d) until a minute: " + strings.Join(rateStatNames()[:chartStats], ", "), 8, 8},
	rateSeriesStatsForm: {rateSeriesStatsForm + "/{provider}/{coin}/{category}/{interval}/{from}/{until}/{field}", "The same of the series of a provider's rates of a coin: " + strings.Join(rateStatNames(), ", "), 8, 8},
	"rate-statistics": {"rate-statistics/{coin}/{category}/{field}", "Statistic of the rates of a coin in a category, lending, staking or borrowing, in percent, or of its providers' prices, category price, in USD: " +
		strings.Join(rateStatisticNames(), ", "), 4, 4},
	"earn": {"earn/{product}/{variant}/[tiers/{from}/]{field}", "Variant of an earn product: " + strings.Join(earnFieldNames(), ", ") + "; of a tier " + strings.Join(earnTierFields, ", "), 4, 14},
	benchmarkForm: {benchmarkForm + "/{segment}[/{date}]/{field}", "Benchmark of what deposits of USD stablecoins earn, of a segment (overall, cefi, defi): " + strings.Join(benchmarkFieldNames(), ", ") +
		"; of the fixing of a day, as 2026-01-31, also " + strings.Join(benchmarkChangeNames(), ", ") + "; without a day the current value, with an instant that is not midnight the value of then", 3, 4},
}

// ordered are the words that forms begin with, in the order in which they are listed.
var ordered = []string{"price", priceInForm, "market", "candle", candlesForm, "chart-point", "chart", "sparkline", "developer", "similarity", "peg", "peg-point", "fiat", "vs", "global", "category", "movers", "metric", coverageForm, "sentiment", "fear-greed", "defi", "rate", "rate-term", rateHistoryForm, rateSeriesForm, rateChartForm, rateRunForm, rateSeriesStatsForm, rateChartStatsForm, "rate-statistics", "provider-rates", "venue-price", "earn", benchmarkForm, "symbol", "symbol-mapping"}

// namesOf are the names of the numbers of a family.
func namesOf[T any](fields []T, name func(T) string) []string {
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = name(field)
	}
	return names
}

// formList writes the forms for people.
func formList() string {
	list := make([]string, len(ordered))
	for i, word := range ordered {
		list[i] = forms[word].Form
	}
	return strings.Join(list, ", ")
}

// Suggestions are what an unknown number is answered with.
type Suggestions struct {
	// DidYouMean is a number of nearly the same name, if there is one.
	DidYouMean string `json:"didYouMean,omitempty"`
	Forms      []form `json:"forms"`
}

// unknown means that there is no number of a name; near is the one that may have been meant, empty for none.
func unknown(name, near string) *query.Error {
	s := Suggestions{DidYouMean: near}
	for _, word := range ordered {
		s.Forms = append(s.Forms, forms[word])
	}
	hint := ""
	if near != "" {
		hint = ": did you mean " + near + "?"
	}
	e := query.NotFound("there is no number %q%s Numbers are %s", strings.ToValidUTF8(name, "�"), hint, formList())
	if hint == "" {
		e.Message = strings.Replace(e.Message, "\" Numbers", "\". Numbers", 1)
	}
	e.Candidates = s
	return e
}

// parse splits the name of a number, and refuses one of no form.
func parse(name string) ([]string, error) {
	parts := strings.Split(name, "/")
	f, ok := forms[parts[0]]
	if ok && len(parts) >= f.least && len(parts) <= f.most && !slices.Contains(parts, "") {
		return parts, nil
	}
	if !ok {
		if word := nearest(parts[0], ordered); word != "" {
			return nil, unknown(name, strings.Join(append([]string{word}, parts[1:]...), "/"))
		}
	}
	return nil, unknown(name, "")
}

// longestWord bounds what is compared, in bytes.
const longestWord = 64

// nearest is the word that differs least from one that is not among them; empty where each differs by more than a third.
func nearest(text string, words []string) string {
	if len(text) > longestWord {
		return ""
	}
	best, least := "", max(len(text)/3, 1)+1
	for _, word := range words {
		if d := levenshtein.ComputeDistance(strings.ToLower(text), strings.ToLower(word)); d < least {
			best, least = word, d
		}
	}
	return best
}
