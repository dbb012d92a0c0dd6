package producers_test

import (
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/decode"
)

// What sources state beside rates and coins is printed with its decimals as they came, and null for what is not there.
func TestDecodePrintsWhatSourcesReport(t *testing.T) {
	for name, c := range map[string]struct{ source, recording, want string }{
		"a stablecoin": {
			"defillama", `{"peggedAssets":[{"id":"1","name":"A","symbol":"AUSD","pegType":"peggedUSD","pegMechanism":null,"circulating":{"peggedUSD":12.50},"chainCirculating":{"Base":{"current":{"peggedUSD":2.5}}},"price":null}]}`,
			`{"kind":"stablecoin","source":"defillama","id":"1","symbol":"AUSD","name":"A","pegType":"peggedUSD","pegMechanism":null,"price":null,"circulating":"12.5","chains":{"Base":"2.5"},"dead":false}`,
		},
		"a protocol, in all and by chain": {
			"defillama", `[{"slug":"acme","name":"Acme","category":"Lending","tvl":3.0,"chainTvls":{"Base":1,"borrowed":2}}]`,
			`{"kind":"tvl","source":"defillama","slug":"acme","name":"Acme","category":"Lending","chain":null,"tvlUsd":"3"}
{"kind":"tvl","source":"defillama","slug":"acme","name":"Acme","category":"Lending","chain":"Base","tvlUsd":"1"}
{"kind":"tvl","source":"defillama","slug":"acme","name":"Acme","category":"Lending","chain":"borrowed","tvlUsd":"2"}`,
		},
		"all of DeFi at a time of the past": {
			"defillama", `[{"date":1767571200,"tvl":117000000000.50}]`,
			`{"kind":"tvl","source":"defillama","slug":null,"name":null,"category":null,"chain":null,"tvlUsd":"117000000000.5","eventTime":"2026-01-05T00:00:00Z"}`,
		},
		"a chain, under another name of the source": {
			"defillama-stablecoins", `[{"name":"Base","tvl":1e3,"tokenSymbol":null,"gecko_id":null}]`,
			`{"kind":"tvl","source":"defillama","slug":null,"name":null,"category":null,"chain":"Base","tvlUsd":"1000"}`,
		},
		"an index": {
			"alternative.me", `{"data":[{"value":"40","value_classification":"Fear","timestamp":"1767571200"}]}`,
			`{"kind":"fear_greed","source":"alternative","value":40,"classification":"Fear","eventTime":"2026-01-05T00:00:00Z"}`,
		},
		"rates of a blend": {
			"frankfurter", `[{"date":"2026-01-05","base":"USD","quote":"EUR","rate":0.90,"providers":[{"key":"ECB","rate":0.9}]}]`,
			`{"kind":"fiat","source":"frankfurter","base":"USD","quote":"EUR","rate":"0.9","date":"2026-01-05"}`,
		},
		"rates that hold now, nobody knows when": {
			"coinbasefiat", `{"data":{"currency":"USD","rates":{"EUR":"0.9"}}}`,
			`{"kind":"fiat","source":"coinbasefiat","base":"USD","quote":"EUR","rate":"0.9","date":null}`,
		},
		"rates that held when they were recorded": {
			"coinbase-fiat", `{"url":"https://x/v2/exchange-rates","status":200,"recorded_at":"2026-01-05T10:00:00Z","body":"{\"data\":{\"currency\":\"USD\",\"rates\":{\"EUR\":\"0.9\"}}}"}`,
			`{"kind":"fiat","source":"coinbasefiat","base":"USD","quote":"EUR","rate":"0.9","date":"2026-01-05"}`,
		},
		"a row that is none": {
			"er-api", `{"result":"success","time_last_update_unix":1767571351,"base_code":"USD","rates":{"EUR":0}}`,
			`{"kind":"error","reason":"non_positive","detail":"reading the rate of \"EUR\" on \"2026-01-05\": non_positive: 0","source":"erapi","receivedTime":null}`,
		},
	} {
		got, stderr, code := runDecode(t, decode.Options{Source: c.source}, []byte(c.recording))
		if strings.TrimSpace(got) != c.want || code != 0 {
			t.Errorf("%s: exit %d %s\n  got  %s  want %s", name, code, stderr, got, c.want)
		}
	}
}
