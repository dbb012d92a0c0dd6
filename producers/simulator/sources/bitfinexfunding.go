package sources

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// bitfinexFunding serves Bitfinex's market of margin funding, in fractions a day, among pairs, and its candles, as described on
// https://docs.bitfinex.com/reference/rest-public-tickers and https://docs.bitfinex.com/reference/rest-public-candles.
func bitfinexFunding() Source {
	return Source{
		Slug: "bitfinex-funding", Requests: 30, Per: time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			f := bitfinexLent{r}
			return map[string]http.HandlerFunc{"GET /v2/tickers": f.tickers, "GET /v2/candles/{key}/hist": f.candles}
		},
	}
}

type bitfinexLent struct{ *Reference }

// bitfinexFunds are what is lent, by Bitfinex's names and ours, and its rate of a year.
var bitfinexFunds = []struct {
	symbol, of string
	level      float64
}{
	{"fUSD", "USD", 0.085}, {"fUST", "tether", 0.07}, {"fEUR", "EUR", 0.03}, {"fGBP", "GBP", 0.025}, {"fJPY", "JPY", 0.01},
	{"fBTC", "bitcoin", 0.004}, {"fETH", "ethereum", 0.012}, {"fLTC", "litecoin", 0.01}, {"fXRP", "ripple", 0.02}, {"fSOL", "solana", 0.03},
	{"fDOGE", "dogecoin", 0.04}, {"fUDC", "usd-coin", 0.03},
}

// rate of a day; false if nothing is called so.
func (f bitfinexLent) rate(symbol string) (market.Earning, bool) {
	for _, k := range bitfinexFunds {
		if k.symbol == symbol {
			return f.world.Credit(k.of, "bitfinex", k.level/365), true
		}
	}
	return market.Earning{}, false
}

func (f bitfinexLent) tickers(w http.ResponseWriter, req *http.Request) {
	now := f.Now().UnixNano()
	asked := strings.Split(req.URL.Query().Get("symbols"), ",")
	rows := [][]any{}
	add := func(symbol string, cells ...any) {
		if slices.Contains(asked, symbol) || asked[0] == "ALL" {
			rows = append(rows, append([]any{symbol}, cells...))
		}
	}
	for _, c := range f.catalogue.Coins[:2] { // enough to be left out by a reader of funding
		price := digits(c.At(now), 5)
		add("t"+c.Symbol+"USD", digits(price*0.9999, 5), 12.5, digits(price*1.0001, 5), 8.25, 0.0, 0.0, price, 1024.5, price, price)
	}
	for _, k := range bitfinexFunds {
		e, _ := f.rate(k.symbol)
		rate, before := digits(e.At(now), 8), digits(e.At(now-market.Day), 8)
		volume := digits(2e8*k.level, 6)
		add(k.symbol, rate, digits(rate*0.8, 8), 30, volume, digits(rate*0.95, 8), 2, digits(volume/4, 6),
			digits(rate-before, 8), digits(rate/before-1, 4), digits(rate*0.97, 8), volume, digits(rate*1.1, 8), digits(rate*0.7, 8), nil, nil, digits(volume/3, 6))
	}
	provider.Respond(w, http.StatusOK, rows)
}

// bitfinexSpans are the lengths of candles.
var bitfinexSpans = map[string]int64{
	"1m": market.Minute, "5m": 5 * market.Minute, "15m": 15 * market.Minute, "30m": 30 * market.Minute, "1h": market.Hour, "3h": 3 * market.Hour, "6h": 6 * market.Hour, "12h": 12 * market.Hour, "1D": market.Day, "1W": 7 * market.Day,
}

// candles serves those of a key such as trade:1h:fUSD:p30, the newest first unless sort is 1.
func (f bitfinexLent) candles(w http.ResponseWriter, req *http.Request) {
	key, q, now := strings.Split(req.PathValue("key"), ":"), req.URL.Query(), f.Now().UnixNano()
	if len(key) < 4 || key[0] != "trade" || bitfinexSpans[key[1]] == 0 {
		provider.Respond(w, http.StatusInternalServerError, []any{"error", 10020, "key: invalid"})
		return
	}
	e, ok := f.rate(key[2])
	rows := [][]any{}
	bound := func(name string, none int64) int64 {
		if n, err := strconv.ParseInt(q.Get(name), 10, 64); err == nil && n >= 0 && n < now/1e6 {
			return n * 1e6
		}
		return none
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 10_000 {
		limit = 100
	}
	span := bitfinexSpans[key[1]]
	first, last := max(bound("start", market.FirstBorn), market.FirstBorn), market.FloorDiv(bound("end", now), span)*span
	for n := int64(0); ok && n < int64(limit); n++ {
		at := last - n*span
		if q.Get("sort") == "1" {
			at = -market.FloorDiv(-first, span)*span + n*span
		}
		if at < first || at > last {
			break
		}
		from, to := e.At(at), e.At(min(at+span, now))
		rows = append(rows, []any{
			at / 1e6, digits(from, 8), digits(to, 8), digits(math.Max(from, to)*1.05, 8), digits(math.Min(from, to)*0.95, 8),
			digits(1e6*float64(span)/float64(market.Hour), 6),
		})
	}
	provider.Respond(w, http.StatusOK, rows)
}
