package limits

import (
	"fmt"
	"strings"
	"testing"
)

func TestPlansAgreeWithTheirTable(t *testing.T) {
	for name, want := range map[string]Plan{
		"free":       {Name: "free", PerMinute: 30, PerMonth: 10_000, ChartsPerMinute: 30, HistoryDays: 7, Sockets: 1},
		"starter":    {Name: "starter", PerMinute: 60, PerMonth: 50_000, HistoryDays: 90, Sockets: 2},
		"growth":     {Name: "growth", PerMinute: 120, PerMonth: 200_000, HistoryDays: 365, Sockets: 5, Bulk: true, Details: true},
		"pro":        {Name: "pro", PerMinute: 300, PerMonth: 1_000_000, HistoryDays: 1825, Sockets: 20, Bulk: true, MCP: true, SQL: true, Details: true},
		"enterprise": {Name: "enterprise", PerMinute: 60_000, HistoryDays: 1825, Sockets: 100, Bulk: true, MCP: true, SQL: true, Details: true},
	} {
		if got := DefaultPlans()[name]; got != want {
			t.Errorf("plan %s is %+v, want %+v", name, got, want)
		}
	}
	if n := len(DefaultPlans()); n != 5 {
		t.Errorf("there are %d plans, want 5", n)
	}
}

func TestEveryFaultOfAFileOfPlansIsNamed(t *testing.T) {
	_, faults := ParsePlans([]byte(`
free: {per_minute: 30.5, history_days: 7, mcp: yes please}
Gold: {history_days: 7}
silver: 12
pro: {per_minut: 300, sockets: -1}
`))
	var got strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&got, "%s = %q: %s; %s\n", f.Key, f.Value, f.Problem, f.Remedy)
	}
	want := `Gold = "": is not a name of a plan; use small letters, digits and hyphens, a letter first
free.mcp = "yes please": is neither true nor false; use true or false
free.per_minute = "30.5": is not a valid number; use a whole number from 0 to 1000000
pro.per_minut = "300": no limit has this name; a plan has: charts_per_minute, history_days, per_minute, per_month, sockets, bulk, details, mcp, sql
pro.sockets = "-1": is not a valid number; use a whole number from 0 to 10000
pro.history_days = "": is missing; use a whole number from 1 to 1825
silver = "12": is not a section; write the plan's limits below it
`
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
	for _, content := range []string{"", "free: {history_days: 7}", "a: [", "- a"} {
		if _, faults := ParsePlans([]byte(content)); len(faults) == 0 {
			t.Errorf("%q is taken for a table of plans", content)
		}
	}
}
