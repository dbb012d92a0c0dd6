package producers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// coinLine is what decode prints of a coin, sums or an error.
type coinLine struct {
	Kind, Source, Reason, ID, Symbol, Name string
	Rank                                   *int
	Price, MarketCap, Volume24h            *decimal.Decimal
	CirculatingSupply, TotalSupply         *decimal.Decimal
	MaxSupply                              *decimal.Decimal
	Categories                             []string
	Platforms                              map[string]string
	EventTime                              *string

	TotalMarketCap, TotalVolume24h, BtcDominance, EthDominance *decimal.Decimal
	ActiveCoins, ActiveMarkets                                 *int
}

// TestRecordedCoinsDecodeAsExpected compares what decode prints of real answers of CoinGecko with what an independent
// reader found in them. Answers that the adapter does not read are refused as a whole, and stop nothing.
func TestRecordedCoinsDecodeAsExpected(t *testing.T) {
	root, answers := expectedAnswers(t)
	compare := map[string]func(*testing.T, json.RawMessage, []coinLine){
		"x_cg_list": compareCoinList, "x_cg_coin": compareCoinPage, "x_cg_markets": compareCoinMarkets, "x_cg_global": compareCoinSums,
		"x_cg_chart": compareCoinChart,
	}
	compared := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(answers)) {
		recording := answers[file]
		if !strings.HasPrefix(file, "coingecko_ruby/") {
			continue
		}
		compared[recording.Kind] = true
		t.Run(file, func(t *testing.T) {
			lines := decodeCoins(t, filepath.Join(root, file))
			if of := compare[recording.Kind]; of != nil {
				of(t, recording.Expect, lines)
			} else if len(lines) != 1 || lines[0].Kind != "error" || lines[0].Reason != "undecodable" {
				t.Errorf("printed %+v, want one refusal: the adapter does not ask for this", lines)
			}
		})
	}
	for kind := range compare {
		if !compared[kind] {
			t.Errorf("no recording of kind %s was found", kind)
		}
	}
}

