package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

type outcome int

const (
	passed outcome = iota
	failed
	skipped
)

// result is one check or one test.
type result struct {
	tier, name string
	outcome    outcome
	reason     string // why it was skipped or failed, where known
	output     string // the part of its output that explains its failure
	// packageSeconds is what the tests of its package took, on the first result of each.
	packageSeconds float64
}

// recordings is the tier of the tests on captured provider messages.
const recordings = "recordings"

// skipRules says which skips this machine does not forgive.
type skipRules struct{ ci, recordings bool }

// apply returns the results with every unforgiven skip turned into a failure.
func (r skipRules) apply(results []result) []result {
	results = slices.Clone(results)
	for i, res := range results {
		if res.outcome == skipped && r.forbids(res) {
			results[i].outcome = failed
			results[i].reason = "skipped where no skip is allowed: " + res.reason
		}
	}
	return results
}

func (r skipRules) forbids(res result) bool {
	switch {
	case isForgiven(res.name) || isForgiven(res.tier+" "+res.name):
		return false
	case res.tier == recordings:
		return r.recordings
	default:
		return r.ci
	}
}

// writeReport prints the failures and the skips with their reasons after the long lists, and the table, and closes with the
// counts on a line of their own. It reports whether anything failed or nothing was run.
func writeReport(w io.Writer, results []result) bool {
	seconds(w, results)
	list(w, "Failed", results, failed)
	list(w, "Skipped", results, skipped)

	var tiers []string
	counts := map[string]*[3]int{}
	var total [3]int
	for _, res := range results {
		if counts[res.tier] == nil {
			counts[res.tier] = new([3]int)
			tiers = append(tiers, res.tier)
		}
		counts[res.tier][res.outcome]++
		total[res.outcome]++
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "tier\tpassed\tfailed\tskipped\t")
	for _, tier := range tiers {
		n := counts[tier]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t", tier, n[passed], n[failed], n[skipped])
		if n[passed]+n[failed] == 0 {
			fmt.Fprint(table, " the whole tier was skipped")
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // fails only as w does
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", total[passed], total[failed], total[skipped])
	return total[failed] > 0 || total[passed] == 0
}

// seconds prints what the tests of each package took, the slowest first.
func seconds(w io.Writer, results []result) {
	var timed []result
	for _, res := range results {
		if res.packageSeconds >= 1 {
			timed = append(timed, res)
		}
	}
	if len(timed) == 0 {
		return
	}
	slices.SortStableFunc(timed, func(a, b result) int { return cmp.Compare(b.packageSeconds, a.packageSeconds) })
	fmt.Fprintln(w, "\nSeconds by package:")
	for _, res := range timed {
		name, _, _ := strings.Cut(res.name, " ")
		fmt.Fprintf(w, "  %7.1f  %s\n", res.packageSeconds, name)
	}
}

// list prints the results of one outcome under a title, those with one reason together, and the output of failures.
func list(w io.Writer, title string, results []result, want outcome) {
	var reasons []string
	names := map[string][]string{}
	for _, res := range results {
		if res.outcome != want {
			continue
		}
		if names[res.reason] == nil {
			reasons = append(reasons, res.reason)
		}
		name := res.tier + ": " + res.name
		if res.output != "" {
			name += "\n      | " + strings.ReplaceAll(res.output, "\n", "\n      | ")
		}
		names[res.reason] = append(names[res.reason], name)
	}
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, reason := range reasons {
		for _, name := range names[reason] {
			fmt.Fprintf(w, "  %s\n", name)
		}
		if reason != "" {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(strings.TrimSpace(reason), "\n", "\n    "))
		}
	}
}
