package config

import (
	"fmt"
	"strings"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
)

// HistoricVenue is a venue that reports its past.
func HistoricVenue(source string) (adapter.Venue, error) {
	if v, ok := exchanges.Find(source); ok && v.History != nil {
		return v, nil
	}
	return adapter.Venue{}, fmt.Errorf("%q cannot be back-filled; use one of the venues %s, or of the sources %s", source,
		strings.Join(historicVenues(), ", "), strings.Join(historicSources(), ", "))
}

// Historic finds nothing wrong with the name of a venue or source that reports its past.
func Historic(source string) error {
	if _, ok := HistoricSource(source); ok {
		return nil
	}
	_, err := HistoricVenue(source)
	return err
}

func historicVenues() (names []string) {
	for _, v := range exchanges.List() {
		if v.History != nil {
			names = append(names, v.Slug)
		}
	}
	return names
}

// HistoricSource is a polled source, by any of its names, that reports its past when it is asked.
func HistoricSource(name string) (poll.Source, bool) {
	s, ok := SourceNamed(name)
	return s, ok && s.Past != nil
}

func historicSources() (names []string) {
	for _, s := range sources.List() {
		if s.Past != nil {
			names = append(names, s.Slug)
		}
	}
	return names
}

// What clients read from the environment: a key in an argument would be shown by any list of processes.
const (
	// ApiKeyVariable holds the key.
	ApiKeyVariable = envPrefix + "API_KEY"
	// UrlVariable holds the address of the server, as in https://marketlog.example.com.
	UrlVariable = envPrefix + "URL"
)
