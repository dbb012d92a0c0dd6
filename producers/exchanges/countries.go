package exchanges

import "slices"

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
