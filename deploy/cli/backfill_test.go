package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
)

// scriptedPast is a Coinbase and a Kraken that trade since the 2nd of January 2024, and an OKX that lends since then. Coinbase
// lists the pound first, and a coin that is not among the best known ones.
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
	mux.HandleFunc("GET /api/v5/finance/savings/lending-rate-history", okxHours(time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// okxHours reports what was lent and borrowed in each hour since some time: the newest hundred before the one asked for, of all
// currencies the newest one.
func okxHours(since time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		currencies, hours, before := []string{"XRP", "USDC"}, 1, time.Now().UTC()
		if ccy := r.URL.Query().Get("ccy"); ccy != "" {
			after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
			currencies, hours, before = []string{ccy}, 100, time.UnixMilli(after).UTC()
		}
		var rows []string
		for at := before.Add(-1).Truncate(time.Hour); !at.Before(since) && hours > 0; at, hours = at.Add(-time.Hour), hours-1 {
			for _, ccy := range currencies {
				rows = append(rows, fmt.Sprintf(`{"ccy":"%s","rate":"0.06","lendingRate":"0.05","ts":"%d"}`, ccy, at.UnixMilli()))
			}
		}
		fmt.Fprintf(w, `{"code":"0","msg":"","data":[%s]}`, strings.Join(rows, ","))
	}
}

// TestBackfillCommands is what a person types and sees, without an instance that runs.
func TestBackfillCommands(t *testing.T) {
	url := scriptedPast(t)
	dir := t.TempDir()
	run := func(want int, line string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		app := command.Runtime{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Env: []string{
			"MARKETLOG_VENUES_COINBASE_REST_URL=" + url, "MARKETLOG_VENUES_KRAKEN_REST_URL=" + url,
			"MARKETLOG_SOURCES_OKX_EARN_URL=" + url, "MARKETLOG_SOURCES_OKX_EARN_REQUESTS=100",
			"MARKETLOG_DATA_DIR=" + dir, "MARKETLOG_KAFKA_LISTEN=127.0.0.1:0", "MARKETLOG_BACKFILL_SOURCES=binance",
		}}
		if code := Execute(t.Context(), &app, strings.Fields(line)); code != want {
			t.Fatalf("%s exits with %d, want %d\n%s%s", line, code, want, &out, &errs)
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
	refuses("gaps", "there is no instance: "+dir+" holds no log")
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen = dir, "127.0.0.1:0"
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		err = in.Close()
	}
	if err != nil {
		t.Fatal(err)
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
	prints("gaps --source coinbase"+more, "coinbase: does not have 1 ranges, 2 candles; --unavailable lists them\n")
	prints("gaps --unavailable --source coinbase"+more, "coinbase ETH-GBP 1d: 2023-12-30T00:00:00Z to 2024-01-01T00:00:00Z, 2 candles unavailable: read, and the venue had nothing\n")
	prints("gaps --unavailable --source kraken --symbols BTC"+days, "kraken BTC/USD 1d: 2024-01-01T00:00:00Z to 2024-01-08T00:00:00Z, 7 candles unavailable: the venue no longer has it\n")

	prints("backfill --source okx-earn --dry-run"+days, `okx-earn XRP 1h: 2024-01-01T00:00:00Z to 2024-01-08T00:00:00Z, 168 values missing, 2 calls
		okx-earn USDC 1h: 2024-01-01T00:00:00Z to 2024-01-08T00:00:00Z, 168 values missing, 2 calls
		okx-earn: 2 series, 336 values, 4 calls, 0s at 50 a second
		`)
	// Six days of lenders and borrowers in two answers; a third says that there is nothing before.
	if got, _ := run(0, "backfill --source okx-simple-earn --symbols usd-coin"+days); !strings.HasPrefix(got, "okx-earn: 3 calls, 288 values of 1 series written, 0 rows refused, 0 calls failed, ") {
		t.Errorf("the back-fill prints %q", got)
	}
	if got, _ := run(0, "topics tail rates.raw.v1 --count 1000 -o json"); strings.Count(got, `"past":true`) != 288 || strings.Count(got, `"category":"borrowing"`) != 144 {
		t.Errorf("the log of rates holds %d past ones: %.300s", strings.Count(got, `"past":true`), got)
	}
	if got, _ := run(0, "gaps -o json --source okx-earn"+more); !strings.HasSuffix(got, `{"absentFrom":"okx-earn","ranges":1,"values":24}`+"\n") {
		t.Errorf("what a source does not have is not counted:\n%s", got)
	}
	prints("gaps --unavailable -o json --source okx-earn"+more, `{"source":"okx-earn","symbol":"USDC","base":"USDC","interval":"1h","status":"missing","from":"2023-12-30T00:00:00Z","to":"2024-01-01T00:00:00Z","values":48,"calls":1}
		{"source":"okx-earn","symbol":"USDC","base":"USDC","interval":"1h","status":"missing","from":"2024-01-08T00:00:00Z","to":"2024-01-10T00:00:00Z","values":48,"calls":1}
		{"source":"okx-earn","symbol":"USDC","base":"USDC","interval":"1h","status":"unavailable","from":"2024-01-01T00:00:00Z","to":"2024-01-02T00:00:00Z","values":24,"reason":"read, and the source had nothing"}
		`)
	if got, _ := run(0, "backfill --gaps"+more); !strings.Contains(got, "okx-earn: 2 calls, 96 values of 1 series written, ") || !strings.Contains(got, "coinbase: 0 calls, 0 candles written, ") {
		t.Errorf("filling all gaps prints %q", got)
	}

	refuses("backfill", "--source is missing")
	refuses("backfill --source mtgox", `"mtgox" cannot be back-filled; use one of the venues binance, `)
	refuses("gaps --source coingecko", "or of the sources alternative, bitfinex-funding, defillama, defillama-yields, ecb, lido, okx-earn")
	refuses("backfill --source okx-earn --symbols USDC,DGOE"+days, `okx-earn has no history of "DGOE"`)
	refuses("backfill --source lido"+days, "lido is not polled, so its history cannot be read: feeds is sim, and the simulator does not answer for it")
	refuses("backfill --source coinbase --symbols BTC,DGOE"+days, `coinbase has no market "DGOE"`)
	refuses("backfill --source coinbase --from 2024-01-08T00:00:00Z --to 2024-01-01T00:00:00Z", "is not before --to")
	refuses("backfill --source okx"+days, "feeds is sim, and no simulator of okx runs here")
}
