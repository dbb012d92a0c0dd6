package earn_test

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// fixed is a fixing worked out the slow way.
type fixed struct {
	median, weighted float64
	providers        int
}

// recompute works out the fixings of a run again from all that rates.v1 held, with nothing of what the fold uses: for each midnight
// the newest row of each rate up to it.
func recompute(minutes []logMinute) map[string]fixed {
	all := map[string]fixed{}
	first, last := minutes[0].end, minutes[len(minutes)-1].end
	for midnight := first/day*day + day; midnight <= last; midnight += day {
		newest := map[string]*eventsv1.RateEntry{}
		for _, m := range minutes {
			for _, e := range m.entries {
				if m.end <= midnight {
					newest[e.Source+" "+e.Category+" "+e.Pool] = e
				}
			}
		}
		for _, segment := range []string{"overall", "cefi", "defi"} {
			byProvider := map[string][]*eventsv1.RateEntry{}
			for _, e := range newest {
				if dollar(e) && !e.Ended && e.Unattached == "" && e.Shadowed == "" && e.Category != "borrowing" && midnight-e.Heard <= 3*e.Said.Interval &&
					e.Term != "30d" && e.Said.GetLockupDays() == 0 && (segment == "overall" || exchange(e.Provider) == (segment == "cefi")) {
					byProvider[e.Provider] = append(byProvider[e.Provider], e)
				}
			}
			if len(byProvider) > 0 {
				all[time.Unix(0, midnight).UTC().Format("2006-01-02 ")+segment] = fix(byProvider)
			}
		}
	}
	return all
}

const day = int64(24 * time.Hour)

func dollar(e *eventsv1.RateEntry) bool {
	return e.CoinId == "tether" || e.CoinId == "usd-coin" || e.CoinId == "dai"
}

func exchange(provider string) bool {
	return provider == "okx" || provider == "bybit" || provider == "gate"
}

func fix(byProvider map[string][]*eventsv1.RateEntry) fixed {
	var means []float64
	allWeighted, allTVL := 0.0, 0.0
	for _, entries := range byProvider {
		sum, weighted, tvl := 0.0, 0.0, 0.0
		for _, e := range entries {
			sum += e.Apy
			weighted += e.Apy * e.GetTvlUsd()
			tvl += e.GetTvlUsd()
		}
		mean := sum / float64(len(entries))
		if tvl > 0 {
			mean = weighted / tvl
		}
		means = append(means, mean)
		allWeighted += weighted
		allTVL += tvl
	}
	sort.Float64s(means)
	f := fixed{providers: len(means), weighted: math.NaN()}
	if n := len(means); n%2 == 1 {
		f.median = means[n/2]
	} else {
		f.median = (means[n/2-1] + means[n/2]) / 2
	}
	if allTVL > 0 {
		f.weighted = allWeighted / allTVL
	}
	return f
}

// faults are the fixings of a run that differ from what is worked out again, those that are missing, and those that should not be.
func faults(minutes []logMinute, fixings []*eventsv1.EarnFixing) []string {
	want := recompute(minutes)
	near := func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b))
	}
	var found []string
	for _, x := range fixings {
		key := x.Date + " " + x.Segment
		w, ok := want[key]
		delete(want, key)
		weighted := math.NaN()
		if x.TvlWeighted != nil {
			weighted = *x.TvlWeighted
		}
		if !ok || !near(x.Median, w.median) || !near(weighted, w.weighted) || int(x.ProviderCount) != w.providers || len(x.Quotes) != w.providers {
			found = append(found, fmt.Sprintf("%s: got %g %g of %d, want %g %g of %d", key, x.Median, weighted, x.ProviderCount, w.median, w.weighted, w.providers))
		}
	}
	for key := range want {
		found = append(found, key+" is missing")
	}
	return found
}

func fixingsOf(written []output) []*eventsv1.EarnFixing {
	var fixings []*eventsv1.EarnFixing
	for _, w := range written {
		for _, rec := range w.records {
			if x := rec.GetFixing(); x != nil {
				fixings = append(fixings, x)
			}
		}
	}
	return fixings
}

