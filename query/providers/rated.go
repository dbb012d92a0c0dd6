package providers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// rated is what the rates of a provider show of it.
type rated struct {
	name string
	// sources report so many of its rates, and so many that count.
	sources map[string]rateCounts
	// categories that it has a rate in, coins of which one counts.
	categories, coins map[string]bool
	counted           int
	interval          int64
	onChain           bool
	simulated         bool
}

// rateCounts counts accepted and all rates.
type rateCounts struct{ counted, all int }

// rated goes through the rates that have a coin and a category of the API, and that no other source reports better.
func (k *known) rated() map[string]*rated {
	byProvider := map[string]*rated{}
	for _, e := range k.yields.Entries {
		if e.Unattached != "" || e.Shadowed != "" || !slices.Contains(schemas.RateCategories, e.Category) {
			continue
		}
		r := byProvider[e.Provider]
		if r == nil {
			r = &rated{sources: map[string]rateCounts{}, categories: map[string]bool{}, coins: map[string]bool{}}
			byProvider[e.Provider] = r
		}
		t := r.sources[e.Source]
		t.all++
		r.name, r.categories[e.Category], r.onChain = cmp.Or(r.name, e.ProviderName), true, r.onChain || e.Chain != ""
		r.interval, r.simulated = max(r.interval, e.Said.GetInterval()), r.simulated || e.Simulated
		if views.RateCounts(e, k.at.UnixNano()) {
			t.counted++
			r.counted++
			r.coins[e.CoinId] = true
		}
		r.sources[e.Source] = t
	}
	return byProvider
}

// source is who reports the most of its rates.
func (r *rated) source() string {
	return slices.MaxFunc(slices.Sorted(maps.Keys(r.sources)), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.sources[a].counted, r.sources[b].counted), cmp.Compare(r.sources[a].all, r.sources[b].all), cmp.Compare(b, a))
	})
}

// status is that of its source, and down without a rate that counts.
func (r *rated) status(source *eventsv1.SourceNotice, h views.SourceHealth) string {
	switch {
	case r.counted == 0:
		return down
	case source == nil:
		return healthy
	}
	return sourceStatus(source, h)
}

// counts are its categories in the order of the API.
func (r *rated) counts() []string {
	var list []string
	for _, category := range schemas.RateCategories {
		if r.categories[category] {
			list = append(list, category)
		}
	}
	return list
}

// worst orders states, the worst last. Where the source of rates is switched off, an exchange is as its prices are.
var worst = []string{disabled, healthy, degraded, down}

// join adds to an exchange what it pays and asks; nil adds nothing.
func (r *rated) join(p *views.ProviderState, k *known, prices received) {
	if r == nil {
		return
	}
	source := r.source()
	n, h := k.sources.Notices[source], k.health[source]
	if status := r.status(n, h); slices.Index(worst, status) > slices.Index(worst, p.Status) {
		p.Status = status
	}
	receivedLast := p.LastSuccess
	setRequests(p, n, h)
	p.LastSuccess = receivedLast // prices come more often
	p.Categories = append(r.counts(), p.Categories...)
	p.RateCount = r.counted
	coins := maps.Clone(r.coins)
	maps.Copy(coins, prices.coins)
	p.SymbolCount, p.Simulated = len(coins), p.Simulated || r.simulated
}

// describeRated puts together what is known of one whose rates a source reports, which may be itself.
func (u *Unit) describeRated(slug string, r *rated, k *known) views.ProviderState {
	source, project := r.source(), k.yields.Projects[slug]
	n, h := k.sources.Notices[source], k.health[source]
	p := views.ProviderState{
		Slug: slug, Name: cmp.Or(r.name, project.GetName(), k.sources.Notices[slug].GetName(), slug), Categories: r.counts(), Kind: kindCefi,
		Status: r.status(n, h), RateCount: r.counted, SymbolCount: len(r.coins),
		Source:      views.ProviderSource{Transport: "poll", URL: n.GetUrl(), Docs: n.GetTerms(), License: n.GetLicense()},
		Attribution: n.GetAttribution(), StaleAfterSeconds: 3 * r.interval / int64(time.Second), Simulated: r.simulated || n.GetSimulated(),
	}
	p.SetRegions(u.region(slug))
	if project != nil || r.onChain {
		p.Kind = kindDefi
	}
	setRequests(&p, n, h)
	return p
}
