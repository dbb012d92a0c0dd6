package yields

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// decoded are the rates of an answer.
func decoded(t testing.TB, s poll.Source, path, body string) []*eventsv1.Rate {
	t.Helper()
	var readings poll.Readings
	if err := s.Decode(path, []byte(body), &readings); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var rates []*eventsv1.Rate
	for _, rec := range readings.Records {
		rates = append(rates, rec.GetRate())
	}
	return rates
}

func refused(t *testing.T, s poll.Source, path, body, why string) {
	t.Helper()
	var readings poll.Readings
	if err := s.Decode(path, []byte(body), &readings); err == nil || !strings.Contains(err.Error(), why) || len(readings.Records) > 0 {
		t.Errorf("%s: error %v with %d records, want none and %q", path, err, len(readings.Records), why)
	}
}

const (
	onePool  = `{"status": "success", "data": [{"pool": "747c1d2a-c668-4682-b9f9-296708a3dd90", "project": "lido", "chain": "Ethereum", "symbol": "STETH", "tvlUsd": 3, "apy": 2.2, "apyBase": 2.2}]}`
	oneLoan  = `[{"pool": "747c1d2a-c668-4682-b9f9-296708a3dd90", "apyBaseBorrow": 3}]`
	oneChart = `{"status": "success", "data": [{"timestamp": "2026-09-01T23:01:05.102Z", "tvlUsd": 5, "apy": 3.25, "apyBase": 3, "apyReward": 0.25}, {"timestamp": "2026-09-02T23:01:05.102Z", "tvlUsd": 5, "apy": null}, {"timestamp": "2026-09-03T11:01:05.102Z", "tvlUsd": 6, "apy": -1, "apyBase": -1, "apyReward": null}]}`
	thePool  = "/chart/747c1d2a-c668-4682-b9f9-296708a3dd90"
)

// The past and the loans of a pool are reported by its id alone.
func TestPoolsOfDefiLlamaAreRemembered(t *testing.T) {
	s := defillamaYields()
	refused(t, s, thePool, oneChart, "not known before /pools was read")
	refused(t, s, "/lendBorrow", oneLoan, "not known before /pools was read")
	decoded(t, s, "/pools", onePool)
	refused(t, s, "", oneChart, "does not say of which pool")
	refused(t, s, "/chart/another", oneChart, "not known before /pools was read")
	if loans := decoded(t, s, "/lendBorrow", oneLoan); len(loans) != 1 || loans[0].Project != "lido" || loans[0].Category != "borrowing" {
		t.Errorf("loans are %v", loans)
	}
	var got []string
	for _, r := range decoded(t, s, thePool, oneChart) {
		got = append(got, fmt.Sprint(r.Project, r.Pool[:8], r.Symbol, r.Category, r.Raw, r.Reward, r.TvlUsd, r.Past, r.EventTime))
	}
	want := []string{
		fmt.Sprint("lido", "747c1d2a", "STETH", "staking", "3.25", "0.25", "5", true, int64(1788303665102000000)),
		fmt.Sprint("lido", "747c1d2a", "STETH", "staking", "-1", "", "6", true, int64(1788433265102000000)),
	}
	if !slices.Equal(got, want) {
		t.Errorf("the chart has %q, want %q", got, want)
	}
}