func TestFixingsAgreeWithTheLog(t *testing.T) {
	fixings := 0
	for _, seed := range streamtest.Seeds(t, 0, 1, 2, 3, 4, 5, 6, 7) {
		minutes := random(seed, 330)
		written := whole(t, minutes)
		for _, fault := range faults(minutes, fixingsOf(written)) {
			t.Errorf("seed %d: %s", seed, fault)
		}
		fixings += len(fixingsOf(written))
		checkOffered(t, seed, minutes, written)
	}
	if fixings < 15 {
		t.Errorf("the seeds make only %d fixings", fixings)
	}
}

// checkOffered holds the variants that are open at the end of a run against the rates that are offered then.
func checkOffered(t *testing.T, seed uint64, minutes []logMinute, written []output) {
	t.Helper()
	offered, open := map[string]float64{}, map[string]float64{}
	for _, m := range minutes {
		for _, e := range m.entries {
			key := e.Source + " " + e.Category + " " + e.Pool
			delete(offered, key)
			if !e.Ended && e.Unattached == "" && e.Shadowed == "" && e.Category != "borrowing" {
				offered[key] = e.Apy
			}
		}
	}
	newest := map[string]*eventsv1.EarnVariant{}
	for _, w := range written {
		for _, rec := range w.records {
			if v := rec.GetVariant(); v != nil {
				newest[v.ProductId+" "+v.VariantId] = v
			}
		}
	}
	for _, v := range newest {
		if v.Status == schemas.EarnOpen {
			open[v.Source+" "+v.Category+" "+v.Pool] = v.Apy
		}
	}
	for key, apy := range offered {
		if got, ok := open[key]; !ok || got != apy {
			t.Errorf("seed %d: %s is offered at %g, got %g, open %v", seed, key, apy, got, ok)
		}
		delete(open, key)
	}
	for key := range open {
		t.Errorf("seed %d: %s is open, and nobody offers it", seed, key)
	}
}

func TestPlantedFaultsAreFound(t *testing.T) {
	for name, change := range map[string]func(i, midnight int, e *eventsv1.RateEntry) bool{
		"an APR for an APY": func(_, _ int, e *eventsv1.RateEntry) bool { e.Apy = e.Apr; return true },
		"a negative rate clipped": func(_, _ int, e *eventsv1.RateEntry) bool {
			e.Apy = max(e.Apy, 0)
			return true
		},
		"a TVL counted twice": func(_, _ int, e *eventsv1.RateEntry) bool {
			if tvl := 2 * e.GetTvlUsd(); e.TvlUsd != nil && e.CoinId == "dai" {
				e.TvlUsd = &tvl
			}
			return true
		},
		"locked deposits counted":  func(_, _ int, e *eventsv1.RateEntry) bool { e.Term, e.Said.LockupDays = "", nil; return true },
		"shadowed rates counted":   func(_, _ int, e *eventsv1.RateEntry) bool { e.Shadowed = ""; return true },
		"ended rates counted":      func(_, _ int, e *eventsv1.RateEntry) bool { e.Ended, e.Said.Interval = false, 10*day; return true },
		"a source left out":        func(_, _ int, e *eventsv1.RateEntry) bool { return e.Source != "gate" },
		"the last hour not folded": func(i, midnight int, _ *eventsv1.RateEntry) bool { return i < midnight-60 || i >= midnight },
	} {
		found := false
		for seed := uint64(0); seed < 8 && !found; seed++ {
			minutes := random(seed, 330)
			midnight := slices.IndexFunc(minutes, func(m logMinute) bool { return m.end/day > minutes[0].end/day })
			changed := make([]logMinute, len(minutes))
			for i, m := range minutes {
				changed[i].end = m.end
				for _, e := range m.entries {
					if e = proto.CloneOf(e); change(i, midnight, e) {
						changed[i].entries = append(changed[i].entries, e)
					}
				}
			}
			found = len(faults(minutes, fixingsOf(whole(t, changed)))) > 0
		}
		if !found {
			t.Errorf("%s: not found", name)
		}
	}
	minutes := random(0, 330)
	if fixings := fixingsOf(whole(t, minutes)); len(faults(minutes, fixings[1:])) == 0 {
		t.Error("a fixing that is not there: not found")
	}
}
