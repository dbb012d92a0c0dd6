package limits

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
)

// Feature is something that only some plans allow.
type Feature uint8

// Features of plans.
const (
	NoFeature Feature = iota
	// FeatureBulk is asking for many things in one request.
	FeatureBulk
	// FeatureMCP is the tool-protocol endpoint.
	FeatureMCP
	// FeatureSQL is SQL over the API.
	FeatureSQL
	// FeatureDetails is the channels of the stream that say what prices are made from.
	FeatureDetails
)

// Plan is what a key may do.
type Plan struct {
	Name string
	// PerMinute and PerMonth bound requests in any 60 seconds and in a UTC calendar month; 0 is
	// without bound.
	PerMinute int
	PerMonth  int64
	// ChartsPerMinute bounds requests for charts besides; 0 adds no bound.
	ChartsPerMinute int
	// HistoryDays is how far back the history of rates may be asked for.
	HistoryDays int
	// Sockets is how many streams one key may hold open.
	Sockets int
	Bulk    bool
	MCP     bool
	SQL     bool
	Details bool
}

// Allows reports whether the plan has a feature.
func (p *Plan) Allows(f Feature) bool {
	switch f {
	case FeatureBulk:
		return p.Bulk
	case FeatureMCP:
		return p.MCP
	case FeatureSQL:
		return p.SQL
	case FeatureDetails:
		return p.Details
	}
	return true
}

// PlansWith are the names of the plans that allow a feature, by how many requests a minute they allow, the fewest first.
func PlansWith(plans map[string]*Plan, f Feature) []string {
	with := slices.DeleteFunc(slices.Collect(maps.Values(plans)), func(p *Plan) bool { return !p.Allows(f) })
	slices.SortFunc(with, func(a, b *Plan) int {
		return cmp.Or(cmp.Compare(uint(a.PerMinute-1), uint(b.PerMinute-1)), strings.Compare(a.Name, b.Name)) // 0 is without bound, and last
	})
	var names []string
	for _, p := range with {
		names = append(names, p.Name)
	}
	return names
}

// Names of the plans that the server itself hands out: Free to those without a key where that is
// allowed, Pro to all where no key is asked for.
const (
	PlanFree       = "free"
	PlanPro        = "pro"
	PlanEnterprise = "enterprise"
)

//go:embed plans.yaml
var plansFile []byte

var plans = func() map[string]Plan {
	table, faults := ParsePlans(plansFile)
	if len(faults) > 0 {
		panic(fmt.Sprintf("plans.yaml: %v", faults))
	}
	return table
}()

// DefaultPlans returns the table of plans by name; the map is the caller's.
func DefaultPlans() map[string]Plan { return maps.Clone(plans) }

// PlanFault is what is wrong in a file of plans, and what would be right.
type PlanFault struct{ Key, Value, Problem, Remedy string }

// Bounds of plans: beyond them lies a slip of the keyboard.
const (
	maxPerMinute   = 1_000_000
	maxPerMonth    = 1_000_000_000_000
	maxHistoryDays = 1825
	maxSockets     = 10_000
)

var planName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// ParsePlans reads a table of plans. It names all faults at once; without one, the table can be served.
func ParsePlans(content []byte) (map[string]Plan, []PlanFault) {
	parsed, err := yaml.Parser().Unmarshal(content)
	if err != nil {
		return nil, []PlanFault{{Problem: "is not YAML: " + err.Error(), Remedy: "write a section for each plan, as docs/limits.md shows"}}
	}
	table, faults := map[string]Plan{}, []PlanFault{}
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		section, ok := parsed[name].(map[string]any)
		switch {
		case !planName.MatchString(name):
			faults = append(faults, PlanFault{name, "", "is not a name of a plan", "use small letters, digits and hyphens, a letter first"})
		case !ok:
			faults = append(faults, PlanFault{name, fmt.Sprint(parsed[name]), "is not a section", "write the plan's limits below it"})
		default:
			plan := Plan{Name: name}
			faults = append(faults, plan.read(section)...)
			table[name] = plan
		}
	}
	for _, name := range []string{PlanFree, PlanPro} {
		if _, ok := parsed[name]; !ok {
			faults = append(faults, PlanFault{name, "", "is missing", "add the plan: it serves those without a key where that is allowed"})
		}
	}
	return table, faults
}

// read takes a plan's limits from its section.
func (p *Plan) read(section map[string]any) (faults []PlanFault) {
	var minute, charts, history, sockets int64
	numbers := map[string]struct {
		to          *int64
		least, most int64
	}{
		"per_minute": {&minute, 0, maxPerMinute}, "per_month": {&p.PerMonth, 0, maxPerMonth}, "charts_per_minute": {&charts, 0, maxPerMinute},
		"history_days": {&history, 1, maxHistoryDays}, "sockets": {&sockets, 0, maxSockets},
	}
	flags := map[string]*bool{"bulk": &p.Bulk, "mcp": &p.MCP, "sql": &p.SQL, "details": &p.Details}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		value := section[key]
		fault := PlanFault{Key: p.Name + "." + key, Value: fmt.Sprint(value)}
		number, isNumber := numbers[key]
		flag, isFlag := flags[key]
		switch {
		case isNumber:
			n, ok := value.(int)
			if ok && int64(n) >= number.least && int64(n) <= number.most {
				*number.to = int64(n)
				continue
			}
			fault.Problem, fault.Remedy = "is not a valid number", fmt.Sprintf("use a whole number from %d to %d", number.least, number.most)
		case isFlag:
			on, ok := value.(bool)
			if ok {
				*flag = on
				continue
			}
			fault.Problem, fault.Remedy = "is neither true nor false", "use true or false"
		default:
			fault.Problem = "no limit has this name"
			fault.Remedy = "a plan has: " + strings.Join(slices.Sorted(maps.Keys(numbers)), ", ") + ", " + strings.Join(slices.Sorted(maps.Keys(flags)), ", ")
		}
		faults = append(faults, fault)
	}
	if _, ok := section["history_days"]; !ok {
		faults = append(faults, PlanFault{p.Name + ".history_days", "", "is missing", fmt.Sprintf("use a whole number from 1 to %d", maxHistoryDays)})
	}
	p.PerMinute, p.ChartsPerMinute, p.HistoryDays, p.Sockets = int(minute), int(charts), int(history), int(sockets)
	return faults
}