// A source that is asked of each of its markets asks of those that it named last.
func TestMarketsAreAskedForAsTheyWereNamed(t *testing.T) {
	const metrics = "/kamino-market/%s/reserves/metrics?env=mainnet-beta"
	for _, test := range []struct {
		source      poll.Source
		list        string
		first, then []poll.Request
	}{
		{
			kamino(), `[{"lendingMarket": "DxXdAyU3kCjnyggvHmY5nAwg5cRbbmdyX3npfDMjjMek", "name": "JLP Market"}, {"lendingMarket": "7u3HeHxYDLhnCoErrtycNokbQYbWGzLs6JSDqGAv5PfF", "name": "Main Market"}]`,
			gets(fmt.Sprintf(metrics, kaminoMain)),
			gets(fmt.Sprintf(metrics, kaminoMain), fmt.Sprintf(metrics, "DxXdAyU3kCjnyggvHmY5nAwg5cRbbmdyX3npfDMjjMek")),
		},
		{
			aave(), `{"data": {"chains": [{"chainId": 1}, {"chainId": 42161}]}}`,
			[]poll.Request{graphQL(fmt.Sprintf(aaveQuery, "1, 42161, 8453, 43114, 137, 10, 56"))},
			[]poll.Request{graphQL(fmt.Sprintf(aaveQuery, "1, 42161"))},
		},
	} {
		feed := test.source.Feeds[1]
		if got := feed.Requests(poll.Known{}); !reflect.DeepEqual(got, test.first) {
			t.Errorf("%s asks first for %q, want %q", test.source.Slug, got, test.first)
		}
		if rates := decoded(t, test.source, test.source.Feeds[0].Requests(poll.Known{})[0].Path, test.list); len(rates) > 0 {
			t.Errorf("%s read %v in a list of markets", test.source.Slug, rates)
		}
		if got := feed.Requests(poll.Known{}); !reflect.DeepEqual(got, test.then) {
			t.Errorf("%s asks then for %q, want %q", test.source.Slug, got, test.then)
		}
	}
}

func TestReservesOfKaminoCarryTheirMarketsName(t *testing.T) {
	s := kamino()
	decoded(t, s, "/v2/kamino-market", `[{"lendingMarket": "DxXdAyU3kCjnyggvHmY5nAwg5cRbbmdyX3npfDMjjMek", "name": "JLP Market"}]`)
	rates := decoded(t, s, "/kamino-market/DxXdAyU3kCjnyggvHmY5nAwg5cRbbmdyX3npfDMjjMek/reserves/metrics?env=mainnet-beta", `[{"reserve": "R", "liquidityToken": "JLP", "supplyApy": "0", "borrowApy": "0.1"}]`)
	if len(rates) != 2 || rates[0].Name != "JLP Market" || rates[1].Name != "JLP Market" {
		t.Errorf("read %v", rates)
	}
	if empty := decoded(t, s, "/kamino-market/new/reserves/metrics?env=mainnet-beta", `[]`); len(empty) > 0 {
		t.Errorf("read %v in an empty market", empty)
	}
}

func TestQueriesAreALineOfJSONBehindABlank(t *testing.T) {
	if got, want := graphQL("{\n\tchains(filter: \"ALL\") {\n\t\tname\n\t}\n}").Body, `{"query":"{ chains(filter: \"ALL\") { name } }"}`; got != want {
		t.Errorf("posted %s, want %s", got, want)
	}
}

// An answer of the real size: 20,000 pools.
func BenchmarkDecode_20000Pools(b *testing.B) {
	const row = `{"chain":"Ethereum","project":"aave-v3","symbol":"USDC","tvlUsd":161164242,"apyBase":3.39093,"apyReward":null,"apy":3.39093,"rewardTokens":null,"pool":"aa70268e-4b52-42bf-a116-%012d","apyPct1D":0.09187,"apyPct7D":-0.43337,"apyPct30D":0.5,"stablecoin":true,"ilRisk":"no","exposure":"single","predictions":{"predictedClass":"Stable/Up","predictedProbability":73,"binnedConfidence":2},"poolMeta":null,"mu":4.1,"sigma":0.05,"count":1200,"outlier":false,"underlyingTokens":["0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"],"il7d":null,"apyBase7d":null,"apyMean30d":3.6,"volumeUsd1d":null,"volumeUsd7d":null,"apyBaseInception":null}`
	rows := make([]string, 20_000)
	for i := range rows {
		rows[i] = fmt.Sprintf(row, i)
	}
	body := []byte(`{"status":"success","data":[` + strings.Join(rows, ",") + `]}`)
	s := defillamaYields()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var readings poll.Readings
		if err := s.Decode("/pools", body, &readings); err != nil || len(readings.Records) != len(rows) {
			b.Fatal(err, len(readings.Records))
		}
	}
}

// gets are requests of paths.
func gets(paths ...string) []poll.Request {
	return poll.Fixed(paths...)(poll.Known{})
}
