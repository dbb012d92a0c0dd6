package explain

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const bps = "bps"

// stablecoin is a coin with a peg, and what the source reports of it that has most of it; nil for none.
type stablecoin struct {
	*views.CatalogCoin
	peg      string
	reported *eventsv1.Stablecoin
}

// pegFields are the numbers of a stablecoin beside its deviation.
var pegFields = []struct {
	name    string
	explain func(*work, context.Context, stablecoin, int) (*Node, error)
}{
	{"price", (*work).pegPrice},
	{"target", func(w *work, ctx context.Context, coin stablecoin, depth int) (*Node, error) {
		n, _, err := w.pegTarget(ctx, coin.peg, depth)
		if err == nil {
			n.Number = "peg/" + coin.ID + "/target"
		}
		return n, err
	}},
	{"marketCap", (*work).pegCap},
	{"circulating", func(w *work, ctx context.Context, coin stablecoin, _ int) (*Node, error) {
		return w.circulating(ctx, coin)
	}},
	{"stabilityScore", (*work).pegScore},
	{meanBps, func(w *work, ctx context.Context, coin stablecoin, depth int) (*Node, error) {
		return w.pegStatistic(ctx, coin, meanBps, depth)
	}},
	{p95Bps, func(w *work, ctx context.Context, coin stablecoin, depth int) (*Node, error) {
		return w.pegStatistic(ctx, coin, p95Bps, depth)
	}},
	{samples, func(w *work, ctx context.Context, coin stablecoin, depth int) (*Node, error) {
		return w.pegStatistic(ctx, coin, samples, depth)
	}},
	{"nowBps", (*work).nowBps},
}

// pegFieldNames are those of the table, which cannot be read here: its functions refuse unknown names by them.
func pegFieldNames() []string {
	return []string{"price", "target", "marketCap", "circulating", "stabilityScore", meanBps, p95Bps, samples, "nowBps"}
}

// pegNamed explains a number of a stablecoin.
func (w *work) pegNamed(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	of, err := w.stablecoin(ctx, coin)
	if err != nil {
		return nil, err
	}
	if len(parts) == 2 {
		return w.peg(ctx, of, depth)
	}
	for _, field := range pegFields {
		if field.name == parts[2] {
			return field.explain(w, ctx, of, depth)
		}
	}
	return nil, w.nearField(name, parts, 2, pegFieldNames())
}

// stablecoin is what is known of a coin with a peg: that of the coin table, or of a coin that it does not have the one that a source reports.
func (w *work) stablecoin(ctx context.Context, coin *views.CatalogCoin) (stablecoin, error) {
	of, err := w.sources(ctx)
	if err != nil {
		return stablecoin{}, err
	}
	found := stablecoin{CatalogCoin: coin, peg: coin.Own.Peg}
	for _, reported := range of.snapshot.Stablecoins {
		if reported.CoinId == coin.ID && (found.reported == nil || schemas.Float(reported.Circulating) > schemas.Float(found.reported.Circulating)) {
			found.reported = reported
		}
	}
	if _, own := w.Prices.Coins().ByID(coin.ID); !own && found.reported != nil {
		code, _ := strings.CutPrefix(found.reported.PegType, "pegged")
		named, _ := w.Prices.Coins().Fiat(code)
		found.peg = named.Code
	}
	if found.peg == "" {
		return found, query.NotFound("%s has no peg", coin.ID)
	}
	return found, nil
}

