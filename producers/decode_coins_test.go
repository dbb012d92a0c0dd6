package producers_test

import (
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/decode"
)

// What an answer does not carry is null; a page of a coin and its market, received together, are one line.
func TestDecodePrintsCoinsAndSums(t *testing.T) {
	const (
		market = `[{"id":"harbor","symbol":"hbr","name":"Harbor","current_price":1.50e-7,"market_cap":15,"market_cap_rank":3,"total_volume":null,` +
			`"circulating_supply":100000000.0,"last_updated":"2026-01-05T00:00:01.250Z"}]`
		marketLine = `{"kind":"coin","source":"coingecko","id":"harbor","symbol":"hbr","name":"Harbor","rank":3,"price":"0.00000015","marketCap":"15",` +
			`"volume24h":null,"circulatingSupply":"100000000","totalSupply":null,"maxSupply":null,"categories":null,"platforms":null,` +
			`"eventTime":"2026-01-05T00:00:01.25Z"}` + "\n"
	)
	quoted := strings.ReplaceAll(market, `"`, `\"`)
	for name, c := range map[string]struct{ source, recording, want string }{
		"a page of markets": {"coingecko", market, marketLine},
		"packed":            {"coingecko", string(zip(market)), marketLine},
		"recorded": {
			"coingecko",
			`{"method":"GET","url":"https://api.coingecko.com/api/v3/coins/markets?vs_currency=usd","status":200,"body":"` + quoted + `"}`, marketLine,
		},
		"behind the lines of its request":       {"coingecko", "GET\n/api/v3/coins/markets\nfalse\n" + market, marketLine},
		"behind two lines":                      {"coingecko", "GET\r\n/api/v3/coins/markets\r\n" + market, marketLine},
		"behind the lines of another's request": {"coingecko", "GET\n/api/v3/coins/categories\nfalse\n" + market, `{"kind":"error","reason":"undecodable","detail":"undecodable: answer of unknown endpoint \"/api/v3/coins/categories\"","source":"coingecko","receivedTime":null}` + "\n"},
		"a list": {
			"coingecko", `[{"id":"harbor","symbol":"hbr","name":"Harbor","platforms":{"ethereum":"0xabc"}}]`,
			`{"kind":"coin","source":"coingecko","id":"harbor","symbol":"hbr","name":"Harbor","rank":null,"price":null,"marketCap":null,"volume24h":null,` +
				`"circulatingSupply":null,"totalSupply":null,"maxSupply":null,"categories":null,"platforms":{"ethereum":"0xabc"},"eventTime":null}` + "\n",
		},
		"a coin and its market": {
			"coingecko", `{"id":"harbor","symbol":"hbr","name":"Harbor","categories":["Layer 1"],"platforms":{"":""},"market_cap_rank":3,"last_updated":"2026-01-05T00:00:00Z",` +
				`"market_data":{"current_price":{"usd":2},"max_supply":10,"last_updated":"2026-01-05T00:00:02Z"}}`,
			`{"kind":"coin","source":"coingecko","id":"harbor","symbol":"hbr","name":"Harbor","rank":3,"price":"2","marketCap":null,"volume24h":null,` +
				`"circulatingSupply":null,"totalSupply":null,"maxSupply":"10","categories":["Layer 1"],"platforms":null,"eventTime":"2026-01-05T00:00:02Z"}` + "\n",
		},
		"sums": {
			"coinpaprika", `{"market_cap_usd":2.5e12,"volume_24h_usd":1,"bitcoin_dominance_percentage":57.54,"cryptocurrencies_number":9870,"last_updated":1767571200}`,
			`{"kind":"global","source":"coinpaprika","totalMarketCap":"2500000000000","totalVolume24h":"1","btcDominance":"57.54","ethDominance":null,` +
				`"activeCoins":9870,"activeMarkets":null,"eventTime":"2026-01-05T00:00:00Z"}` + "\n",
		},
		"refused beside what is read": {
			"coingecko", `[{"id":"","symbol":"x","name":"X","current_price":1},` + market[1:],
			marketLine + `{"kind":"error","reason":"undecodable","detail":"reading the coin: undecodable: the id \"\"","source":"coingecko","receivedTime":null}` + "\n",
		},
	} {
		if got, stderr, code := runDecode(t, decode.Options{Source: c.source}, []byte(c.recording)); code != 0 || got != c.want {
			t.Errorf("%s: exit %d, %s, got\n%s want\n%s", name, code, stderr, got, c.want)
		}
	}
}
