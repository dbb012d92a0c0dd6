package views

import (
	"slices"
	"strings"
)

// Provider is what is known of a source of values.
type Provider struct {
	Slug, Name string
	// Serves lists the countries (ISO 3166-1, two upper-case letters) that it serves, Refuses those
	// that it does not; both empty means unknown, which counts as worldwide.
	Serves, Refuses []string
	// Terms is the page that states it; empty where it is unknown.
	Terms string
	// Quoted are the public pages that quote Terms, where Terms itself was not read.
	Quoted []string
}

// RegionUnknown is the source of countries that nobody was found to name: they count as worldwide.
const RegionUnknown = "unknown"

// RegionSource reports where its countries were read: the page; the page and who quotes it where it was not read itself; or
// RegionUnknown.
func (p Provider) RegionSource() string {
	switch {
	case p.Terms == "":
		return RegionUnknown
	case len(p.Quoted) == 0:
		return p.Terms
	}
	return p.Terms + " as quoted by " + strings.Join(p.Quoted, ", ")
}

// Available reports whether a provider serves a country.
func (p Provider) Available(country string) bool {
	if len(p.Serves) > 0 && !slices.Contains(p.Serves, country) {
		return false
	}
	return !slices.Contains(p.Refuses, country)
}
