package views

// ProviderState is a venue, a source, or one whose rates a source tells, and how reading it goes.
type ProviderState struct {
	Slug                string           `json:"slug" example:"kraken"`
	Name                string           `json:"name" example:"Kraken"`
	Categories          []string         `json:"categories" doc:"What it tells"`
	Kind                string           `json:"kind" enum:"exchange,cefi,defi,reference" doc:"defi: a protocol; cefi: who else pays or asks interest; reference: who only tells what others do"`
	Status              string           `json:"status" enum:"healthy,degraded,down,disabled" doc:"An exchange is healthy while a price was heard within 120 seconds, degraded within 10 minutes, else down. A source is down without a success in 7 days or when the last 3 requests failed, degraded when the last one failed, less than 95 % of 24 hours succeeded, or it stands still. Whose rates a source tells is as well as that source, and down without any; an exchange with both as well as the worse. What is not switched on is disabled"`
	SuccessRate24h      *float64         `json:"successRate24h,omitempty" doc:"Percent of the requests of 24 hours"`
	SuccessRate7d       *float64         `json:"successRate7d,omitempty" doc:"Percent of the requests of 7 days"`
	LastSuccess         string           `json:"lastSuccess,omitempty" format:"date-time" doc:"Of an exchange, when a price was last heard"`
	LastAttempt         string           `json:"lastAttempt,omitempty" format:"date-time"`
	LastError           *ProviderFailure `json:"lastError,omitempty"`
	ConsecutiveFailures int              `json:"consecutiveFailures"`
	Standstill          *Standstill      `json:"standstill,omitempty" doc:"Where a source answers and tells nothing new"`
	LatencyMs           *ProviderLatency `json:"latencyMs,omitempty" doc:"Of the requests of 24 hours that succeeded"`
	RateCount           int              `json:"rateCount" doc:"Rates that count now, prices not among them"`
	SymbolCount         int              `json:"symbolCount" doc:"Coins that it tells a fresh price or a rate of"`
	Regions             []string         `json:"regions,omitzero" required:"false" doc:"Countries that it refuses, by ISO 3166-1; left out where that is not known, which counts as worldwide"`
	ServedRegions       []string         `json:"servedRegions,omitempty" doc:"The only countries that it serves, where it says so"`
	RegionSource        string           `json:"regionSource,omitempty" doc:"The page that the countries were read on, with who quotes it where it was not read itself, or unknown"`
	Source              ProviderSource   `json:"source"`
	Attribution         string           `json:"attribution,omitempty" doc:"To be shown with its values"`
	StaleAfterSeconds   int64            `json:"staleAfterSeconds,omitempty"`
	Simulated           bool             `json:"simulated,omitempty"`
}

// SetRegions tells which countries a provider serves, where that is known.
func (p *ProviderState) SetRegions(of Provider) {
	if len(of.Serves)+len(of.Refuses) == 0 {
		return
	}
	p.Regions, p.ServedRegions, p.RegionSource = append([]string{}, of.Refuses...), of.Serves, of.RegionSource()
}

// ProviderFailure is the newest request that failed.
type ProviderFailure struct {
	Code    string `json:"code" enum:"no_answer,refused,unreadable" doc:"refused: an HTTP status that is no success; unreadable: an answer that is not as documented"`
	Status  int    `json:"status,omitempty" doc:"HTTP status"`
	Message string `json:"message"`
	At      string `json:"at,omitempty" format:"date-time"`
}

// Standstill is how a source that answers tells nothing new.
type Standstill struct {
	Reason string `json:"reason" enum:"unmoved,empty" doc:"unmoved: its answers have told the same for three times as long as its values are expected to move in; empty: they have told nothing for three of its intervals"`
	Since  string `json:"since" format:"date-time" doc:"When the last request began whose answer told something else, or anything"`
}

// ProviderLatency is how long requests took, in milliseconds.
type ProviderLatency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// ProviderSource is how it is read, and under which terms.
type ProviderSource struct {
	Transport string `json:"transport" enum:"stream,poll"`
	URL       string `json:"url,omitempty"`
	Docs      string `json:"docs,omitempty" doc:"The page that its terms were read on"`
	License   string `json:"license,omitempty"`
}
