package imports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/schemas"
)

// tardisTrades reads the trades of https://docs.tardis.dev/downloadable-csv-files/data-types, which `marketlog export --format tardis-csv`
// writes too. Times are in microseconds, symbols those of the exchange in upper case.
type tardisTrades struct{}

var tardisColumns = []string{"exchange", "symbol", "timestamp", "local_timestamp", "id", "side", "price", "amount"}

func newTardisTrades(r Request, path string) (tradeDecoder, error) {
	if r.Venue != "" || r.Market != "" {
		return nil, fmt.Errorf("its columns name exchange and symbol: leave out --venue and --market")
	}
	return tardisTrades{}, onlySpot(path)
}

func (tardisTrades) header(fields []string) (bool, error) {
	if isQuotes(fields) {
		return false, errQuotes
	}
	if !slices.Equal(fields, tardisColumns) {
		return false, fmt.Errorf("its first line does not name the columns %s", strings.Join(tardisColumns, ","))
	}
	return true, nil
}

func (tardisTrades) trade(fields []string) (trade, error) {
	if len(fields) != len(tardisColumns) {
		return trade{}, bad(schemas.Undecodable, "it has %d columns and not %d", len(fields), len(tardisColumns))
	}
	if fields[1] == "" || len(fields[0])+len(fields[1]) > maxName {
		return trade{}, bad(schemas.Undecodable, "exchange %.80q and symbol %.80q name no market", fields[0], fields[1])
	}
	t := trade{price: fields[6], size: fields[7]}
	t.venue, t.symbol = tardisMarket(fields[0], fields[1])
	var err error
	t.time, err = unix(fields[2])
	return t, err
}

// tardisVenues are the exchanges that tardis.dev names otherwise than we do (https://api.tardis.dev/v1/exchanges). It has derivatives
// of an exchange under other names, such as binance-futures and okex-swap, which are no venue here.
var tardisVenues = map[string]string{"bybit-spot": "bybit", "crypto-com": "cryptocom", "gate-io": "gate", "huobi": "htx", "okex": "okx"}

// tardisMarket is a market as its venue spells it.
func tardisMarket(exchange, symbol string) (venue, spelt string) {
	venue = exchange
	if ours, ok := tardisVenues[exchange]; ok {
		venue = ours
	} else if exchange == "bybit" { // its derivatives
		venue = "bybit derivatives"
	}
	switch venue {
	case "bitstamp", "gemini", "htx": // in lower case
		return venue, strings.ToLower(symbol)
	case "bitfinex": // tBTCUSD; tardis.dev has its pair
		return venue, "t" + symbol
	}
	return venue, symbol
}
