package deploy

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// scriptedPast is a Coinbase and a Kraken that trade since the 2nd of January 2024. Coinbase lists the pound first,
// and a coin that is not among the best known ones.
func scriptedPast(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /products", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"id":"ETH-GBP","base_currency":"ETH","quote_currency":"GBP","status":"online"},
			{"id":"BTC-USD","base_currency":"BTC","quote_currency":"USD","status":"online"},
			{"id":"NOBODYKNOWS-USD","base_currency":"NOBODYKNOWS","quote_currency":"USD","status":"online"}]`)
	})
	mux.HandleFunc("GET /products/{id}/candles", func(w http.ResponseWriter, r *http.Request) {
		first := time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)
		start, _ := time.Parse(time.RFC3339, r.URL.Query().Get("start"))
		end, _ := time.Parse(time.RFC3339, r.URL.Query().Get("end"))
		var rows []string
		for at := start; !at.After(end); at = at.Add(24 * time.Hour) {
			if !at.Before(first) {
				rows = append(rows, fmt.Sprintf("[%d,1,3,2,2,5]", at.Unix()))
			}
		}
		fmt.Fprintf(w, "[%s]", strings.Join(rows, ","))
	})
	mux.HandleFunc("GET /0/public/AssetPairs", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"error":[],"result":{"XXBTZUSD":{"aclass_base":"currency","altname":"XBTUSD","wsname":"XBT/USD","status":"online"}}}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestBackfillCommands is what a person types and sees, without an instance that runs.
func TestBackfillCommands(t *testing.T) {
	url := scriptedPast(t)
	dir := t.TempDir()
	run := func(want int, command string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		app := App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Env: []string{
			"MARKETLOG_VENUES_COINBASE_REST_URL=" + url, "MARKETLOG_VENUES_KRAKEN_REST_URL=" + url,
			"MARKETLOG_DATA_DIR=" + dir, "MARKETLOG_KAFKA_LISTEN=127.0.0.1:0",
		}}
		if code := app.Execute(t.Context(), strings.Fields(command)); code != want {
			t.Fatalf("%s exits with %d, want %d\n%s%s", command, code, want, &out, &errs)
		}
		return out.String(), errs.String()
	}
	prints := func(command, want string) {
		t.Helper()
		if got, _ := run(0, command); got != strings.ReplaceAll(want, "\t", "") {
			t.Errorf("%s prints\n%s\nwant\n%s", command, got, want)
		}
	}
	refuses := func(command, want string) {
		t.Helper()
		if _, got := run(1, command); !strings.Contains(got, want) {
			t.Errorf("%s complains %q, want %q", command, got, want)
		}
	}
	const days = " --from 2024-01-01T00:00:00Z --to 2024-01-08T00:00:00Z"

	prints("backfill --source coinbase --dry-run"+days, `coinbase BTC-USD 1d: 2024-01-01T00:00:00Z to 2024-01-08T00:00:00Z, 7 candles missing, 1 calls
		coinbase ETH-GBP 1d: 2024-01-01T00:00:00Z to 2024-01-08T00:00:00Z, 7 candles missing, 1 calls
		coinbase: 2 markets, 14 candles, 2 calls, 0s at 5 a second
		`)
	prints("gaps"+days, "") // nothing was back-filled yet, so nothing has gaps
	if got, _ := run(0, "backfill --source coinbase --symbols eth"+days); !strings.HasPrefix(got, "coinbase: 1 calls, 6 candles written, 0 were there, 0 refused, 0 calls failed, ") {
		t.Errorf("the back-fill prints %q", got)
	}
	const more = " --from 2023-12-30T00:00:00Z --to 2024-01-10T00:00:00Z"
	prints("gaps -o json"+more, `{"source":"coinbase","symbol":"ETH-GBP","base":"ETH","quote":"GBP","interval":"1d","status":"missing","from":"2023-12-30T00:00:00Z","to":"2024-01-01T00:00:00Z","candles":2,"calls":1}
		{"source":"coinbase","symbol":"ETH-GBP","base":"ETH","quote":"GBP","interval":"1d","status":"missing","from":"2024-01-08T00:00:00Z","to":"2024-01-10T00:00:00Z","candles":2,"calls":1}
		`)
	if got, _ := run(0, "backfill --gaps"+more); !strings.HasPrefix(got, "coinbase: 2 calls, 2 candles written, ") {
		t.Errorf("filling the gaps prints %q", got)
	}
	prints("gaps --source coinbase"+more, "coinbase ETH-GBP 1d: 2023-12-30T00:00:00Z to 2024-01-01T00:00:00Z, 2 candles unavailable: read, and the venue had nothing\n")
	prints("gaps --source kraken --symbols BTC"+days, "kraken BTC/USD 1d: 2024-01-01T00:00:00Z to 2024-01-08T00:00:00Z, 7 candles unavailable: the venue no longer has it\n")

	refuses("backfill", "--source is missing")
	refuses("backfill --source mtgox", `"mtgox" cannot be back-filled; use one of binance, `)
	refuses("backfill --source coinbase --symbols BTC,DGOE"+days, `coinbase lists no market "DGOE"`)
	refuses("backfill --source coinbase --from 2024-01-08T00:00:00Z --to 2024-01-01T00:00:00Z", "is not before --to")
	refuses("backfill --source okx"+days, "feeds is sim, and no simulator of okx runs here")
}
