package query_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/providers"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/usage"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// FuzzREST asks whatever path, parameters and body, in both methods that there are, of a server with every endpoint
// over the real engine. Whatever is asked, the answer is one that the server's document describes for it, and no fault
// of the server's. The seeds are the document's own examples, and each of them with one parameter spoilt.
func FuzzREST(f *testing.F) {
	base := everyEndpoint(f)
	document := querytest.ReadDocument(f, base)
	for _, pattern := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		for method, operation := range document.Paths.Value(pattern).Operations() {
			for _, c := range querytest.Calls(pattern, operation) {
				path, parameters, _ := strings.Cut(c.Path, "?")
				f.Add(method == http.MethodPost, path, parameters, "", c.Body)
				if c.Succeeds {
					f.Add(method == http.MethodPost, path, parameters+"&view=tool", `W/"x", *`, c.Body)
				}
			}
		}
	}
	client := &rawClient{address: strings.TrimPrefix(base, "http://")}
	f.Cleanup(client.close)
	f.Fuzz(func(t *testing.T, post bool, path, parameters, match, body string) {
		method := http.MethodGet
		if post {
			method = http.MethodPost
		}
		target := "/" + strings.TrimPrefix(printable(path), "/")
		if parameters != "" {
			target += "?" + printable(parameters)
		}
		response, content := client.ask(t, method, target, printable(match), body)
		if response.StatusCode >= http.StatusInternalServerError {
			t.Fatalf("%s %s %q: a fault of the server: %d %s", method, target, body, response.StatusCode, content)
		}
		operation := document.Operation(method, target)
		if operation == nil {
			operation = unknown(document, response.StatusCode)
		}
		if operation == nil {
			t.Fatalf("%s %s is no operation of the document, and is answered %d %.300s", method, target, response.StatusCode, content)
		}
		if err := querytest.Fault(operation, response, content); err != nil {
			t.Fatalf("%s %s %q: %v", method, target, body, err)
		}
	})
}

// unknown means an operation that the document does not know: a method of a path that has another, or no path at
// all, which are answered with the error that every operation shares.
func unknown(document *querytest.Document, status int) *openapi3.Operation {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
	default:
		return nil
	}
	shared := document.Paths.Value("/api/v1/prices").Get.Responses.Value("400")
	return &openapi3.Operation{Responses: openapi3.NewResponses(openapi3.WithStatus(status, shared))}
}

