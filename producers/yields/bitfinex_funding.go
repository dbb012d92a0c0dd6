package yields

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// bitfinexFunding reads Bitfinex's market of margin funding, in fractions a day: what lenders earn is the flash return rate,
// the mean of all fixed rates of the last hour, and what borrowers pay is the lowest rate that somebody offers. Tickers are
// described on https://docs.bitfinex.com/reference/rest-public-tickers, candles of the past, which are in fractions a day as
// well, on https://docs.bitfinex.com/reference/rest-public-candles.
func bitfinexFunding() poll.Source {
	return poll.Source{
		Slug: "bitfinex-funding", Name: "Bitfinex margin funding", Version: 1,
		URL:         "https://api-pub.bitfinex.com",
		License:     "under Bitfinex's API terms of service",
		Terms:       "https://www.bitfinex.com/legal/exchange/api-terms",
		Attribution: "Source: Bitfinex",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "tickers",
			Evidence: producers.Documented("https://docs.bitfinex.com/reference/rest-public-tickers").And(
				"https://github.com/bitfinexcom/bitfinex-api-py/blob/master/bfxapi/types/serializers.py",
				"https://github.com/thrasher-corp/gocryptotrader/blob/master/exchanges/bitfinex/bitfinex_types.go"),
			Interval: 15 * time.Minute, Requests: poll.Fixed("/v2/tickers?symbols=ALL")}},
		Past: &poll.Past{
			Evidence: producers.Documented("https://docs.bitfinex.com/reference/rest-public-candles").And(
				github("bmoscon/cryptofeed", "HEAD", "cryptofeed/exchanges/mixins/bitfinex_rest.py")).AfterSearching(
				":a30:p2:p30/hist, funding candles of Bitfinex").But(
				"the client reads candles of markets, whose places are the same; in code of a repository that is not known those of " +
					"funding have the same too, as fractions a day"),
			Listing: []string{"/v2/tickers?symbols=ALL"}, Series: byRank, Interval: time.Hour,
			// Those of all periods, as Bitfinex draws them itself: of a single period many hours have no trade.
			Path: func(s poll.Series, from, to time.Time) string {
				return fmt.Sprintf("/v2/candles/trade:1h:%s:a30:p2:p30/hist?start=%d&end=%d&limit=%d&sort=1",
					url.PathEscape(s.ID), from.UnixMilli(), to.UnixMilli()-1, bitfinexHours)
			},
			Rows: bitfinexHours, OldestFirst: true, Settle: 5 * time.Minute,
		},
		Moves:    time.Hour, // the flash return rate is the mean of an hour
		Requests: 30, Per: time.Minute,
		MaxBody: 8 << 20,
		Decode:  decodeBitfinexFunding,
	}
}

// bitfinexHours are the most candles that an answer has.
const bitfinexHours = 10_000

func decodeBitfinexFunding(path string, body []byte, out *poll.Readings) error {
	rows, err := answer.Rows(body)
	if err != nil {
		return err
	}
	if len(rows) > 0 && string(rows[0]) == `"error"` {
		return producers.Unreadable("it says %.200s", body)
	}
	if symbol, asked := bitfinexCandles(path); asked {
		answer.EachRow(rows, out, func(row json.RawMessage, out *poll.Readings) error { return bitfinexCandle(symbol, row, out) })
		return nil
	}
	funding := 0
	for i, row := range rows {
		var cells []json.RawMessage
		var symbol string
		if json.Unmarshal(row, &cells) != nil || len(cells) == 0 || json.Unmarshal(cells[0], &symbol) != nil || !bitfinexFunds(symbol) {
			continue
		}
		funding++
		answer.Refuse(out, bitfinexTicker(symbol, row, out), "row %d", i)
	}
	if funding == 0 {
		return producers.Unreadable("no funding in it")
	}
	return nil
}

// bitfinexFunds reports whether a symbol is of funding, and not of trading, of derivatives (codes that end in F0) or of paper money.
func bitfinexFunds(symbol string) bool {
	return strings.HasPrefix(symbol, "f") && !strings.HasSuffix(symbol, "F0") && !strings.HasPrefix(symbol, "fTEST")
}

// The places of a ticker of funding that are read, and how many there are at least.
const (
	bitfinexFRR, bitfinexAsk, bitfinexAskDays = 1, 5, 6
	bitfinexPlaces                            = 15
)

func bitfinexTicker(symbol string, row json.RawMessage, out *poll.Readings) error {
	var cells []producers.Num
	var f answer.Fields
	if !f.Parse(row, &cells) {
		return f.Err
	}
	if len(cells) < bitfinexPlaces {
		return producers.Unreadable("%d places in a ticker of funding", len(cells))
	}
	out.Rate(bitfinexRate(symbol, schemas.RateLending, bitfinexNonzero(cells[bitfinexFRR])))
	offered := bitfinexRate(symbol, schemas.RateBorrowing, bitfinexNonzero(cells[bitfinexAsk]))
	if days := f.Count("period", cells[bitfinexAskDays]); days > 0 {
		offered.Term = strconv.FormatUint(uint64(days), 10) + "d"
	}
	if f.Err == nil {
		out.Rate(offered)
	}
	return f.Err
}

// bitfinexNonzero leaves out 0: nobody lends at that, it is the value where there was no trade and where nobody offers.
func bitfinexNonzero(n producers.Num) producers.Num {
	if f, err := strconv.ParseFloat(string(n), 64); err == nil && f == 0 {
		return ""
	}
	return n
}

// bitfinexRate is one of a day. Interest is paid once a day beside what is lent, and is lent again only by a new offer.
func bitfinexRate(symbol, category string, raw producers.Num) *eventsv1.Rate {
	return &eventsv1.Rate{
		Project: "bitfinex", Pool: symbol, Symbol: strings.TrimPrefix(symbol, "f"), Category: category,
		Raw: string(raw), RawUnit: "apr_fraction_daily", Compounding: "none", Payout: "daily",
	}
}

// bitfinexCandles is the currency of a path such as /v2/candles/trade:1h:fUSD:p30/hist.
func bitfinexCandles(path string) (symbol string, asked bool) {
	parts := answer.Endpoint(path)
	if len(parts) < 3 || parts[1] != "candles" {
		return "", false
	}
	for _, word := range strings.Split(parts[2], ":") {
		if strings.HasPrefix(word, "f") {
			return word, true
		}
	}
	return "", false
}

// bitfinexCandle is what was agreed on last in a span of the past, at which lenders earn and borrowers pay the same.
func bitfinexCandle(symbol string, row json.RawMessage, out *poll.Readings) error {
	var cells []producers.Num
	var f answer.Fields
	if !f.Parse(row, &cells) {
		return f.Err
	}
	if len(cells) < 6 { // time, open, close, high, low, volume
		return producers.Unreadable("%d places in a candle", len(cells))
	}
	at := f.Known("time", string(cells[0]), producers.Unix(cells[0], time.Millisecond))
	if f.Err != nil {
		return f.Err
	}
	for _, category := range []string{schemas.RateLending, schemas.RateBorrowing} {
		rate := bitfinexRate(symbol, category, cells[2])
		rate.Past, rate.EventTime = true, at
		out.Rate(rate)
	}
	return nil
}
