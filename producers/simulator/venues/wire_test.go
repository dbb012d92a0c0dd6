package venues

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever times a client gives, an answer is no longer than the venue's are.
func TestCandlesOfAnyTimeAreBounded(t *testing.T) {
	venues := []Venue{binance(), okx(), bybit(), bitget()}
	for i := range venues {
		venues[i].Limits = Limits{}
	}
	s := open(t, 1, venues...)
	for _, path := range []string{
		"/binance/api/v3/klines?symbol=BTCUSDT&interval=1m&startTime=FROM&endTime=TO&limit=1000",
		"/okx/api/v5/market/candles?instId=BTC-USDT&bar=1m&before=FROM&after=TO&limit=300",
		"/bybit/v5/market/kline?category=spot&symbol=BTCUSDT&interval=1&start=FROM&end=TO&limit=1000",
		"/bitget/api/v2/spot/market/candles?symbol=BTCUSDT&granularity=1min&startTime=FROM&endTime=TO&limit=1000",
	} {
		for _, from := range []string{"-9223372036854775808", "-1", "0", "1772600000000", "9223372036854775807"} {
			for _, to := range []string{"-9223372036854775808", "0", "1772600000000", "9223372036854775807"} {
				target := strings.NewReplacer("FROM", from, "TO", to).Replace(path)
				w := httptest.NewRecorder()
				s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
				// A row of the longest spelling is below 200 bytes.
				if w.Code != http.StatusOK && w.Code != http.StatusTooManyRequests || w.Body.Len() > 200_000 {
					t.Errorf("%s: status %d, %d bytes", target, w.Code, w.Body.Len())
				}
			}
		}
	}
}

// A feed's name leads to one market, and HTX's topics are taken apart at dots.
func TestSymbolsNameOneMarket(t *testing.T) {
	for _, x := range open(t, 1).exchanges {
		for _, m := range x.markets {
			if other := x.Market(m.Symbol); other != m {
				t.Errorf("%s: %s is %s/%s and %s/%s", x.venue.Slug, m.Symbol, m.Base, m.Quote, other.Base, other.Quote)
			}
			if x.venue.Slug == "htx" && strings.Contains(m.Symbol, ".") {
				t.Errorf("%s has a dot", m.Symbol)
			}
		}
	}
}
