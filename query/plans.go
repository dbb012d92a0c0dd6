package query

import "maps"

// Feature is something that only some plans allow.
type Feature uint8

// Features of plans.
const (
	NoFeature Feature = iota
	// FeatureBulk is asking for many things in one request.
	FeatureBulk
	// FeatureMCP is the tool-protocol endpoint.
	FeatureMCP
)

// Plan is what a key may do.
type Plan struct {
	Name string `koanf:"-"`
	// PerMinute and PerMonth bound requests in any 60 seconds and in a UTC calendar month; 0 is
	// without bound.
	PerMinute int   `koanf:"per_minute"`
	PerMonth  int64 `koanf:"per_month"`
	// ChartsPerMinute bounds requests for charts besides; 0 adds no bound.
	ChartsPerMinute int `koanf:"charts_per_minute"`
	// HistoryDays is how far back the history of rates may be asked for.
	HistoryDays int `koanf:"history_days"`
	// Sockets is how many streams one key may hold open.
	Sockets int  `koanf:"sockets"`
	Bulk    bool `koanf:"bulk"`
	MCP     bool `koanf:"mcp"`
}

// Allows says whether the plan has a feature.
func (p *Plan) Allows(f Feature) bool {
	switch f {
	case FeatureBulk:
		return p.Bulk
	case FeatureMCP:
		return p.MCP
	}
	return true
}

// Names of the plans that the server itself hands out: Free to those without a key where that is
// allowed, Pro to all where no key is asked for.
const (
	PlanFree       = "free"
	PlanPro        = "pro"
	PlanEnterprise = "enterprise"
)

// plans is the table of plans. Enterprise is what its contract says: the row is what holds until a
// configuration file says otherwise.
var plans = map[string]Plan{
	PlanFree:       {PerMinute: 30, PerMonth: 10_000, ChartsPerMinute: 30, HistoryDays: 7, Sockets: 1},
	"starter":      {PerMinute: 60, PerMonth: 50_000, HistoryDays: 90, Sockets: 2},
	"growth":       {PerMinute: 120, PerMonth: 200_000, HistoryDays: 365, Sockets: 5, Bulk: true},
	PlanPro:        {PerMinute: 300, PerMonth: 1_000_000, HistoryDays: 1825, Sockets: 20, Bulk: true, MCP: true},
	PlanEnterprise: {PerMinute: 60_000, HistoryDays: 1825, Sockets: 100, Bulk: true, MCP: true},
}

// DefaultPlans returns the table of plans by name; the map is the caller's.
func DefaultPlans() map[string]Plan {
	own := maps.Clone(plans)
	for name, p := range own {
		p.Name = name
		own[name] = p
	}
	return own
}
