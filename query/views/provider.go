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
	// Terms is the page that says it; empty where it is unknown.
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

// ProviderState is a venue, a source, or one whose rates a source reports, and how reading it goes.
type ProviderState struct {
	Slug                string           `json:"slug" example:"kraken" doc:"Identifies the provider in all responses"`
	Name                string           `json:"name" example:"Kraken" doc:"Name of the provider"`
	Categories          []string         `json:"categories" doc:"Kinds of data it provides"`
	Kind                string           `json:"kind" enum:"exchange,cefi,defi,reference" doc:"defi: a protocol; cefi: another company that pays or charges interest; reference: a source that only reports data of others"`
	Status              string           `json:"status" enum:"healthy,degraded,down,disabled" doc:"An exchange is healthy if a price was received within 120 seconds, degraded within 10 minutes, else down. A polled source is down if no request succeeded in 7 days or the last 3 failed; degraded if the last one failed, less than 95 % succeeded in 24 hours, or its data has stopped changing. A provider whose rates come from other sources has their health, and is down without any; an exchange that has rates too has the worse of both. A provider that is switched off is disabled"`
	SuccessRate24h      *float64         `json:"successRate24h,omitempty" doc:"Successful requests of the last 24 hours, percent"`
	SuccessRate7d       *float64         `json:"successRate7d,omitempty" doc:"Successful requests of the last 7 days, percent"`
	LastSuccess         string           `json:"lastSuccess,omitempty" format:"date-time" doc:"For an exchange, when a price was last received"`
	LastAttempt         string           `json:"lastAttempt,omitempty" format:"date-time" doc:"Start of the last request within 7 days that counts: it ended a minute before the last full quarter of a minute; for an exchange, of those for its yields"`
	LastError           *ProviderFailure `json:"lastError,omitempty" doc:"The newest failed request of the last 7 days, also if later ones succeeded"`
	ConsecutiveFailures int              `json:"consecutiveFailures" doc:"Failed requests of the last 7 days since the last success; for an exchange, of those for its yields"`
	Standstill          *Standstill      `json:"standstill,omitempty" doc:"Present if a source responds but its data has stopped changing"`
	LatencyMs           *ProviderLatency `json:"latencyMs,omitempty" doc:"Latency percentiles of the successful requests of the last 24 hours"`
	RateCount           int              `json:"rateCount" doc:"Yields accepted now, without prices"`
	SymbolCount         int              `json:"symbolCount" doc:"Coins for which it has a fresh price or a yield"`
	Regions             []string         `json:"regions,omitzero" required:"false" doc:"Countries it does not serve, by ISO 3166-1 code; absent if unknown, which is treated as worldwide availability"`
	ServedRegions       []string         `json:"servedRegions,omitempty" doc:"The only countries it serves, if it states them"`
	RegionSource        string           `json:"regionSource,omitempty" doc:"The page that states the countries (with the source that quotes it, if it was not read directly), or unknown"`
	Source              ProviderSource   `json:"source" doc:"How the data is read, and under which terms"`
	Attribution         string           `json:"attribution,omitempty" doc:"Attribution to show with its values"`
	StaleAfterSeconds   int64            `json:"staleAfterSeconds,omitempty" doc:"Age from which its data is stale: 120 for an exchange, else three polling intervals"`
	Simulated           bool             `json:"simulated,omitempty"`
}

// SetRegions reports which countries a provider serves, where that is known.
func (p *ProviderState) SetRegions(of Provider) {
	if len(of.Serves)+len(of.Refuses) == 0 {
		return
	}
	p.Regions, p.ServedRegions, p.RegionSource = append([]string{}, of.Refuses...), of.Serves, of.RegionSource()
}

// ProviderFailure is the newest request that failed.
type ProviderFailure struct {
	Code    string `json:"code" enum:"no_answer,refused,unreadable" doc:"refused: an HTTP error status; unreadable: a response that does not match the documented format"`
	Status  int    `json:"status,omitempty" doc:"HTTP status"`
	Message string `json:"message" doc:"What went wrong"`
	At      string `json:"at,omitempty" format:"date-time" doc:"Start of the request"`
}

// Standstill is how a source that answers serves nothing new.
type Standstill struct {
	Reason string `json:"reason" enum:"unmoved,empty" doc:"unmoved: the values have not changed for three times the period in which they are expected to change; empty: responses have had no values for three polling intervals"`
	Since  string `json:"since" format:"date-time" doc:"Start time of the last request whose response had changed values, or any values"`
}

// ProviderLatency is how long requests took, in milliseconds.
type ProviderLatency struct {
	P50 float64 `json:"p50" doc:"Median, milliseconds"`
	P95 float64 `json:"p95" doc:"95th percentile, milliseconds"`
}

// ProviderSource is how it is read, and under which terms.
type ProviderSource struct {
	Transport string `json:"transport" enum:"stream,poll" doc:"stream: market data streams; poll: requests at an interval"`
	URL       string `json:"url,omitempty" doc:"Address of the interface; of a provider whose yields another source reports, that of the source"`
	Docs      string `json:"docs,omitempty" doc:"The page that states its terms"`
	License   string `json:"license,omitempty" doc:"Licence or terms of the values, in words"`
}
