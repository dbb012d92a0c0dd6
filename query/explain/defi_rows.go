package explain

import (
	"context"
	"slices"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defiRowField is a number of a protocol in a list. What its source states of it is taken as it is.
type defiRowField struct {
	name, unit, formula string
	value               func(*eventsv1.DefiRow) *float64
}

// defiList is a list of protocols, with the field of all of DeFi that its shares are of.
type defiList struct {
	name, whole string
	rows        func(*eventsv1.DefiSummary) []*eventsv1.DefiRow
	fields      []defiRowField
}

func defiValue(r *eventsv1.DefiRow) *float64 { return &r.Value }
func defiShare(r *eventsv1.DefiRow) *float64 { return r.Share }

var defiLists = []defiList{
	{"lending", "lendingTvl", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetLending().GetProtocols() }, []defiRowField{
		{"tvl", usd, asReported, defiValue},
		{"marketShare", percent, "tvl / lendingTvl x 100", defiShare},
		{"utilization", percent, "borrowed / (tvl + borrowed) x 100", func(r *eventsv1.DefiRow) *float64 { return r.Utilization }},
		{"change24h", percent, asReported, func(r *eventsv1.DefiRow) *float64 { return r.Change24H }},
		{"change7d", percent, asReported, func(r *eventsv1.DefiRow) *float64 { return r.Change7D }},
	}},
	{"staking", "totalStaked", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetStaking().GetProtocols() }, []defiRowField{
		{"tvl", usd, asReported, defiValue},
		{"marketShare", percent, "tvl / totalStaked x 100", defiShare},
	}},
	{"borrowing", "borrowingTvl", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetBorrowing().GetProtocols() }, []defiRowField{
		{"debt", usd, asReported, defiValue},
		{"marketShare", percent, "debt / borrowingTvl x 100", defiShare},
		{"collateral", usd, "tvl + debt", func(r *eventsv1.DefiRow) *float64 { return r.Collateral }},
		{"collateralizationRatio", percent, "collateral / debt x 100", func(r *eventsv1.DefiRow) *float64 { return r.CollateralizationRatio }},
	}},
}

func (l defiList) fieldNames() []string {
	names := make([]string, len(l.fields))
	for i, f := range l.fields {
		names[i] = f.name
	}
	return names
}

// defiListDoc writes the lists and their fields for people.
func defiListDoc() string {
	docs := make([]string, len(defiLists))
	for i, l := range defiLists {
		docs[i] = l.name + " (" + strings.Join(l.fieldNames(), ", ") + ")"
	}
	return strings.Join(docs, ", ")
}

// defiRow explains a number of a protocol.
func (w *work) defiRow(ctx context.Context, name string, parts []string) (*Node, error) {
	var names []string
	for _, l := range defiLists {
		names = append(names, l.name)
	}
	at := slices.Index(names, parts[1])
	if at < 0 {
		return nil, w.nearField(name, parts, 1, names)
	}
	list := defiLists[at]
	i := slices.IndexFunc(list.fields, func(f defiRowField) bool { return f.name == parts[3] })
	if i < 0 {
		return nil, w.nearField(name, parts, 3, list.fieldNames())
	}
	field := list.fields[i]
	whole, err := w.wholeDefi(ctx)
	if err != nil {
		return nil, err
	}
	of := func(s *eventsv1.DefiSummary) *eventsv1.DefiRow {
		for _, row := range list.rows(s) {
			if row.Key == parts[2] {
				return row
			}
		}
		return nil
	}
	row := of(whole.summary)
	if row == nil {
		var slugs []string
		for _, row := range list.rows(whole.summary) {
			slugs = append(slugs, row.Key)
		}
		return nil, w.nearField(name, parts, 2, slugs)
	}
	n := whole.node(strings.Join(parts, "/"), field.value(row), field.unit, field.formula)
	if again := of(whole.again); again != nil {
		n.compare(field.value(again))
	} else {
		n.notReproduced("the log no longer has what the protocol states")
	}
	for _, p := range whole.protocols {
		if p.reported.Slug == row.Key {
			n.Inputs = append(n.Inputs, stated("protocol/"+row.Key+"/tvl", &p.reported.Tvl, usd, p.reported.Heard, p.at))
			if p.reported.Borrowed > 0 {
				n.Inputs = append(n.Inputs, stated("protocol/"+row.Key+"/borrowed", &p.reported.Borrowed, usd, p.reported.Heard, p.at))
			}
		}
	}
	if field.name == "marketShare" {
		total := defiFields[slices.IndexFunc(defiFields, func(f defiField) bool { return f.name == list.whole })]
		n.Inputs = append(n.Inputs, whole.node("defi/"+total.name, total.value(whole.summary), usd, total.formula))
	}
	return n, nil
}