func decodeCoins(t *testing.T, file string) []coinLine {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := decode.Run(context.Background(), decode.Options{Source: "coingecko", File: file}, nil, sources.List(), nil, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	var lines []coinLine
	for scanner := bufio.NewScanner(&stdout); scanner.Scan(); {
		var line coinLine
		mustParse(t, scanner.Bytes(), &line)
		if line.Source != "coingecko" {
			t.Fatalf("printed %s, want a line of coingecko", scanner.Bytes())
		}
		lines = append(lines, line)
	}
	return lines
}

func compareCoinList(t *testing.T, expect json.RawMessage, lines []coinLine) {
	var want struct {
		Coins        int
		Ambiguous    int                 `json:"ambiguous_symbols"`
		Distinct     int                 `json:"distinct_symbols"`
		MostOfSymbol int                 `json:"max_coins_per_symbol"`
		IDsOfSymbol  map[string][]string `json:"ids_of_symbol"`
	}
	mustParse(t, expect, &want)
	bySymbol := map[string][]string{}
	for _, l := range lines {
		if l.Kind != "coin" || l.ID == "" || l.Price != nil || l.Rank != nil || l.Platforms != nil || l.EventTime != nil {
			t.Fatalf("printed %+v, want a coin with its names alone", l)
		}
		symbol := strings.ToLower(l.Symbol) // the same ones in another case count as one
		bySymbol[symbol] = append(bySymbol[symbol], l.ID)
	}
	ambiguous, most := 0, 0
	for _, ids := range bySymbol {
		most = max(most, len(ids))
		if len(ids) > 1 {
			ambiguous++
		}
	}
	equal(t, "coins, symbols, ambiguous ones, coins of one", spell([]any{len(lines), len(bySymbol), ambiguous, most}),
		spell([]any{want.Coins, want.Distinct, want.Ambiguous, want.MostOfSymbol}))
	for symbol, ids := range want.IDsOfSymbol {
		got := slices.Sorted(slices.Values(bySymbol[symbol]))
		equal(t, "ids of "+symbol, strings.Join(got, " "), strings.Join(ids, " "))
	}
}

func compareCoinPage(t *testing.T, expect json.RawMessage, lines []coinLine) {
	var want struct {
		ID, Symbol, Name  string
		Rank              int `json:"market_cap_rank"`
		Categories        []string
		Platforms         map[string]string
		Price             decimal.Decimal `json:"current_price_usd"`
		MarketCap         decimal.Decimal `json:"market_cap_usd"`
		Volume            decimal.Decimal `json:"total_volume_usd"`
		CirculatingSupply decimal.Decimal `json:"circulating_supply"`
		TotalSupply       decimal.Decimal `json:"total_supply"`
		MaxSupply         decimal.Decimal `json:"max_supply"`
		Updated           string          `json:"last_updated"`
	}
	mustParse(t, expect, &want)
	if len(lines) != 1 {
		t.Fatalf("printed %d lines, want the coin and its market in one", len(lines))
	}
	l := lines[0]
	equal(t, "coin", spell([]any{l.Kind, l.ID, l.Symbol, l.Name, l.Categories, *l.Rank, *l.EventTime, len(l.Platforms)}),
		spell([]any{"coin", want.ID, want.Symbol, want.Name, want.Categories, want.Rank, want.Updated, len(want.Platforms)}))
	equalNumbers(t, map[string][2]*decimal.Decimal{
		"price": {l.Price, &want.Price}, "cap": {l.MarketCap, &want.MarketCap}, "volume": {l.Volume24h, &want.Volume},
		"circulating": {l.CirculatingSupply, &want.CirculatingSupply}, "total": {l.TotalSupply, &want.TotalSupply}, "max": {l.MaxSupply, &want.MaxSupply},
	})
}

func compareCoinMarkets(t *testing.T, expect json.RawMessage, lines []coinLine) {
	var want struct {
		Rows int
		ByID map[string]struct {
			Rank              decimal.Decimal  `json:"market_cap_rank"`
			Price             *decimal.Decimal `json:"current_price"`
			MarketCap         *decimal.Decimal `json:"market_cap"`
			Volume            *decimal.Decimal `json:"total_volume"`
			CirculatingSupply *decimal.Decimal `json:"circulating_supply"`
			TotalSupply       *decimal.Decimal `json:"total_supply"`
			MaxSupply         *decimal.Decimal `json:"max_supply"`
		} `json:"by_id"`
	}
	mustParse(t, expect, &want)
	equal(t, "rows", len(lines), want.Rows)
	for _, l := range lines {
		w, ok := want.ByID[l.ID]
		if !ok {
			continue // not every row is expected by name
		}
		delete(want.ByID, l.ID)
		rank := decimal.NewFromInt(int64(*l.Rank))
		equalNumbers(t, map[string][2]*decimal.Decimal{
			"rank": {&rank, &w.Rank}, "price": {l.Price, w.Price}, "cap": {l.MarketCap, w.MarketCap}, "volume": {l.Volume24h, w.Volume},
			"circulating": {l.CirculatingSupply, w.CirculatingSupply}, "total": {l.TotalSupply, w.TotalSupply}, "max": {l.MaxSupply, w.MaxSupply},
		})
	}
	if len(want.ByID) > 0 {
		t.Errorf("did not print %v", want.ByID)
	}
}

func compareCoinChart(t *testing.T, expect json.RawMessage, lines []coinLine) {
	type list struct {
		N                     int
		First, Last, Min, Max decimal.Decimal
		TFirst                int64 `json:"t_first"`
		TLast                 int64 `json:"t_last"`
	}
	var want struct {
		Caps    list `json:"market_caps"`
		Volumes list `json:"total_volumes"`
	}
	mustParse(t, expect, &want)
	read := func(of func(coinLine) *decimal.Decimal) list {
		got := list{N: len(lines), First: *of(lines[0]), Last: *of(lines[len(lines)-1]), Min: *of(lines[0]), Max: *of(lines[0])}
		for _, l := range lines {
			if l.Kind != "coin_past" || l.ID != "bitcoin" {
				t.Fatalf("printed %+v, want a point of bitcoin's past", l)
			}
			got.Min, got.Max = decimal.Min(got.Min, *of(l)), decimal.Max(got.Max, *of(l))
		}
		for at, ms := range map[string]*int64{*lines[0].EventTime: &got.TFirst, *lines[len(lines)-1].EventTime: &got.TLast} {
			parsed, err := time.Parse(time.RFC3339, at)
			if err != nil {
				t.Fatal(err)
			}
			*ms = parsed.UnixMilli()
		}
		return got
	}
	equal(t, "caps", spell(read(func(l coinLine) *decimal.Decimal { return l.MarketCap })), spell(want.Caps))
	equal(t, "volumes", spell(read(func(l coinLine) *decimal.Decimal { return l.Volume24h })), spell(want.Volumes))
}

func compareCoinSums(t *testing.T, expect json.RawMessage, lines []coinLine) {
	var want struct {
		Coins     int             `json:"active_cryptocurrencies"`
		Markets   int             `json:"markets"`
		MarketCap decimal.Decimal `json:"total_market_cap_usd"`
		Volume    decimal.Decimal `json:"total_volume_usd"`
		Bitcoin   decimal.Decimal `json:"btc_dominance"`
		Ethereum  decimal.Decimal `json:"eth_dominance"`
	}
	mustParse(t, expect, &want)
	if len(lines) != 1 || lines[0].Kind != "global" {
		t.Fatalf("printed %+v, want one line of sums", lines)
	}
	l := lines[0]
	equal(t, "coins and markets", spell([]any{*l.ActiveCoins, *l.ActiveMarkets}), spell([]any{want.Coins, want.Markets}))
	equalNumbers(t, map[string][2]*decimal.Decimal{
		"cap": {l.TotalMarketCap, &want.MarketCap}, "volume": {l.TotalVolume24h, &want.Volume},
		"dominance of bitcoin": {l.BtcDominance, &want.Bitcoin}, "of ethereum": {l.EthDominance, &want.Ethereum},
	})
}

func equalNumbers(t *testing.T, pairs map[string][2]*decimal.Decimal) {
	t.Helper()
	for name, p := range pairs {
		switch got, want := p[0], p[1]; {
		case (got == nil) != (want == nil):
			t.Errorf("%s = %v, want %v", name, got, want)
		case got != nil && !got.Equal(*want):
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}

// TestDecodeReadsAnswersOfTodaysCoins reads samples of today's interface, which come after the lines of their request:
// every number of theirs that a line has a place for is printed as it was sent.
func TestDecodeReadsAnswersOfTodaysCoins(t *testing.T) {
	root := streamtest.Recordings(t)
	sample := func(name string) string { return filepath.Join(root, "jkorf", "CoinGecko.Net", name+".txt") }
	var rows []struct {
		ID        string
		Price     decimal.Decimal `json:"current_price"`
		MarketCap decimal.Decimal `json:"market_cap"`
		Max       decimal.Decimal `json:"max_supply"`
	}
	parseSample(t, sample("GetMarkets"), &rows)
	lines := decodeCoins(t, sample("GetMarkets"))
	equal(t, "rows", len(lines), len(rows))
	for i, l := range lines {
		equal(t, "id", l.ID, rows[i].ID)
		equalNumbers(t, map[string][2]*decimal.Decimal{
			"price": {l.Price, &rows[i].Price}, "cap": {l.MarketCap, &rows[i].MarketCap}, "max": {l.MaxSupply, &rows[i].Max},
		})
	}
	var sums struct {
		Of struct {
			Coins     int                        `json:"active_cryptocurrencies"`
			MarketCap map[string]decimal.Decimal `json:"total_market_cap"`
			Dominance map[string]decimal.Decimal `json:"market_cap_percentage"`
		} `json:"data"`
	}
	parseSample(t, sample("GetGlobalData"), &sums)
	total, bitcoin := sums.Of.MarketCap["usd"], sums.Of.Dominance["btc"]
	lines = decodeCoins(t, sample("GetGlobalData"))
	if len(lines) != 1 || lines[0].Kind != "global" || *lines[0].ActiveCoins != sums.Of.Coins {
		t.Fatalf("printed %+v, want sums over %d coins", lines, sums.Of.Coins)
	}
	equalNumbers(t, map[string][2]*decimal.Decimal{"cap": {lines[0].TotalMarketCap, &total}, "dominance": {lines[0].BtcDominance, &bitcoin}})
	for _, other := range []string{"GetGlobalDefiData", "GetMarketChart", "GetOhlc", "GetTrendingSearches"} {
		if lines := decodeCoins(t, sample(other)); len(lines) != 1 || lines[0].Kind != "error" || lines[0].Reason != "undecodable" {
			t.Errorf("%s: printed %+v, want one refusal", other, lines)
		}
	}
}

// parseSample reads the JSON of a sample by itself.
func parseSample(t *testing.T, file string, v any) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	mustParse(t, text[bytes.IndexAny(text, "[{"):], v)
}