// peg explains how far a stablecoin lies from its peg.
func (w *work) peg(ctx context.Context, coin stablecoin, depth int) (*Node, error) {
	price, err := w.priceOf(ctx, coin, max(depth-1, 0))
	if err != nil {
		return nil, err
	}
	n := &Node{Number: "peg/" + coin.ID, Unit: bps, Time: price.Time}
	n.Method = &Method{Name: "peg-deviation", Version: 1, Formula: "(price - target) / target x 10000, the target in USD"}
	n.Inputs = []*Node{price}
	target, again, err := w.pegTarget(ctx, coin.peg, depth-1)
	if err != nil {
		return nil, err
	}
	if price.Value == nil || *target.Value <= 0 {
		n.Note = "the price or what a unit of " + coin.peg + " costs is not known"
		return n, nil
	}
	deviation := schemas.PegDeviationBps(*price.Value, *target.Value)
	n.Value = &deviation
	n.Inputs = append(n.Inputs, target)
	recomputed := schemas.PegDeviationBps(*price.Value, again)
	n.compare(&recomputed)
	return n, nil
}

// nowBps explains the distance from the peg that the score counts.
func (w *work) nowBps(ctx context.Context, coin stablecoin, depth int) (*Node, error) {
	deviation, err := w.peg(ctx, coin, depth-1)
	if err != nil {
		return nil, err
	}
	n := &Node{Number: "peg/" + coin.ID + "/nowBps", Value: distance(deviation.Value), Unit: bps, Time: deviation.Time, Note: deviation.Note}
	n.Method = &Method{Name: "distance", Version: 1, Formula: "the deviation without its sign"}
	n.Inputs = []*Node{deviation}
	n.compare(distance(deviation.Value))
	return n, nil
}

func distance(deviation *float64) *float64 {
	if deviation == nil {
		return nil
	}
	return known(max(*deviation, -*deviation))
}

// pegPrice explains the price that a stablecoin is measured by.
func (w *work) pegPrice(ctx context.Context, coin stablecoin, depth int) (*Node, error) {
	in, err := w.priceOf(ctx, coin, max(depth-1, 0))
	if err != nil {
		return nil, err
	}
	n := &Node{Number: "peg/" + coin.ID + "/price", Value: in.Value, Unit: usd, Time: in.Time, Inputs: []*Node{in}}
	n.Method = &Method{Name: "price", Version: 1, Formula: "our own price, else that of the coin's row, else that of the source"}
	n.compare(in.Value)
	return n, nil
}

// priceOf is the price of a stablecoin; of one that nothing of ours has, it is the source's.
func (w *work) priceOf(ctx context.Context, coin stablecoin, depth int) (*Node, error) {
	price, err := w.price(ctx, coin.CatalogCoin, priceFields[0], depth)
	if missing(err) && coin.reported != nil {
		return w.reported(ctx, coin, "price", usd, func(s *eventsv1.Stablecoin) string { return s.Price })
	}
	return price, err
}

// missing means that there is no number of a name.
func missing(err error) bool {
	fault := (*query.Error)(nil)
	return errors.As(err, &fault) && fault.Status == http.StatusNotFound
}

// circulating explains how many units of a stablecoin there are.
func (w *work) circulating(ctx context.Context, coin stablecoin) (*Node, error) {
	in, err := w.reported(ctx, coin, "circulating", "", func(s *eventsv1.Stablecoin) string { return s.Circulating })
	if err != nil {
		return nil, err
	}
	n := &Node{Number: "peg/" + coin.ID + "/circulating", Value: known(schemas.Float(coin.reported.Circulating)), Time: in.Time, Inputs: []*Node{in}}
	n.Method = &Method{Name: "source", Version: 1, Formula: "as its source reports it"}
	if len(in.Records) == 0 {
		n.notReproduced(in.Note)
	} else {
		n.compare(in.Value)
	}
	return n, nil
}

// reported is what the record of a source reports about a stablecoin.
func (w *work) reported(ctx context.Context, coin stablecoin, field, unit string, of func(*eventsv1.Stablecoin) string) (*Node, error) {
	s := coin.reported
	if s == nil {
		return nil, query.NotFound("no source reports %s of %s", field, coin.ID)
	}
	recorded := s
	at, ok, err := w.find(ctx, schemas.TopicReferenceRaw, 0, s.IngestTime-minute, s.IngestTime+minute, s.Source, func(rec eventsv1.Marked) bool {
		record, is := rec.(*eventsv1.ReferenceRecord)
		x := record.GetStablecoin()
		if !is || x.GetSourceId() != s.SourceId || x.GetIngestTime() != s.IngestTime {
			return false
		}
		recorded = x
		return true
	})
	if err != nil {
		return nil, err
	}
	value := schemas.Float(of(recorded))
	n := headline("observation/"+s.Source+"/"+s.SourceId+"/"+field, &value, unit, s.IngestTime)
	if !ok {
		n.Note = "its record is not in the log any more"
		return n, nil
	}
	n.Records = []Place{at}
	return n, nil
}

