package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// coinsServed are the coins as they are served, or were at the instant asked for.
func (w *work) coinsServed(ctx context.Context) (*views.Snapshot, error) {
	if !w.past {
		return w.snapshot, nil
	}
	if w.then == nil {
		then, err := w.Coins.At(ctx, w.asOf)
		if err != nil {
			return nil, query.FaultOfPast(err, w.asOf)
		}
		w.then = then
	}
	return w.then, nil
}

// described is a coin as sources had described it at the instant asked for.
func (w *work) described(ctx context.Context, coin *views.CatalogCoin) (*views.CatalogCoin, error) {
	served, err := w.coinsServed(ctx)
	if err != nil {
		return nil, err
	}
	if then := served.ByID(coin.ID); then != nil {
		return then, nil
	}
	return nil, query.NotFound("%s was not known by %s", coin.ID, query.FormatTime(w.asOf.UnixNano()))
}

// developer explains what a source counts of a coin's source code: by the record that has it.
func (w *work) developer(ctx context.Context, coin *views.CatalogCoin, name string, parts []string) (*Node, error) {
	coin, err := w.described(ctx, coin)
	if err != nil {
		return nil, err
	}
	counts := coin.Detailed.GetDeveloper()
	names := namesOf(counts, (*eventsv1.Statistic).GetName)
	// Of two with one name the last one counts.
	at := len(names) - 1
	for ; at >= 0 && names[at] != parts[2]; at-- {
	}
	switch {
	case len(names) == 0:
		return nil, query.NotFound("no source counts anything of the source code of %s", coin.ID)
	case at < 0:
		return nil, w.nearField(name, parts, 2, names)
	}
	n := headline("developer/"+coin.ID+"/"+names[at], &counts[at].Value, "", coin.Detailed.IngestTime)
	n.Method = &Method{Name: "source", Version: 1, Formula: "what " + coin.Detailed.Source + " counts"}
	recorded, place, err := w.description(ctx, coin.Detailed)
	switch {
	case err != nil:
		return nil, err
	case recorded == nil:
		n.Note = noDescription
		return n, nil
	}
	n.Records = []Place{place}
	n.recorded(developerCount(recorded, names[at]))
	return n, nil
}

// developerCount is what a source counts under a name; nil for nothing.
func developerCount(of *eventsv1.Coin, name string) (value *float64) {
	for _, s := range of.Developer {
		if s.Name == name {
			value = &s.Value
		}
	}
	return value
}

const noDescription = "the record that states it is not in the log any more"

// description reads the record of what a source reported of a coin; nil where the log no longer has it.
func (w *work) description(ctx context.Context, of *eventsv1.Coin) (recorded *eventsv1.Coin, at Place, err error) {
	at, _, err = w.find(ctx, schemas.TopicReferenceRaw, 0, of.GetIngestTime()-minute, of.GetIngestTime()+minute, of.GetSource(), func(rec eventsv1.Marked) bool {
		reference, is := rec.(*eventsv1.ReferenceRecord)
		if coin := reference.GetCoin(); is && coin != nil && coin.SourceId == of.SourceId && coin.Part == of.Part && coin.IngestTime == of.IngestTime {
			recorded = coin
		}
		return recorded != nil
	})
	return recorded, at, err
}

// similarity explains how alike two coins are: by the categories that sources put them in, as the log has these.
func (w *work) similarity(ctx context.Context, coin, other *views.CatalogCoin) (*Node, error) {
	if coin.ID == other.ID {
		return nil, query.NotFound("%s is not compared with itself", coin.ID)
	}
	coin, err := w.described(ctx, coin)
	if err != nil {
		return nil, err
	}
	if other, err = w.described(ctx, other); err != nil {
		return nil, err
	}
	shared, value := similarityOf(coin.Categories, other.Categories)
	if len(shared) == 0 {
		return nil, query.NotFound("%s and %s share no category", coin.ID, other.ID)
	}
	of := [2]*views.CatalogCoin{coin, other}
	n := headline("similarity/"+coin.ID+"/"+other.ID, &value, "", max(describing(coin).GetIngestTime(), describing(other).GetIngestTime()))
	n.Method = &Method{Name: "jaccard", Version: 1, Formula: fmt.Sprintf("categories that both have, which are %d (%s), divided by those of the one + those of the other - those that both have",
		len(shared), strings.Join(shared, ", "))}
	var again [2][]string
	lost := false
	for i, c := range of {
		ids := categoryIDs(c.Categories)
		in := headline("categories/"+c.ID, counted(uint32(len(ids))), "", describing(c).GetIngestTime())
		recorded, at, err := w.description(ctx, describing(c))
		if err != nil {
			return nil, err
		}
		if lost = lost || recorded == nil; recorded == nil {
			in.Note = noDescription
		} else {
			again[i], in.Records = recorded.Categories, []Place{at}
		}
		n.Inputs = append(n.Inputs, in)
	}
	if lost {
		n.Note = "not computed again: a record that states categories is not in the log any more"
		return n, nil
	}
	_, recomputed := similarityOf(again[0], again[1])
	n.compare(&recomputed)
	return n, nil
}

// describing is the record that a coin has its categories from, of one with any.
func describing(coin *views.CatalogCoin) *eventsv1.Coin {
	return firstWith(coin, func(c *eventsv1.Coin) bool { return len(c.GetCategories()) > 0 })
}

// firstWith is what counts first of what sources say of a coin, of that which has something; nil for none.
func firstWith(coin *views.CatalogCoin, has func(*eventsv1.Coin) bool) *eventsv1.Coin {
	for _, c := range []*eventsv1.Coin{coin.Detailed, coin.Listed, coin.Traded} {
		if has(c) {
			return c
		}
	}
	return nil
}

// similarityOf are the categories that two coins share, by their ids, as a part of all that either has.
func similarityOf(one, other []string) (shared []string, similarity float64) {
	a, b := categoryIDs(one), categoryIDs(other)
	for _, id := range a {
		if slices.Contains(b, id) {
			shared = append(shared, id)
		}
	}
	return shared, float64(len(shared)) / float64(max(len(a)+len(b)-len(shared), 1))
}

// categoryIDs are the ids of categories, in their order: two names may have one.
func categoryIDs(names []string) []string {
	ids := make([]string, 0, len(names))
	for _, name := range names {
		if id := schemas.CategoryID(name); id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
