// Package apy keeps every rate: it turns what sources report into yearly rates of a coin and a category, records when one
// has ended, and rolls them up by hours and days. An entry is written when it is reported, when it changes, and once an
// hour with all that the next ones are made from, so the last hour of rates.v1 is enough to go on.
//
// The formulas are those of schemas, and on the page docs/formulas.md.
package apy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Name is the consumer group.
const Name = "apy"

// Minutes is the declaration of this processor; the caller adds the log.
func Minutes() *processors.Minutes {
	return &processors.Minutes{Name: Name, Inputs: []string{schemas.TopicRatesRaw, schemas.TopicReferenceRaw}, Output: schemas.TopicRates, New: New}
}

// New makes the fold.
func New() processors.MinuteFold {
	return &fold{byKey: map[rateKey]*rate{}, projects: newDeclarations[*eventsv1.RateProject](), sources: newDeclarations[*eventsv1.RateSource]()}
}

type fold struct {
	byKey map[rateKey]*rate
	// rates are in the order of their keys, but for those that came in the open minute.
	rates    []*rate
	projects declarations[*eventsv1.RateProject]
	sources  declarations[*eventsv1.RateSource]
}

// rateKey is what a rate is known by: the source's own words, which do not change when a project gets a category.
type rateKey struct{ source, category, pool string }

func (k rateKey) compare(other rateKey) int {
	return cmp.Or(strings.Compare(k.source, other.source), strings.Compare(k.category, other.category), strings.Compare(k.pool, other.pool))
}

func (f *fold) rate(k rateKey) *rate {
	r := f.byKey[k]
	if r == nil {
		r = &rate{key: k}
		f.byKey[k] = r
		f.rates = append(f.rates, r)
	}
	return r
}

// Load takes the newest row of each rate with its open hour and day, and what projects and sources are.
func (f *fold) Load(rec eventsv1.Marked) {
	r, ok := rec.(*eventsv1.RateRecord)
	if !ok {
		return
	}
	switch body := r.Body.(type) {
	case *eventsv1.RateRecord_Entry:
		if e := body.Entry; r.State != nil {
			f.rate(rateKey{e.Source, e.Said.Category, e.Pool}).recall(e, r.State)
		}
	case *eventsv1.RateRecord_Project:
		f.projects.load(body.Project.Slug, body.Project, body.Project.Time)
	case *eventsv1.RateRecord_Source:
		f.sources.load(body.Source.Source, body.Source, body.Source.Time)
	}
}

// Take folds a rate that a source reports, or its description of a project or of itself. Rates of the past are not folded.
func (f *fold) Take(minute int64, in processors.Input, rec eventsv1.Marked) {
	record, ok := rec.(*eventsv1.ReferenceRecord)
	if !ok {
		return
	}
	switch body := record.Body.(type) {
	case *eventsv1.ReferenceRecord_Rate:
		f.takeRate(minute, in.Offset, body.Rate)
	case *eventsv1.ReferenceRecord_Protocol:
		p := body.Protocol
		f.projects.take(minute, p.Slug, &eventsv1.RateProject{Slug: p.Slug, Name: p.Name, Category: p.Category}, func(before *eventsv1.RateProject) bool {
			return before.Name == p.Name && before.Category == p.Category
		})
	case *eventsv1.ReferenceRecord_Notice:
		n := body.Notice
		f.sources.take(minute, n.Source, &eventsv1.RateSource{Source: n.Source, Simulated: n.Simulated}, func(before *eventsv1.RateSource) bool {
			return before.Simulated == n.Simulated
		})
	}
}

func (f *fold) takeRate(minute, offset int64, reported *eventsv1.Rate) {
	if reported.Past || reported.Interval <= 0 {
		return
	}
	apr, apy, err := schemas.Yearly(reported.Raw, reported.RawUnit, reported.Compounding)
	if err != nil {
		return // no source's decoder lets it pass
	}
	if r := f.rate(rateKey{reported.Source, reported.Category, reported.Pool}); minute > r.loaded {
		r.pending = append(r.pending, observation{
			reported: reported, offset: offset, apr: apr, apy: apy, method: schemas.RateVersion,
			reward: schemas.RewardAPY(reported.Raw, reported.Reward, reported.RawUnit, reported.Compounding),
		})
	}
}

