package query

import "slices"

// Provider is what is known of a source of values.
type Provider struct {
	Slug, Name string
	// Serves lists the countries (ISO 3166-1, two upper-case letters) that it serves, Refuses those
	// that it does not; both empty means unknown, which counts as worldwide.
	Serves, Refuses []string
	// Terms is the page that this was read on; empty where it is unknown.
	Terms string
}

// Available says whether a provider serves a country.
func (p Provider) Available(country string) bool {
	if len(p.Serves) > 0 && !slices.Contains(p.Serves, country) {
		return false
	}
	return !slices.Contains(p.Refuses, country)
}