// pegCap explains the market cap of a stablecoin: that of the coin's row, else what circulates at the price of a unit of its peg.
func (w *work) pegCap(ctx context.Context, coin stablecoin, depth int) (*Node, error) {
	field, _ := marketFieldNamed("marketCap")
	in, err := w.market(ctx, coin.CatalogCoin, field, depth-1)
	if err != nil && !missing(err) {
		return nil, err
	}
	n := &Node{Number: "peg/" + coin.ID + "/marketCap", Unit: usd}
	if err == nil && in.Value != nil && *in.Value > 0 {
		n.Value, n.Time, n.Inputs = in.Value, in.Time, []*Node{in}
		n.Method = &Method{Name: "market-row", Version: 1, Formula: "that of the coin's row"}
		n.compare(in.Value)
		return n, nil
	}
	circulating, err := w.circulating(ctx, coin)
	if err != nil {
		return nil, err
	}
	target, again, err := w.pegTarget(ctx, coin.peg, depth-1)
	if err != nil {
		return nil, err
	}
	n.Value, n.Time, n.Inputs = known(*circulating.Value**target.Value), circulating.Time, []*Node{circulating, target}
	n.Method = &Method{Name: "reported-cap", Version: 1, Formula: "circulating x target: the coin's row has no market cap"}
	if circulating.Reproduced == nil || !*circulating.Reproduced {
		n.notReproduced(circulating.Note)
		return n, nil
	}
	n.compare(known(*circulating.Inputs[0].Value * again))
	return n, nil
}

// pegTarget explains what a unit of the currency of a peg costs, 0 where that is not known, and returns the same of the records that state it.
func (w *work) pegTarget(ctx context.Context, code string, depth int) (n *Node, again float64, err error) {
	target := views.PegTarget{USD: 1}
	if code != schemas.USD {
		of, err := w.sources(ctx)
		if err != nil {
			return nil, 0, err
		}
		target = of.fiat.PegTarget(of.snapshot, code, of.at)
	}
	n = headline("peg-target/"+code, &target.USD, usd, 0)
	switch {
	case code == schemas.USD:
		n.Method = &Method{Name: "definition", Version: 1, Formula: "one US dollar costs one"}
		again = 1
		n.compare(&again)
		return n, again, nil
	case target.USD <= 0:
		n.Note = "no source has a fresh rate of " + code
		return n, 0, nil
	case target.Dollars == nil:
		rate, err := w.currency(ctx, "fiat/"+code, code, max(depth, 0))
		if err != nil {
			return nil, 0, err
		}
		n.Method = &Method{Name: "inverse", Version: 1, Formula: "1 / units of " + code + " for one US dollar"}
		n.Inputs = []*Node{rate}
		again = 1 / *rate.Value
		n.compare(&again)
		return n, again, nil
	}
	n.Method = &Method{Name: "reference-rate", Version: 1, Formula: "US dollars for one euro, divided by units of " + code + " for one euro, of the newest day"}
	for _, f := range slices.DeleteFunc([]*eventsv1.Fixing{target.Dollars, target.Units}, func(f *eventsv1.Fixing) bool { return f == nil }) {
		in, recorded, err := w.fixing(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		n.Inputs = append(n.Inputs, in)
		rate := schemas.Float(recorded.Rate)
		if f == target.Dollars {
			again = rate
		} else {
			again /= rate
		}
	}
	n.compare(&again)
	return n, again, nil
}
