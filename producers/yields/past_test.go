package yields

import (
	"slices"
	"testing"

	"github.com/marketlog/marketlog/producers"
)

// What a path asks for decides whether an answer is the past, and of what.
func TestThePastIsReadByItsPath(t *testing.T) {
	const hours = `{"code":"0","data":[{"ccy":"BTC","rate":"0.021","lendingRate":"0.005","ts":"1767571200000"}]}`
	const candles = `[[1767571200000, 0.0003, 0.00031, 0.00035, 0.0002, 123456.7],[1767574800000, 0.00031, null, 0.00035, 0.0002, 0]]`
	for _, test := range []struct {
		source     producers.Source
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
		var said producers.Readings
		if err := test.source.Decode(test.path, []byte(test.body), &said); err != nil || len(said.Refused) > 0 {
			t.Errorf("%s: %v, %v", test.path, err, said.Refused)
		}
		var got []string
		for _, rec := range said.Records {
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
