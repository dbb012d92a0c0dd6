package exchanges

// Public clients beside which formats were read, see producers.Evidence.Clients.

func ccxt(file string) string { return "https://github.com/ccxt/ccxt/blob/master/ts/src/" + file }

func gocryptotrader(file string) string {
	return "https://github.com/thrasher-corp/gocryptotrader/blob/master/exchanges/" + file
}

func hummingbotCandles(venue string) string {
	return "https://github.com/hummingbot/hummingbot/tree/master/hummingbot/data_feed/candles_feed/" + venue + "_spot_candles"
}
