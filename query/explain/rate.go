package explain

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// rate explains a yield or a borrowing rate: what a provider pays or takes in a category, by the source's own id of the pool or by the
// symbol, of which the largest pool counts, or by the id that lists of rates have of it.
func (w *work) rate(ctx context.Context, name string, parts []string) (*Node, error) {
	if parts[2] == categoryPrice {
		return w.venuePrice(ctx, name, parts)
	}
	e, at, err := w.entryNamed(ctx, name, parts)
	if err != nil {
		return nil, err
	}
	return w.rateOf(ctx, e, at)
}

// entryNamed finds the entry of rates that a name means, whose second part is the provider, and the time that is explained, Unix nanoseconds.
func (w *work) entryNamed(ctx context.Context, name string, parts []string) (*eventsv1.RateEntry, int64, error) {
	entries := w.Yields.Snapshot().Entries
	at := w.now.UnixNano()
	if w.past {
		at = w.asOf.UnixNano()
		var err error
		if entries, err = w.pastRates(ctx, at); err != nil {
			return nil, 0, err
		}
	}
	provider, category, pool := parts[1], parts[2], strings.Join(parts[3:], "/")
	var found *eventsv1.RateEntry
	var providers, pools []string
	for _, e := range entries {
		if e.Ended {
			continue
		}
		providers = append(providers, e.Provider)
		if e.Provider != provider || e.Category != category {
			continue
		}
		pools = append(pools, e.Pool)
		switch {
		case pool == e.Source+"|"+e.Category+"|"+e.Pool:
			return e, at, nil
		case e.Pool == pool && (found == nil || found.Pool != pool):
			found = e
		case strings.EqualFold(e.Symbol, pool) && (found == nil || found.Pool != pool && e.GetTvlUsd() > found.GetTvlUsd()):
			found = e
		}
	}
	if found == nil {
		if !slices.Contains(providers, provider) {
			return nil, 0, w.nearField(name, parts, 1, providers)
		}
		return nil, 0, w.nearField(name, []string{parts[0], provider, category, pool}, 3, pools)
	}
	return found, at, nil
}

// rateOf explains an entry of rates as of a time, Unix nanoseconds.
func (w *work) rateOf(ctx context.Context, e *eventsv1.RateEntry, at int64) (*Node, error) {
	w.simulated = w.simulated || e.Simulated
	n := headline(rateNumber(e), &e.Apy, percent, e.Time)
	n.Method = &Method{Name: "apy", Version: max(e.Method, 1), Formula: "APY of " + cmp.Or(e.Said.GetRawUnit(), "the raw value") + compounded(e.Said.GetCompounding())}
	if !views.RateCounts(e, at) {
		n.Note = "does not count: " + cmp.Or(e.Shadowed, e.Unattached, "stale")
	}
	reported, source, err := w.reportOf(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case reported == nil:
		n.notReproduced("the record that states it is not in the log any more")
		return n, nil
	}
	raw := (*float64)(nil)
	if v, err := strconv.ParseFloat(reported.Raw, 64); err == nil {
		raw = &v
	}
	n.Inputs = []*Node{stated("observation/"+e.Source+"/"+e.Pool+"/raw", raw, reported.RawUnit, cmp.Or(reported.EventTime, reported.IngestTime), source)}
	rule, isKnown := schemas.RateRuleBy(e.Method)
	if !isKnown {
		n.notReproduced("version " + strconv.Itoa(int(e.Method)) + " of the rule is newer than this service")
		return n, nil
	}
	if _, apy, err := rule.Yearly(reported.Raw, reported.RawUnit, reported.Compounding); err == nil {
		n.compare(&apy)
	} else {
		n.notReproduced(err.Error())
	}
	return n, nil
}

// reportOf reads from the log what the source stated of a rate, which the entry only repeats; nil where the log no longer has it.
func (w *work) reportOf(ctx context.Context, e *eventsv1.RateEntry) (reported *eventsv1.Rate, at Place, err error) {
	at, ok, err := w.find(ctx, schemas.TopicRatesRaw, 0, e.Said.GetIngestTime()-minute, e.Said.GetIngestTime()+minute, e.Source, func(rec eventsv1.Marked) bool {
		record, is := rec.(*eventsv1.ReferenceRecord)
		if x := record.GetRate(); is && x != nil && x.Pool == e.Pool && x.Category == e.Said.GetCategory() && x.IngestTime == e.Said.GetIngestTime() {
			reported = x
		}
		return reported != nil
	})
	if err != nil || !ok {
		return nil, at, err
	}
	return reported, at, nil
}

// ratesRepeated is within what time each rate is written again.
const ratesRepeated = 65 * minute

// pastRates are the rates as of the end of the last minute before a time, by source, category and pool.
func (w *work) pastRates(ctx context.Context, at int64) ([]*eventsv1.RateEntry, error) {
	last := schemas.Minute(at)
	if err := w.agedOut(ctx, schemas.TopicRates, last); err != nil {
		return nil, err
	}
	logged, err := w.loggedRates(ctx, last)
	entries := make([]*eventsv1.RateEntry, len(logged))
	for i, l := range logged {
		entries[i] = l.entry
	}
	return entries, err
}

// loggedRate is a rate as the log has it.
type loggedRate struct {
	entry *eventsv1.RateEntry
	at    Place
}

// loggedRates are the rates that the log has as of the end of a minute, by source, category and pool.
func (w *work) loggedRates(ctx context.Context, last int64) ([]loggedRate, error) {
	if w.rates != nil && w.ratesOf == last {
		return w.rates, nil
	}
	type rateID struct{ source, category, pool string }
	standing := map[rateID]loggedRate{}
	_, err := w.scan(ctx, schemas.TopicRates, 0, last-ratesRepeated, last, func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicRates, r.Value)
		if rate, ok := record.(*eventsv1.RateRecord); err == nil && ok && rate.GetEntry() != nil {
			e := rate.GetEntry()
			standing[rateID{e.Source, e.Category, e.Pool}] = loggedRate{e, place(schemas.TopicRates, 0, r.Offset)}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	w.ratesOf = last
	w.rates = slices.SortedFunc(maps.Values(standing), inOrder)
	return w.rates, nil
}

// inOrder is the order in which rates are added up.
func inOrder(a, b loggedRate) int {
	return cmp.Or(strings.Compare(a.entry.Source, b.entry.Source), strings.Compare(a.entry.Category, b.entry.Category), strings.Compare(a.entry.Pool, b.entry.Pool))
}

func compounded(compounding string) string {
	if compounding == "" {
		return ""
	}
	return ", compounded " + compounding
}
