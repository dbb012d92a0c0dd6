package exchanges

// Public clients beside which formats were read, see producers.Evidence.Clients.

func ccxt(file string) string { return "https://github.com/ccxt/ccxt/blob/master/ts/src/" + file }

func gocryptotrader(file string) string {
	return "https://github.com/thrasher-corp/gocryptotrader/blob/master/exchanges/" + file
}

func hummingbotCandles(venue string) string {
	return "https://github.com/hummingbot/hummingbot/tree/master/hummingbot/data_feed/candles_feed/" + venue + "_spot_candles"
}

// jkorf is a test of the .NET library of a venue, with an answer or a message that it reads.
func jkorf(library, test string) string {
	return "https://github.com/JKorf/" + library + ".Net/blob/main/" + library + ".Net.UnitTests/" + test + ".txt"
}

// xchange is a file of XChange, below the sources of one of its modules.
func xchange(module, file string) string {
	return "https://github.com/knowm/XChange/blob/develop/xchange-" + module + "/src/main/java/" + file + ".java"
}

func tardis(venue string) string {
	return "https://github.com/tardis-dev/tardis-node/blob/master/src/mappers/" + venue + ".ts"
}

// nautilus is a file of the adapter of a venue.
func nautilus(file string) string {
	return "https://github.com/nautechsystems/nautilus_trader/blob/HEAD/crates/adapters/" + file
}

// connect is a file of a provider of prices for chains.
func connect(file string) string {
	return "https://github.com/skip-mev/connect/blob/HEAD/providers/" + file
}

// fastMM is a header of a decoder, which says what was read of the venue's documentation and what of its frames.
func fastMM(header string) string {
	return "https://github.com/ziyangliu-666/FastMM/blob/HEAD/include/fastmm/venues/" + header
}

func cryptofeed(file string) string {
	return "https://github.com/bmoscon/cryptofeed/blob/master/cryptofeed/exchanges/" + file
}
