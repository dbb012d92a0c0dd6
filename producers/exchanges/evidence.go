package exchanges

import "github.com/marketlog/marketlog/producers"

// evidenceOf are how the formats of each venue's feed and HTTP interface are known.
var evidenceOf = map[string]producers.VenueEvidence{
	"binance": {
		Markets: producers.Recorded("cryptofeed/BINANCE.instruments.jsonl.gz"),
		Trades:  producers.Recorded("tardis-node/binance.jsonl"),
		Tickers: producers.Recorded("tardis-node/binance.jsonl"),
		Polled:  producers.Recorded("cryptoexchange/binance-24hr.json.gz"),
		Candles: producers.Recorded("gocryptotrader/binance-klines-1m.json"),
	},
	"bitfinex": {
		Markets: producers.Documented("https://docs.bitfinex.com/reference/rest-public-conf").And(cryptofeed("bitfinex.py")).AfterSearching(
			"conf/pub:list:pair:exchange; what was found takes the first list for the pairs too, in code of a repository that is not known"),
		Trades: producers.Documented("https://docs.bitfinex.com/reference/ws-public-trades").And(
			bitfinexClient, tardis("bitfinex"), cryptofeed("bitfinex.py")),
		Tickers: producers.Documented("https://docs.bitfinex.com/reference/ws-public-ticker").And(bitfinexClient, cryptofeed("bitfinex.py")),
		Polled: producers.Documented("https://docs.bitfinex.com/reference/rest-public-tickers").And(
			bitfinexClient, gocryptotrader("bitfinex/bitfinex_types.go")),
	},
	"bitget": {
		Markets: producers.Documented("https://www.bitget.com/api-doc/spot/market/Get-Symbols").And(
			jkorf("Bitget", "Endpoints/Spot/ExchangeData/GetSymbols"), xchange("bitget", "org/knowm/xchange/bitget/dto/marketdata/BitgetSymbolDto")),
		Trades: producers.Recorded("tardis-node/bitget.jsonl"),
		Tickers: producers.Documented("https://www.bitget.com/api-doc/spot/websocket/public/Tickers-Channel").And(
			jkorf("Bitget", "Subscriptions/Spot/Ticker"),
			xchange("stream-bitget", "info/bitrich/xchangestream/bitget/dto/response/BitgetTickerNotification")),
		Polled: producers.Documented("https://www.bitget.com/api-doc/spot/market/Get-Tickers").And(
			jkorf("Bitget", "Endpoints/Spot/ExchangeData/GetTickers"), xchange("bitget", "org/knowm/xchange/bitget/dto/marketdata/BitgetTickerDto")),
	},
	"bitstamp": {
		Markets: producers.Recorded("cryptofeed/BITSTAMP.instruments.jsonl.gz"),
		Trades:  producers.Recorded("cryptofeed/BITSTAMP.ws.1.0.jsonl.gz"),
		Polled: producers.Documented("https://www.bitstamp.net/api/#tag/Tickers").And(
			"https://github.com/dydxprotocol/v4-chain/blob/HEAD/protocol/daemons/pricefeed/client/price_function/bitstamp/bitstamp.go",
			connect("apis/bitstamp/utils.go")).But("volume and timestamp are in the second client's example alone, and in a recording of one market"),
		Candles: producers.Recorded("gocryptotrader/bitstamp-ohlc-1m.json.gz"),
	},
	"bybit": {
		Markets: producers.Documented("https://bybit-exchange.github.io/docs/v5/market/instrument").And(
			gocryptotrader("bybit/bybit_types.go"), nautilus("bybit/src/http/models.rs")),
		Trades: producers.Recorded("tardis-node/bybit-spot.jsonl"),
		Tickers: producers.Documented("https://bybit-exchange.github.io/docs/v5/websocket/public/ticker").And(
			"https://github.com/JKorf/Bybit.Net/blob/main/Bybit.UnitTests/Subscriptions/V5/Spot/Ticker.txt",
			gocryptotrader("bybit/bybit_types.go")),
		Polled: producers.Documented("https://bybit-exchange.github.io/docs/v5/market/tickers").And(
			xchange("bybit", "org/knowm/xchange/bybit/dto/marketdata/tickers/BybitTicker"), gocryptotrader("bybit/bybit_types.go")),
		Candles: producers.Documented("https://bybit-exchange.github.io/docs/v5/market/kline").And(
			hummingbotCandles("bybit"), gocryptotrader("bybit/bybit_types.go")),
	},
	"coinbase": {
		Markets: producers.Recorded("cryptofeed/COINBASE.instruments.jsonl.gz"),
		Trades:  producers.Recorded("cryptofeed/COINBASE.ws.28.0.jsonl.gz"),
		Tickers: producers.Recorded("cryptofeed/COINBASE.ws.28.0.jsonl.gz"),
		Polled:  producers.Recorded("cryptoexchange/gdax-ticker-btcusd.json"),
		Candles: producers.Documented("https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/products/get-product-candles").And(
			ccxt("coinbaseexchange.ts"), xchange("coinbasepro",
				"org/knowm/xchange/coinbasepro/dto/marketdata/CoinbaseProCandleDeserializer")),
	},
	"cryptocom": {
		Markets: producers.Documented("https://exchange-docs.crypto.com/exchange/v1/rest-ws/index.html").And(
			jkorf("CryptoCom", "Endpoints/ExchangeApi/ExchangeData/GetSymbols"), ccxt("cryptocom.ts")),
		Trades:  producers.Recorded("tardis-node/crypto-com.jsonl"),
		Tickers: producers.Recorded("tardis-node/crypto-com.jsonl"),
		Polled: producers.Documented("https://exchange-docs.crypto.com/exchange/v1/rest-ws/index.html").And(
			jkorf("CryptoCom", "Endpoints/ExchangeApi/ExchangeData/GetTickers"), gocryptotrader("cryptodotcom/cryptodotcom_types.go")),
	},
	"gate": {
		Markets: producers.Recorded("cryptofeed/GATEIO.instruments.jsonl.gz"),
		Trades:  producers.Recorded("cryptofeed/GATEIO.ws.1.0.jsonl.gz"),
		Tickers: producers.Recorded("cryptofeed/GATEIO.ws.1.0.jsonl.gz"),
		Polled: producers.Documented("https://www.gate.com/docs/developers/apiv4/en/#spot").And(
			jkorf("GateIo", "Endpoints/Spot/ExchangeData/GetTickers"), gocryptotrader("gateio/gateio_types.go")),
		Candles: producers.Documented("https://www.gate.com/docs/developers/apiv4/#market-candlesticks").And(
			hummingbotCandles("gate_io"), gocryptotrader("gateio/gateio_types.go")),
	},
	"gemini": {
		Markets: producers.Documented("https://developer.gemini.com/rest/market-data").And(
			gocryptotrader("gemini/gemini_types.go"), fastMM("gemini/gemini_rest_decoder.hpp")),
		Trades: producers.Documented("https://developer.gemini.com/websocket/streams").And(
			fastMM("gemini/gemini_md_parser.hpp")).AfterSearching("ws.gemini.com, @bookTicker, @trade").But(
			"frames that name their kind and have times in milliseconds, as the fixtures of its own clients: they are read too, but the " +
				"client saw neither in production, and one of a repository that is not known saw nanoseconds there"),
		Tickers: producers.Documented("https://developer.gemini.com/websocket/streams").And(
			fastMM("gemini/gemini_md_parser.hpp"),
			"https://github.com/hrishabhayush/polyxgemini/blob/HEAD/internal/exchange/gemini/ws.go"),
		Polled: producers.Documented("https://developer.gemini.com/rest/market-data").And(
			xchange("gemini", "org/knowm/xchange/gemini/v2/dto/marketdata/GeminiTicker2"), gocryptotrader("gemini/gemini_types.go")),
	},
	"htx": {
		Markets: producers.Recorded("cryptofeed/HUOBI.instruments.jsonl.gz"),
		Trades:  producers.Recorded("cryptofeed/HUOBI.ws.44.0.jsonl.gz"),
		Tickers: producers.Documented("https://www.htx.com/en-us/opend/newApiPages/?id=7ec5a0a7").And(
			jkorf("HTX", "Subscriptions/Spot/Ticker"), connect("websockets/huobi/messages.go")).But(
			"bid, ask, amount and vol, of which the second client reads none"),
		Polled: producers.Documented("https://www.htx.com/en-us/opend/newApiPages/?id=404").And(
			jkorf("HTX", "Endpoints/Spot/ExchangeData/GetTickers"), xchange("huobi", "org/knowm/xchange/huobi/dto/marketdata/HuobiAllTicker")),
	},
	"kraken": {
		Markets: producers.Recorded("cryptofeed/KRAKEN.instruments.jsonl.gz"),
		Trades:  producers.Recorded("tardis-node/kraken.jsonl"),
		Tickers: producers.Documented("https://docs.kraken.com/exchange/api-reference/spot-websocket-v2/ticker").And(
			jkorf("Kraken", "Subscriptions/Spot/Ticker"), nautilus("kraken/src/websocket/spot_v2/messages.rs")),
		Polled:  producers.Recorded("cryptoexchange/kraken-ticker-bcheur.json"),
		Candles: producers.Recorded("xchange/kraken-ohlc.json.gz"),
	},
	"kucoin": {
		Markets: producers.Recorded("cryptofeed/KUCOIN.instruments.jsonl.gz").But(
			"recorded of /api/v1/symbols; asked is /api/v2/symbols, whose documentation has the same fields"),
		Trades: producers.Recorded("cryptofeed/KUCOIN.ws.1.0.jsonl.gz"),
		Tickers: producers.Recorded("cryptofeed/KUCOIN.ws.1.0.jsonl.gz").But(
			"the snapshots with the volumes are not recorded, but documented: https://www.kucoin.com/docs-new/3470065w0"),
		Polled: producers.Recorded("cryptoexchange/kucoin-alltickers.json.gz"),
		Candles: producers.Documented("https://www.kucoin.com/docs-new/rest/spot-trading/market-data/get-klines").And(
			hummingbotCandles("kucoin"), gocryptotrader("kucoin/kucoin_types.go")),
	},
	"mexc": {
		Markets: producers.Documented("https://www.mexc.com/api-docs/spot-v3/market-data-endpoints").And(
			mexcNet("MexcSymbol"), gocryptotrader("mexc/mexc_types.go")),
		Trades: producers.Documented("https://github.com/mexcdevelop/websocket-proto").And(tardis("mexc"), mexcNet("MexcStreamTrade")).But(
			"recorded is the JSON that another client made of the messages, not their bytes"),
		Tickers: producers.Documented("https://github.com/mexcdevelop/websocket-proto").And(
			tardis("mexc"), mexcNet("MexcStreamMiniTick")),
		Polled: producers.Documented("https://www.mexc.com/api-docs/spot-v3/market-data-endpoints").And(
			mexcNet("MexcTicker"), gocryptotrader("mexc/mexc_types.go")),
	},
	"okx": {
		Markets: producers.Recorded("cryptofeed/OKX.instruments.jsonl.gz"),
		Trades:  producers.Recorded("cryptofeed/OKX.ws.1.0.jsonl.gz"),
		Tickers: producers.Recorded("cryptofeed/OKX.ws.1.0.jsonl.gz"),
		Polled: producers.Documented("https://www.okx.com/docs-v5/en/#order-book-trading-market-data-get-tickers").And(
			xchange("okex", "org/knowm/xchange/okex/dto/marketdata/OkexTicker"), gocryptotrader("okx/okx_types.go")),
		Candles: producers.Documented("https://www.okx.com/docs-v5/en/#order-book-trading-market-data-get-candlesticks-history").And(
			hummingbotCandles("okx"), gocryptotrader("okx/okx_types.go")),
	},
	"poloniex": {
		Markets: producers.Documented("https://api-docs.poloniex.com/spot/api/public/reference-data").And(
			ccxt("poloniex.ts"), gocryptotrader("poloniex/poloniex_types.go")),
		Trades: producers.Documented("https://api-docs.poloniex.com/spot/websocket/market-data").And(
			ccxt("pro/poloniex.ts"), gocryptotrader("poloniex/poloniex_websocket.go"), cryptofeed("poloniex.py")).But(
			"the last client takes amount for the size of a trade; in its own example amount is price times quantity, so quantity is"),
		Tickers: producers.Documented("https://api-docs.poloniex.com/spot/websocket/market-data").And(
			ccxt("pro/poloniex.ts"), gocryptotrader("poloniex/poloniex_websocket.go")),
		Polled: producers.Documented("https://api-docs.poloniex.com/spot/api/public/market-data").And(
			ccxt("poloniex.ts"), gocryptotrader("poloniex/poloniex_types.go")),
	},
	"upbit": {
		Markets: producers.Documented("https://global-docs.upbit.com/reference/list-trading-pairs").And(
			jkorf("Upbit", "Endpoints/Spot/ExchangeData/GetSymbols"), cryptofeed("upbit.py")),
		Trades: producers.Documented("https://global-docs.upbit.com/reference/websocket-trade").And(
			jkorf("Upbit", "Subscriptions/Spot/Trades"), tardis("upbit"), cryptofeed("upbit.py")).But(
			"the unit of times: milliseconds by the documentation, but the second client takes any above 1e15 for microseconds; both are read"),
		Tickers: producers.Documented("https://global-docs.upbit.com/reference/websocket-ticker").And(
			jkorf("Upbit", "Subscriptions/Spot/Tickers")).AfterSearching(
			"acc_trade_price_24h, stream_type; what was found has the same names, in code of a repository that is not known"),
		Polled: producers.Documented("https://global-docs.upbit.com/reference/list-tickers").And(
			jkorf("Upbit", "Endpoints/Spot/ExchangeData/GetTickers"), xchange("upbit", "org/knowm/xchange/upbit/dto/marketdata/UpbitTicker")),
	},
}

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

// bitfinexClient is the venue's own client, which names each place of its lists.
const bitfinexClient = "https://github.com/bitfinexcom/bitfinex-api-py/blob/master/bfxapi/types/serializers.py"

// mexcNet is a model of the .NET library of MEXC.
func mexcNet(model string) string {
	return "https://github.com/JKorf/Mexc.Net/blob/main/Mexc.Net/Objects/Models/Spot/" + model + ".cs"
}
