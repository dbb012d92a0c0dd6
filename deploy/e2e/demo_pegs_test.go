package e2e

import (
	"math"
	"net/http"
	"testing"
	"time"
)

// Stablecoins have a peg and a past of it in SQL and REST, also the one whose currency no central bank fixes and which a single
// exchange lists.
func TestDemoPegsOfEveryKindHaveAPast(t *testing.T) {
	d := filledDemo(t)
	for _, coin := range []struct{ id, symbol, peg string }{
		{"tether", "USDT", "USD"}, {"euro-coin", "EURC", "EUR"}, {"cnh-tether", "CNHT", "CNH"},
	} {
		statement := "SELECT peg, price, target_usd, deviation_bps FROM v_peg WHERE coin_id = '" + coin.id +
			"' ORDER BY time DESC LIMIT 1"
		var rows []row
		for deadline := time.Now().Add(demoPatience); ; time.Sleep(time.Second) {
			if rows = d.query(t, statement); len(rows) > 0 || time.Now().After(deadline) {
				break
			}
		}
		if len(rows) == 0 {
			t.Errorf("%s: v_peg has no row", coin.id)
			continue
		}
		price, target := number(rows[0], "price"), number(rows[0], "target_usd")
		deviation := (price/target - 1) * 10_000
		if rows[0]["peg"] != coin.peg || math.Abs(deviation-number(rows[0], "deviation_bps")) > 1e-6 || math.Abs(deviation) > 1000 {
			t.Errorf("%s: v_peg says %v, want the peg %s and a price within a tenth of it", coin.id, rows[0], coin.peg)
		}
		path := "/api/v1/stablecoins/" + coin.symbol + "/peg-stability?window=1d"
		d.await(t, path, "a target, and a history of it", func(status int, body map[string]any) bool {
			history, _ := body["history"].([]any)
			return status == http.StatusOK && body["pegCurrency"] == coin.peg && number(body, "pegTarget") > 0 && len(history) > 0
		})
	}
}