// everyEndpoint serves every endpoint over a fixture in which something of each kind was published.
func everyEndpoint(t testing.TB) (base string) {
	table := querytest.Coins(
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT", "ethereum,ETH,Ethereum,2,coin,,", "tether,USDT,Tether,3,stablecoin,USD,",
		"solana,SOL,Solana,4,coin,,", "sol-wormhole,SOL,SOL (Wormhole),5,wrapped,,")
	w := querytest.NewFixture(t, table)
	w.Open(enginetest.Migrated(t))
	for _, line := range []string{
		"use ../mcp/testdata/world.setup",
		`said fixing: {source: "ecb" base: "EUR" quote: "USD" rate: "1.25" date: "2026-11-19" ingest_time: 1795101000000000000}`,
		"minute 2026-11-20T10:00:00Z",
		"rollup lido staking ethereum 2026-11-20T08:00:00Z 3600 2.4 2.6 2.3 2.5 2.45 6 pool=steth symbol=stETH",
		"rollup lido staking ethereum 2026-11-19T00:00:00Z 86400 2.4 2.6 2.3 2.5 2.45 144 pool=steth symbol=stETH",
	} {
		w.Run(line)
	}
	now := func() time.Time { return w.Now }
	venues := []views.Provider{{Slug: "kraken", Name: "Kraken"}, {Slug: "okx", Name: "OKX"}}
	candles, rateCharts := views.NewCandles(w.Prices, w.History()), views.NewRateCharts(w.Yields, w.History())
	states := providers.New(w.Prices, w.Catalog, w.Yields, w.History(), providers.Served{
		Sources: views.NewPastCurrencies(w.Catalog, nil, w.History()), Yields: views.NewPastYields(w.Yields, nil, w.History()), Prices: w.History()}, venues)
	defi := views.NewDefiStore()
	w.Must(defi.Apply(views.TailRecord{Marked: &eventsv1.DefiRecord{Body: &eventsv1.DefiRecord_Summary{Summary: &eventsv1.DefiSummary{Time: w.Now.UnixNano(), Read: w.Now.UnixNano(),
		LendingRates: &eventsv1.DefiRates{}, StakingRates: &eventsv1.DefiRates{}, BorrowingRates: &eventsv1.DefiRates{},
		Lending: &eventsv1.DefiLending{}, Staking: &eventsv1.DefiStaking{}, Borrowing: &eventsv1.DefiBorrowing{}}}}}))
	pastCoins := views.NewPastCoins(w.Catalog, views.NewPastRows(w.Catalog, nil, w.History()), nil, w.History())
	var endpoints []query.Endpoint
	for _, unit := range []interface{ Endpoints() []query.Endpoint }{
		prices.New(w.Prices, w.Catalog, views.NewConverter(w.Prices, w.Catalog, views.NewPastCurrencies(w.Catalog, nil, w.History())), w.History(), venues),
		charts.New(w.Prices, w.Catalog, candles, w.History(), w.Yields, rateCharts),
		coins.New(w.Prices, w.Catalog, w.Yields, candles, coins.Served{Coins: pastCoins, Yields: views.NewPastYields(w.Yields, nil, w.History())}, w.History()),
		globalstats.NewDefi(w.Catalog, defi, views.NewPastDefi(defi, nil, w.History()), pastCoins, w.History()),
		globalstats.New(w.Catalog, globalstats.Served{Summaries: views.NewPastSummaries(w.Catalog, nil, w.History()), Coins: pastCoins,
			Sources: views.NewPastCurrencies(w.Catalog, nil, w.History())}, w.History()),
		stablecoins.New(w.Prices, w.Catalog, w.History(), stablecoins.Served{
			Sources: views.NewPastCurrencies(w.Catalog, nil, w.History()), Rows: views.NewPastRows(w.Catalog, nil, w.History()), Prices: w.History()}),
		fiat.New(table, w.Catalog, views.NewPastCurrencies(w.Catalog, nil, w.History()), w.History()),
		states,
		rates.New(w.Yields, w.Prices, w.Catalog, w.History(), rates.Served{
			Yields: views.NewPastYields(w.Yields, nil, w.History()), Rows: views.NewPastRows(w.Catalog, nil, w.History()), Prices: w.History()}, rateCharts, states, venues),
		earn.New(table, w.Catalog, w.History(), venues),
		symbols.New(w.Catalog, w.Prices, w.Rates, nil, w.History(), schemas.NewSymbolOverrides()),
		usage.New(limits.NewLimiter(now, nil), w.History(), now),
	} {
		endpoints = append(endpoints, unit.Endpoints()...)
	}
	return querytest.Serve(t, now, endpoints)
}

// rawClient sends what no library would, on one connection, which is opened again when the server ended it.
type rawClient struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
}

func (c *rawClient) ask(t *testing.T, method, target, match, body string) (*http.Response, []byte) {
	t.Helper()
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, c.address)
	if match != "" {
		head += "If-None-Match: " + match + "\r\n"
	}
	if method == http.MethodPost {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	} else {
		body = ""
	}
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, refused := io.WriteString(c.conn, head+"\r\n"+body) // what is too large may be answered before it is sent
	response, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %.300s: no answer: %v, %v", method, target, refused, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %.300s: %v", method, target, err)
	}
	if response.Close || refused != nil {
		c.close()
	}
	return response, content
}

func (c *rawClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// printable escapes what would end a line of the request or a word of it.
func printable(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if b := text[i]; b > ' ' && b < 0x7f {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}
