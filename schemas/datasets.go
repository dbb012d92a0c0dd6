package schemas

import "slices"

// Names of the datasets that are exported: of files, directories and settings.
const (
	DatasetTrades       = "trades"
	DatasetQuotes       = "quotes"
	DatasetTickers      = "tickers"
	DatasetPrices       = "prices"
	DatasetCandles      = "candles_1m"
	DatasetVenueCandles = "venue_candles_1m"
	DatasetMarkets      = "markets"
	DatasetGlobal       = "global"
	DatasetSentiment    = "sentiment"
	DatasetRates        = "rates"
	DatasetDefi         = "defi"
	DatasetFiat         = "fiat"
	DatasetFixings      = "fixings"
	DatasetCoverage     = "coverage"
)

var datasets = []string{
	DatasetTrades, DatasetQuotes, DatasetTickers, DatasetPrices, DatasetCandles, DatasetVenueCandles, DatasetMarkets,
	DatasetGlobal, DatasetSentiment, DatasetRates, DatasetDefi, DatasetFiat, DatasetFixings, DatasetCoverage,
}

// Datasets are the names of all, in the order in which they are listed.
func Datasets() []string { return slices.Clone(datasets) }