// Close writes the rates that were reported, changed or ended and those that are due, and the hours and days that are over.
func (f *fold) Close(minute int64, out *processors.Outputs) {
	slices.SortFunc(f.rates, func(a, b *rate) int { return a.key.compare(b.key) })
	f.sources.close(minute, out, func(s *eventsv1.RateSource) *eventsv1.RateRecord {
		return &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Source{Source: &eventsv1.RateSource{Source: s.Source, Simulated: s.Simulated, Time: minute}}}
	})
	f.projects.close(minute, out, func(p *eventsv1.RateProject) *eventsv1.RateRecord {
		return &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Project{Project: &eventsv1.RateProject{Slug: p.Slug, Name: p.Name, Category: p.Category, Time: minute}}}
	})
	primarySources := f.primarySources(minute)
	f.rates = slices.DeleteFunc(f.rates, func(r *rate) bool {
		if minute < r.loaded {
			return false
		}
		if minute > r.loaded {
			f.move(r, minute, primarySources, out)
		}
		if r.ended && r.hour.n == 0 && r.day.n == 0 {
			delete(f.byKey, r.key)
			return true
		}
		return false
	})
	if out != nil {
		out.Emit(schemas.TopicRates, 0, "", minute, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute},
		}})
	}
}

// broad is the source that repeats the rates of many projects, some of which other sources report themselves.
const broad = "defillama-yields"

// primarySources are by project the source that reports its rates itself: of several that are current the first by name.
func (f *fold) primarySources(minute int64) map[string]string {
	primarySources := map[string]string{}
	for _, r := range f.rates {
		if r.key.source == broad || !r.heldAt(minute) {
			continue
		}
		if project := r.newest().Project; primarySources[project] == "" { // rates are in the order of their sources
			primarySources[project] = r.key.source
		}
	}
	return primarySources
}

// move brings a rate to the end of a minute. Out is nil for a minute whose rows are written: all that they hold was loaded
// with them, only hours and days have to be closed.
func (f *fold) move(r *rate, minute int64, primarySources map[string]string, out *processors.Outputs) {
	r.closeBuckets(minute-1, minute, out)
	reported := r.take(minute)
	r.ended = !reported && (r.ended || !r.heldAt(minute))
	if out == nil {
		r.closeBuckets(minute, minute, nil)
		return
	}
	before := r.row
	r.row = f.describe(r, primarySources)
	r.closeBuckets(minute, minute, out)
	if reported || r.row != before || r.ended != r.writtenEnded || minute-r.written >= int64(processors.StateEvery) {
		r.write(before, minute, out)
	}
}

// describe reports what a rate is of.
func (f *fold) describe(r *rate, primarySources map[string]string) row {
	project := f.projects.value(r.reported.Project)
	if r.attachedFor != r.reported || r.attachedAs != project.GetCategory() {
		r.attachedFor, r.attachedAs = r.reported, project.GetCategory()
		r.attached = attach(r.reported, project.GetCategory())
	}
	described := row{attachment: r.attached, providerName: project.GetName(), simulated: f.sources.value(r.key.source).GetSimulated()}
	if r.key.source == broad {
		described.shadowed = primarySources[r.reported.Project]
	}
	return described
}

// attach finds the coin and the category of a rate.
func attach(reported *eventsv1.Rate, project string) attachment {
	a := attachment{category: schemas.RateCategory(reported, project), symbol: strings.ToUpper(reported.Symbol)}
	coin, ok := schemas.RateCoin(reported, a.category)
	switch {
	case !ok:
		a.unattached = schemas.RateCoinUnknown
		return a
	case a.category == "":
		a.unattached = schemas.RateCategoryUnknown
	}
	a.coinID, a.symbol = coin.ID, coin.Symbol
	return a
}

// heldFor is how many intervals of its source a rate holds without being reported again.
const heldFor = 3

// Hour and day are the lengths of roll-ups.
const hour, day = int64(time.Hour), int64(24 * time.Hour)
