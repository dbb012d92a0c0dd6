package sources

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

type okxRates struct {
	Data []struct{ Ccy, Rate, LendingRate, PreRate, Ts string }
}

// What lenders earn is less than what borrowers pay, the summary has the last hour of the history, and the pages of the past
// join.
func TestOKXServesOneMarket(t *testing.T) {
	s := open(t, 1)
	const path = "/api/v5/finance/savings/lending-rate-"
	last := map[string]string{}
	for _, row := range decoded[okxRates](t, s, "okx-earn", path+"summary").Data {
		last[row.Ccy] = row.PreRate
	}
	newest := decoded[okxRates](t, s, "okx-earn", path+"history?limit=1").Data
	if len(newest) != okxCoins || len(last) != okxCoins {
		t.Errorf("%d and %d currencies, want %d", len(newest), len(last), okxCoins)
	}
	at := strconv.FormatInt(simulatortest.Noon.Truncate(time.Hour).UnixMilli(), 10)
	for _, row := range newest {
		lent, err := strconv.ParseFloat(row.LendingRate, 64)
		paid, err2 := strconv.ParseFloat(row.Rate, 64)
		if err != nil || err2 != nil || lent <= 0 || lent >= paid || row.Rate != last[row.Ccy] || row.Ts != at {
			t.Errorf("%+v beside %s", row, last[row.Ccy])
		}
	}
	hours := 0
	at = ""
	for range 3 {
		page := decoded[okxRates](t, s, "okx-earn", path+"history?ccy=BTC&limit=50&after="+at).Data
		for _, row := range page {
			ts, err := strconv.ParseInt(row.Ts, 10, 64)
			if want := simulatortest.Noon.Truncate(time.Hour).Add(-time.Duration(hours) * time.Hour).UnixMilli(); err != nil || ts != want {
				t.Fatalf("hour %d is %s, want %d", hours, row.Ts, want)
			}
			at, hours = row.Ts, hours+1
		}
	}
	if hours != 150 {
		t.Errorf("three pages hold %d hours", hours)
	}
}

// Validators lose now and then: the APR of a day is negative, and one of most days is not.
func TestLidoLosesOnSomeDays(t *testing.T) {
	s := open(t, 1)
	losses := 0
	for days := range int64(400) {
		switch apr := rebase(s.references[0].world, 20_000+days)["apr"].(float64); {
		case apr < 0:
			losses++
		case apr < 1.5 || apr > 4.5:
			t.Errorf("day %d: %g %%", days, apr)
		}
	}
	if losses < 2 || losses > 20 {
		t.Errorf("%d losses in 400 days", losses)
	}
}

// Candles of funding agree with the tickers.
func TestBitfinexCandlesEndAtTheTicker(t *testing.T) {
	s := open(t, 1)
	candles := decoded[[][]float64](t, s, "bitfinex-funding", "/v2/candles/trade:1h:fUSD:p30/hist?limit=48")
	tickers := decoded[[][]any](t, s, "bitfinex-funding", "/v2/tickers?symbols=fUSD")
	if len(candles) != 48 || len(tickers) != 1 || math.Abs(candles[0][2]/tickers[0][1].(float64)-1) > 1e-6 {
		t.Fatalf("%d candles, the newest %v, ticker %v", len(candles), candles[0], tickers)
	}
	for i, c := range candles[1:] {
		if c[0] != candles[i][0]-3.6e6 || c[2] != candles[i][1] || c[3] < max(c[1], c[2]) || c[4] > min(c[1], c[2]) {
			t.Errorf("candle %v before %v", c, candles[i])
		}
	}
	since := strconv.FormatInt(simulatortest.Noon.Add(-5*time.Hour).UnixMilli(), 10)
	rising := decoded[[][]float64](t, s, "bitfinex-funding", "/v2/candles/trade:1h:fUSD:p30/hist?sort=1&limit=2&start="+since)
	if len(rising) != 2 || rising[0][0] >= rising[1][0] {
		t.Errorf("ascending: %v", rising)
	}
}
