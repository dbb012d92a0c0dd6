package pages

// related is where else what an operation answers is found.
type related struct {
	// Tool is the MCP tool that asks the operation, or another one of the same.
	Tool string `json:"tool,omitempty"`
	// Views are those of SQL, Channels those of the stream and Commands those of the program.
	Views    []string `json:"views,omitempty"`
	Channels []string `json:"channels,omitempty"`
	Commands []string `json:"commands,omitempty"`
}

// elsewhere is by operation. A test on a running instance holds every name against it.
var elsewhere = map[string]related{
	"explainNumber":    {Commands: []string{"explain"}},
	"explainPrice":     {Views: []string{"v_prices", "v_ticks"}, Channels: []string{"inputs", "ticks"}, Commands: []string{"explain"}},
	"getHealth":        {Commands: []string{"status"}},
	"getReadiness":     {Commands: []string{"status", "doctor"}},
	"getLogRecord":     {Commands: []string{"topics"}},
	"getPrice":         {Tool: "get_price", Views: []string{"v_prices"}, Channels: []string{"prices"}, Commands: []string{"price", "watch"}},
	"getStream":        {Commands: []string{"watch"}},
	"getSystem":        {Views: []string{"v_lag"}, Commands: []string{"status", "doctor"}},
	"getUsage":         {Views: []string{"v_usage"}, Commands: []string{"keys"}},
	"listCorrections":  {Views: []string{"v_corrections"}, Commands: []string{"corrections"}},
	"listPrices":       {Views: []string{"v_prices"}, Channels: []string{"prices"}, Commands: []string{"price", "watch"}},
	"listProviders":    {Views: []string{"v_sources"}, Channels: []string{"sources"}, Commands: []string{"status", "sources"}},
	"listRestatements": {Views: []string{"v_restatements"}, Commands: []string{"restatements"}},
	"runSQL":           {Commands: []string{"sql"}},
	"summarizePrices":  {Views: []string{"v_prices"}, Channels: []string{"prices"}, Commands: []string{"price"}},

	"getChart":        {Views: []string{"v_candles_1m", "v_candles_1h", "v_candles_1d"}, Channels: []string{"candles:1m"}, Commands: []string{"chart"}},
	"getChartCurrent": {Views: []string{"v_prices"}, Channels: []string{"prices"}, Commands: []string{"price"}},
	"listCharts":      {Views: []string{"v_candles_1h", "v_candles_1d"}, Channels: []string{"candles:1h"}, Commands: []string{"chart"}},

	"getCoin":             {Views: []string{"v_coins"}},
	"getCoinByID":         {Views: []string{"v_coins"}},
	"getCoinHistory":      {Views: []string{"v_candles_1d"}, Commands: []string{"chart"}},
	"getCoinMarketData":   {Views: []string{"v_coins"}},
	"getCoinStats":        {Views: []string{"v_coins"}},
	"listCoinCategories":  {Views: []string{"v_coins"}},
	"listCoinMarketTable": {Views: []string{"v_coins", "v_universe"}},
	"listCoinMarkets":     {Views: []string{"v_symbology", "v_listings"}},
	"listCoinNetworks":    {Views: []string{"v_coins"}},
	"listCoinSlugs":       {Views: []string{"v_coins"}},
	"listCoinsWithRates":  {Views: []string{"v_rates"}},
	"listFeaturedCoins":   {Views: []string{"v_coins"}},
	"listRecentCoins":     {Views: []string{"v_coin_events"}},
	"listSimilarCoins":    {Views: []string{"v_coins"}},
	"listTopCoins":        {Views: []string{"v_coins", "v_universe"}},
	"listTrendingCoins":   {Views: []string{"v_coins"}},
	"searchCoins":         {Views: []string{"v_coins"}, Commands: []string{"symbols"}},

	"getEarnBenchmark": {Views: []string{"v_earn_benchmark"}, Commands: []string{"earn"}},
	"getEarnProduct":   {Views: []string{"v_earn_products"}},
	"listEarnChanges":  {Views: []string{"v_earn_changes"}},
	"listEarnProducts": {Views: []string{"v_earn_products"}},

	"getFiat":       {Views: []string{"v_fiat", "v_fixings"}},
	"getFiatRates":  {Views: []string{"v_fiat"}},
	"getFiatStats":  {Views: []string{"v_fiat"}},
	"getFiatStatus": {Views: []string{"v_fiat"}, Commands: []string{"status"}},
	"listFiat":      {Views: []string{"v_fiat"}},

	"getDefiBorrowing":    {Views: []string{"v_defi_lists"}},
	"getDefiHistory":      {Views: []string{"v_defi_past"}},
	"getDefiLending":      {Views: []string{"v_defi_lists"}},
	"getDefiOHLC":         {Views: []string{"v_defi_past"}},
	"getDefiOverview":     {Views: []string{"v_defi", "v_protocols"}},
	"getDefiStaking":      {Views: []string{"v_defi_lists"}},
	"getFearGreed":        {Views: []string{"v_fear_greed"}},
	"getGlobalMetrics":    {Views: []string{"v_global"}, Channels: []string{"global"}},
	"getMarketSummary":    {Views: []string{"v_global"}, Channels: []string{"global"}},
	"getMetricHistory":    {Views: []string{"v_global_past"}},
	"getMetricOHLC":       {Views: []string{"v_global_past"}},
	"getMovers":           {Views: []string{"v_movers"}},
	"getMoversOfRanks":    {Views: []string{"v_movers"}},
	"getSentiment":        {Views: []string{"v_sentiment"}},
	"getSentimentOfRanks": {Views: []string{"v_sentiment"}},

	"getRateChart":      {Views: []string{"v_rates_hourly", "v_rates_daily"}, Commands: []string{"rates"}},
	"getRateHistory":    {Views: []string{"v_rates_hourly", "v_rates_daily"}, Commands: []string{"rates"}},
	"getRateProvider":   {Views: []string{"v_rates"}, Commands: []string{"rates"}},
	"getRates":          {Views: []string{"v_rates"}, Channels: []string{"rates"}, Commands: []string{"rates"}},
	"listRateProviders": {Views: []string{"v_rates"}, Commands: []string{"rates"}},
	"listRateSeries":    {Views: []string{"v_rates_hourly", "v_rates_daily"}},
	"listRates":         {Views: []string{"v_rates"}, Channels: []string{"rates"}, Commands: []string{"rates"}},
	"summarizeRates":    {Views: []string{"v_rates"}, Channels: []string{"rates"}, Commands: []string{"rates"}},

	"getPegStability": {Views: []string{"v_peg", "v_peg_episodes"}, Channels: []string{"peg"}},
	"listStablecoins": {Views: []string{"v_peg"}, Channels: []string{"peg"}},

	"listSymbolMappings":  {Views: []string{"v_mappings"}, Commands: []string{"symbols"}},
	"resolveSymbol":       {Views: []string{"v_symbology"}, Commands: []string{"symbols"}},
	"resolveSymbolPosted": {Tool: "resolve_symbol", Views: []string{"v_symbology"}, Commands: []string{"symbols"}},
	"resolveSymbols":      {Views: []string{"v_symbology"}, Commands: []string{"symbols"}},
}
