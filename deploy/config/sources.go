package config

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
)

// SourceAuto leaves it to the operator's last command, or to the declaration, whether a source is asked.
const SourceAuto = "auto"

// Bounds of what can be configured for a source: below, a mistake would have its provider shut us out.
const (
	minSourceInterval = 10 * time.Second
	maxSourceInterval = 7 * 24 * time.Hour
	maxSourceRequests = 10000
	maxSourcePer      = 24 * time.Hour
)

// source names what is wrong in the section of a source.
func (f *Faults) source(prefix, slug string, c SourceConfig) {
	f.url(prefix+"url", c.URL, "http", "https")
	f.oneOf(prefix+"enabled", c.Enabled, SourceAuto, "true", "false")
	declared, ok := SourceNamed(slug)
	if c.KeyFile != "" && ok && declared.KeyHeader == "" {
		f.add(prefix+"key_file", c.KeyFile, "has no effect: the source takes no key", "leave it out")
	}
	f.within(prefix+"interval", c.Interval, minSourceInterval, maxSourceInterval)
	f.within(prefix+"per", c.Per, time.Second, maxSourcePer)
	if c.Requests < 0 || c.Requests > maxSourceRequests {
		f.add(prefix+"requests", strconv.Itoa(c.Requests), fmt.Sprintf("is outside 1 to %d", maxSourceRequests), "leave it out for the provider's own limit")
	}
}

// within bounds a duration; 0 keeps what is built in.
func (f *Faults) within(key string, d, least, most time.Duration) {
	if d != 0 && (d < least || d > most) {
		f.add(key, d.String(), fmt.Sprintf("is outside %s to %s", least, most), "leave it out for the built-in default")
	}
}

// SourceNamed finds a polled source by any of its names.
func SourceNamed(name string) (poll.Source, bool) {
	sources := sources.List()
	i := slices.IndexFunc(sources, func(s poll.Source) bool { return s.Named(name) })
	if i < 0 {
		return poll.Source{}, false
	}
	return sources[i], true
}

// Configured is a source as the configuration has it.
func (c SourceConfig) Configured(s poll.Source) poll.Source {
	if c.Interval > 0 {
		own := s.Interval()
		s.Feeds = slices.Clone(s.Feeds)
		for i := range s.Feeds {
			s.Feeds[i].Interval = time.Duration(float64(s.Feeds[i].Interval) / float64(own) * float64(c.Interval))
		}
	}
	if c.Requests > 0 {
		s.Requests = c.Requests
	}
	if c.Per > 0 {
		s.Per = c.Per
	}
	return s
}

// Key reads the key of a source; empty if none is configured.
func (c SourceConfig) Key(slug string) (string, error) {
	key, err := ReadSecret("sources."+slug+".key_file", c.KeyFile)
	if err == nil && key == "" && c.KeyFile != "" {
		err = fmt.Errorf("reading sources.%s.key_file: %s is empty", slug, c.KeyFile)
	}
	return key, err
}
