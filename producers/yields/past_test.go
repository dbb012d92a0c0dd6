package yields

import (
	"slices"
	"testing"

	"github.com/marketlog/marketlog/producers/poll"
)

// What a path asks for decides whether an answer is the past, and of what.
func TestThePastIsReadByItsPath(t *testing.T) {
	const hours = `{"code":"0","data":[{"ccy":"BTC","rate":"0.021","lendingRate":"0.005","ts":"1767571200000"}]}`
	const candles = `[[1767571200000, 0.0003, 0.00031, 0.00035, 0.0002, 123456.7],[1767574800000, 0.00031, null, 0.00035, 0.0002, 0]]`
	for _, test := range []struct {
		source     poll.Source
		path, body string
		want       []string
	}{
		{okxEarn(), "/api/v5/finance/savings/lending-rate-history?limit=1", hours, []string{"lending BTC 0.005"}},
		{
			okxEarn(), "/api/v5/finance/savings/lending-rate-history?ccy=BTC&limit=100&after=1767574800000", hours,
			[]string{"past lending BTC 0.005", "past borrowing BTC 0.021"},
		},
		{okxEarn(), "/api/v5/finance/savings/lending-rate-history?ccy=BTC&after=1", `{"code":"0","data":[]}`, nil},
		{bitfinexFunding(), "/v2/candles/trade:1h:fUSD:p30/hist?limit=2", candles, []string{"past lending fUSD 0.00031", "past borrowing fUSD 0.00031"}},
		{bitfinexFunding(), "/v2/candles/trade:1D:fUST:a30:p2:p30/hist", `[]`, nil},
	} {
		var readings poll.Readings
		if err := test.source.Decode(test.path, []byte(test.body), &readings); err != nil || len(readings.Refused) > 0 {
			t.Errorf("%s: %v, %v", test.path, err, readings.Refused)
		}
		var got []string
		for _, rec := range readings.Records {
			r := rec.GetRate()
			line := r.Category + " " + r.Pool + " " + r.Raw
			if r.Past {
				line = "past " + line
			}
			if r.EventTime != 1767571200e9 {
				t.Errorf("%s: at %d", test.path, r.EventTime)
			}
			got = append(got, line)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.path, got, test.want)
		}
	}
}

// What has a past is listed best first: coins by their rank, pools by what is in them, and after them what no coin's rates show.
func TestThePastIsOfferedBestFirst(t *testing.T) {
	for _, test := range []struct {
		source poll.Source
		body   string
		want   []string
	}{
		{
			okxEarn(), `{"code":"0","data":[{"ccy":"QQQ","lendingRate":"0.1","ts":"1"},{"ccy":"USDC","lendingRate":"0.1","ts":"1"},{"ccy":"BTC","lendingRate":"0.1","ts":"1"}]}`,
			[]string{"BTC BTC bitcoin lending", "USDC USDC usd-coin lending", "QQQ QQQ  lending"},
		},
		{
			defillamaYields(), `{"data":[{"pool":"a","project":"aave-v3","symbol":"USDC","tvlUsd":5,"apy":1},{"pool":"b","project":"lido","symbol":"STETH","tvlUsd":70,"apy":2},
				{"pool":"c","project":"uniswap-v3","symbol":"USDC-WETH","exposure":"multi","tvlUsd":900,"apy":3},{"pool":"d","project":"aave-v3","symbol":"WETH","tvlUsd":60,"apy":4}]}`,
			[]string{"b STETH ethereum staking", "d WETH ethereum lending", "a USDC usd-coin lending", "c USDC-WETH  liquidity"},
		},
	} {
		var readings poll.Readings
		if err := test.source.Decode(test.source.Past.Listing[0], []byte(test.body), &readings); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range test.source.Past.Series(readings.Records) {
			got = append(got, s.ID+" "+s.Symbol+" "+s.Coin+" "+s.Category)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s offers %q, want %q", test.source.Slug, got, test.want)
		}
	}
}

// A pool that was listed but not counted yet has an empty chart; an answer without any data has not.
func TestNewPoolHasNoPast(t *testing.T) {
	s := defillamaYields()
	decoded(t, s, "/pools", onePool)
	if rates := decoded(t, s, thePool, `{"status": "success", "data": []}`); len(rates) > 0 {
		t.Errorf("read %v in an empty chart", rates)
	}
	refused(t, s, thePool, `{"message": "Internal server error"}`, "no data in it")
	refused(t, s, "/pools", `{"status": "success", "data": []}`, "no data in it")
}
