package imports

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/schemas"
)

// ticks reads trades as CSV with a header, in any order of columns. Others than these are passed over.
type ticks struct {
	venue, symbol string
	columns       int
	// Where the columns are; -1 where the file has none.
	atVenue, atSymbol, atKind, atTime, atPrice, atSize int
}

func newTicks(r Request, _ string) (tradeDecoder, error) {
	return &ticks{venue: r.Venue, symbol: r.Market}, nil
}

// tickColumns are the columns, each by its names, as columnNames of candles: our own exports have event_time and size.
var tickColumns = [...][]string{{"venue"}, {"symbol"}, {"kind"}, {"event_time", "timestamp", "time"}, {"price"}, {"amount", "size"}}

// errQuotes is why a file of quotes is refused.
var errQuotes = errors.New("quotes are not imported: prices are not computed from what others received, and the table of ticks drops what is older than a week; " +
	"import trades of the same time, which become candles")

func (k *ticks) header(fields []string) (bool, error) {
	k.columns = len(fields)
	names := headerNames(fields)
	missing := placeColumns(names, tickColumns[:], &k.atVenue, &k.atSymbol, &k.atKind, &k.atTime, &k.atPrice, &k.atSize)
	missing = slices.DeleteFunc(missing, func(name string) bool { return name == "venue" || name == "symbol" || name == "kind" })
	switch {
	case k.atPrice < 0 && isQuotes(names):
		return false, errQuotes
	case len(missing) > 0:
		return false, fmt.Errorf("its first line has no column %s: it must name venue, symbol, time, price and size", strings.Join(missing, ", "))
	}
	return true, marketColumns(k.atVenue, k.atSymbol, k.venue, k.symbol)
}

// isQuotes reports whether a header is of quotes, by tardis.dev's names of their columns or ours.
func isQuotes(names []string) bool {
	return slices.Contains(names, "bid") && slices.Contains(names, "ask") || slices.Contains(names, "bid_price") && slices.Contains(names, "ask_price")
}

func (k *ticks) trade(fields []string) (trade, error) {
	if len(fields) != k.columns {
		return trade{}, bad(schemas.Undecodable, "it has %d columns and not %d", len(fields), k.columns)
	}
	if k.atKind >= 0 && fields[k.atKind] != "trade" {
		return trade{}, bad(schemas.Undecodable, "its kind is %.40q: trades only are imported", fields[k.atKind])
	}
	t := trade{venue: k.venue, symbol: k.symbol, price: fields[k.atPrice], size: fields[k.atSize]}
	if k.atVenue >= 0 {
		t.venue = fields[k.atVenue]
	}
	if k.atSymbol >= 0 {
		t.symbol = fields[k.atSymbol]
	}
	if t.venue == "" || t.symbol == "" || len(t.venue)+len(t.symbol) > maxName {
		return trade{}, bad(schemas.Undecodable, "venue %.80q and symbol %.80q name no market", t.venue, t.symbol)
	}
	var err error
	t.time, err = moment(fields[k.atTime])
	return t, err
}
