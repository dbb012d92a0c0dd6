package exchanges

import (
	"slices"

	"github.com/marketlog/marketlog/producers/adapter"
)

// Countries that terms name together, by ISO 3166.
var (
	europeanUnion = []string{
		"AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT",
		"RO", "SE", "SI", "SK",
	}
	territoriesOfUS = []string{"AS", "GU", "MP", "PR", "UM", "VI"}
)

// Public repositories that quote the terms of venues, each with the day and the page that they were read on.
const eligibility = "linqizhe07/buyer-agent-demo/blob/HEAD/src/portfolio/live/eligibility.ts" // on 2026-10-08

// feeProfile was read on 2026-09-15 or 2026-09-22.
func feeProfile(venue string) string {
	return "nemanull/arbitrage-observatory/blob/HEAD/docs/profiles/" + venue + "/fees.md"
}

// quotedBy are the addresses of files in public repositories.
func quotedBy(files ...string) []string {
	var pages []string
	for _, file := range files {
		pages = append(pages, "https://github.com/"+file)
	}
	return pages
}

// together are the countries of all lists, in the order of their codes.
func together(lists ...[]string) []string {
	return slices.Sorted(slices.Values(slices.Concat(lists...)))
}

// countriesOf are the countries that each venue serves, as its terms say, by slug.
var countriesOf = map[string]adapter.Countries{
	"binance": {
		// The list of 2026-01-05, which names Crimea, Donetsk and Luhansk too.
		Refused: []string{"CA", "CU", "IR", "KP", "NL", "US"},
		Terms:   "https://www.binance.com/en/about-legal/list-of-prohibited-countries",
		Quoted:  quotedBy(eligibility), Read: "2026-11-23",
	},
	"bitfinex": {
		// An announcement of 2019-07-26; the terms name more, and have not been read.
		Refused: []string{"US"},
		Terms:   "https://www.bitfinex.com/posts/402",
		Read:    "2026-11-23",
	},
	"bitget": {
		// The terms of 2026-09-15, which name Crimea, Donetsk and Luhansk too.
		Refused: []string{
			"AF", "AS", "AT", "CA", "CD", "CF", "CU", "DE", "FR", "GU", "GW", "HK", "HT", "IQ", "IR", "JP",
			"KP", "KZ", "LB", "LY", "MP", "MY", "PR", "SD", "SG", "SO", "SS", "TH", "UM", "US", "VI", "YE",
		},
		Terms:  "https://www.bitget.com/support/articles/360014944032",
		Quoted: quotedBy(eligibility), Read: "2026-11-23",
	},
	// bitstamp: unknown. https://www.bitstamp.net/terms-of-use/ would name them.
	"bybit": {
		// The page of 2026-09-01. It names Dubai and parts of Ukraine too, and persons in Seychelles that are not international
		// business companies.
		Refused: []string{"CA", "CN", "CU", "HK", "IR", "KP", "SD", "SG", "SY", "US", "UZ"},
		Terms:   "https://www.bybit.com/en/help-center/article/Service-Restricted-Countries",
		Quoted:  quotedBy(eligibility), Read: "2026-11-23",
	},
	// coinbase: unknown. https://www.coinbase.com/legal/user_agreement would name them.
	// cryptocom: unknown. https://help.crypto.com/en/articles/6320975-spot-trading-geo-restrictions would name them.
	"gate": {
		// Clause 2.5 of the agreement of 2026-07-22. It names Crimea, Donetsk and Luhansk too, and leaves its list open.
		Refused: []string{
			"AE", "AR", "AT", "CA", "CN", "CU", "DE", "ES", "FR", "GB", "HK", "ID", "IN", "IR", "JP", "KH",
			"KP", "KR", "MM", "MT", "MY", "NL", "PH", "PK", "RU", "SD", "SG", "TH", "US", "UZ", "VE", "VN",
		},
		Terms:  "https://www.gate.com/legal/user-agreement",
		Quoted: quotedBy(eligibility), Read: "2026-11-23",
	},
	"gemini": {
		// It closed its accounts in Australia, the United Kingdom and the European Economic Area on 2026-04-06: its notice,
		// of 2026-05-07. Whom else it serves, https://www.gemini.com/areas-of-availability would say.
		Refused: together([]string{"AU", "GB", "IS", "LI", "NO"}, europeanUnion),
		Terms:   "https://support.gemini.com/hc/en-us/articles/46255474469275",
		Quoted:  quotedBy(feeProfile("gemini")), Read: "2026-11-23",
	},
	"htx": {
		// Clause 1.2 of the agreement of 2026-06-18. It names Crimea, Donetsk, Luhansk and Sevastopol too.
		Refused: together([]string{"CN", "CU", "GB", "HK", "IR", "KP", "MM", "SD", "SG", "SY", "US", "VE"}, europeanUnion),
		Terms:   "https://www.htx.com/support/360000298561",
		Quoted:  quotedBy(feeProfile("htx")), Read: "2026-11-23",
	},
	"kraken": {
		// The page of 2026-09-30. It names Crimea, Donetsk and Luhansk, Maine and New York too. A summary at
		// https://datawallet.com/crypto/kraken-countries, which was read itself, has the same countries.
		Refused: []string{"AF", "BY", "CD", "CU", "IQ", "IR", "JP", "KP", "LY", "RU", "SD", "SS", "SY"},
		Terms:   "https://support.kraken.com/articles/where-is-kraken-licensed-or-regulated",
		Quoted:  quotedBy(eligibility), Read: "2026-11-23",
	},
	"kucoin": {
		// Article 17(5) of the terms of 2026-09-29. It names the United States with all territories, and beside these countries
		// Ontario, British Columbia and five regions of Ukraine.
		Refused: []string{"AS", "CN", "FR", "GU", "HK", "KZ", "MP", "MY", "NL", "PR", "SG", "UM", "US", "UZ", "VI"},
		Terms:   "https://www.kucoin.com/legal/terms-of-use",
		Quoted:  quotedBy(eligibility), Read: "2026-11-23",
	},
	"mexc": {
		// Clause 1 of the agreement of 2025-05-29. It names regions of Ukraine too and, without their names, countries under
		// comprehensive sanctions.
		Refused: []string{"CA", "CN", "CU", "GB", "HK", "IR", "KP", "KZ", "MY", "SD", "SG", "US"},
		Terms:   "https://www.mexc.com/terms",
		Quoted:  quotedBy(eligibility), Read: "2026-11-23",
	},
	"okx": {
		// Section 3 of the disclosure of 2026-07-08. It names parts of the United States and of Ukraine too.
		Refused: together([]string{"AF", "CA", "CU", "HK", "IN", "IR", "JP", "KP", "MY", "NP", "SY", "UZ"}, territoriesOfUS),
		Terms:   "https://www.okx.com/help/risk-compliance-disclosure",
		Quoted:  quotedBy(eligibility), Read: "2026-11-23",
	},
	"poloniex": {
		// Section 39 of the agreement of 2026-04-01. It names Crimea, Donetsk and Luhansk too.
		Refused: together([]string{
			"AF", "CD", "CI", "CN", "CU", "GB", "HK", "IQ", "IR", "KP", "LY", "ML", "MM", "PS", "SD", "SG", "SO", "SY", "US", "YE", "ZW",
		}, territoriesOfUS, europeanUnion),
		Terms:  "https://www.poloniex.com/support/terms",
		Quoted: quotedBy(feeProfile("poloniex")), Read: "2026-11-23",
	},
	// upbit: unknown. https://upbit.com/terms would name them.
}
