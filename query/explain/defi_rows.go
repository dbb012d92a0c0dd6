package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defiRowField is a number of a row in a list. What the source reports about a protocol is taken as it is.
type defiRowField struct {
	name, unit, formula string
	value               func(*eventsv1.DefiRow) *float64
	// rates are what it is made of; nil for what is of protocols.
	rates *defiRatesUse
}

// defiList is a list of protocols, or of their assets or chains, with the field of all of DeFi that its shares are of.
type defiList struct {
	name, of, whole string
	rows            func(*eventsv1.DefiSummary) []*eventsv1.DefiRow
	// key is the row that a rate belongs to.
	key    func(schemas.DefiRate) string
	fields []defiRowField
}

// What a list has rows of, beside protocols.
const (
	defiAssets = "assets"
	defiChains = "chains"
)

const (
	marketShare  = "marketShare"
	chainShare   = "share"
	stakingRatio = "stakingRatio"
)

func defiValue(r *eventsv1.DefiRow) *float64     { return &r.Value }
func defiShare(r *eventsv1.DefiRow) *float64     { return r.Share }
func defiAPY(r *eventsv1.DefiRow) *float64       { return r.Apy }
func defiBorrowAPY(r *eventsv1.DefiRow) *float64 { return r.BorrowApy }

func defiProvider(r schemas.DefiRate) string { return r.Provider }
func defiCoinOf(r schemas.DefiRate) string   { return r.CoinID }
func defiChainOf(r schemas.DefiRate) string  { return r.Chain }

// defiYield is the mean of the rates of a row.
func defiYield(name, category, weight string, value func(*eventsv1.DefiRow) *float64) defiRowField {
	formula := weighted("its rates that count in "+category, weight) + "; where no amount is known, their mean, each counted once"
	return defiRowField{name, percent, formula, value, &defiRatesUse{category, defiByWeight}}
}

// defiHeld is what is lent or owed of a coin.
func defiHeld(name, category string) defiRowField {
	return defiRowField{name, usd, "sum of the amounts of its rates that count in " + category, defiValue, &defiRatesUse{category, defiAmount}}
}

var (
	defiSupplyYield = defiYield("supplyApy", schemas.RateLending, "what is supplied", defiAPY)
	defiBorrowYield = defiYield("borrowApy", schemas.RateBorrowing, "the debt", defiBorrowAPY)
	defiStakeYield  = defiYield("apy", schemas.RateStaking, "what is staked", defiAPY)
)

var defiLists = []defiList{
	{"lending", "", "lendingTvl", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetLending().GetProtocols() }, defiProvider, []defiRowField{
		{"tvl", usd, asReported, defiValue, nil},
		{marketShare, percent, "tvl / lendingTvl x 100", defiShare, nil},
		{"utilization", percent, "borrowed / (tvl + borrowed) x 100", func(r *eventsv1.DefiRow) *float64 { return r.Utilization }, nil},
		{"change24h", percent, asReported, func(r *eventsv1.DefiRow) *float64 { return r.Change24H }, nil},
		{"change7d", percent, asReported, func(r *eventsv1.DefiRow) *float64 { return r.Change7D }, nil},
		defiSupplyYield, defiBorrowYield,
	}},
	{"staking", "", "totalStaked", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetStaking().GetProtocols() }, defiProvider, []defiRowField{
		{"tvl", usd, asReported, defiValue, nil},
		{marketShare, percent, "tvl / totalStaked x 100", defiShare, nil},
		defiStakeYield,
	}},
	{"borrowing", "", "borrowingTvl", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetBorrowing().GetProtocols() }, defiProvider, []defiRowField{
		{"debt", usd, asReported, defiValue, nil},
		{marketShare, percent, "debt / borrowingTvl x 100", defiShare, nil},
		{"collateral", usd, "tvl + debt", func(r *eventsv1.DefiRow) *float64 { return r.Collateral }, nil},
		{"collateralizationRatio", percent, "collateral / debt x 100", func(r *eventsv1.DefiRow) *float64 { return r.CollateralizationRatio }, nil},
		defiBorrowYield,
	}},
	{"lending", defiAssets, "", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetLending().GetAssets() }, defiCoinOf, []defiRowField{
		defiHeld("tvl", schemas.RateLending), defiSupplyYield, defiBorrowYield,
	}},
	{"staking", defiChains, "totalStaked", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetStaking().GetChains() }, defiChainOf, []defiRowField{
		{"tvl", usd, "sum of what is staked on the chain over the protocols of categories Liquid Staking and Staking Pool", defiValue, nil},
		{chainShare, percent, "tvl / totalStaked x 100", defiShare, nil},
		{stakingRatio, percent, "tvl / marketCap of the chain's own coin x 100", func(r *eventsv1.DefiRow) *float64 { return r.StakingRatio }, nil},
		defiStakeYield,
	}},
	{"borrowing", defiAssets, "", func(s *eventsv1.DefiSummary) []*eventsv1.DefiRow { return s.GetBorrowing().GetAssets() }, defiCoinOf, []defiRowField{
		defiHeld("debt", schemas.RateBorrowing), defiBorrowYield,
	}},
}

func (l defiList) fieldNames() []string {
	return namesOf(l.fields, func(f defiRowField) string { return f.name })
}

// row finds one; nil for none.
func (l defiList) row(s *eventsv1.DefiSummary, key string) *eventsv1.DefiRow {
	rows := l.rows(s)
	if i := slices.IndexFunc(rows, func(r *eventsv1.DefiRow) bool { return r.Key == key }); i >= 0 {
		return rows[i]
	}
	return nil
}

// defiListDoc writes the lists and their fields for people.
func defiListDoc() string {
	docs := make([]string, len(defiLists))
	for i, l := range defiLists {
		docs[i] = l.name + " (" + strings.Join(l.fieldNames(), ", ") + ")"
		if l.of != "" {
			docs[i] = "of its " + l.of + " defi/" + l.name + "/" + l.of + "/{" + strings.TrimSuffix(l.of, "s") + "}/{field} (" + strings.Join(l.fieldNames(), ", ") + ")"
		}
	}
	return strings.Join(docs, ", ")
}

// defiRow explains a number of a protocol, an asset or a chain. The name of a chain may have slashes.
func (w *work) defiRow(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	of, at := "", 2
	if len(parts) > 4 {
		of, at = parts[2], 3
	}
	parts = slices.Concat(parts[:at], []string{strings.Join(parts[at:len(parts)-1], "/")}, parts[len(parts)-1:])
	var names []string
	for _, l := range defiLists {
		if l.of == of {
			names = append(names, l.name)
		}
	}
	if names == nil {
		return nil, w.nearField(name, parts, 2, []string{defiAssets, defiChains})
	}
	i := slices.IndexFunc(defiLists, func(l defiList) bool { return l.of == of && l.name == parts[1] })
	if i < 0 {
		return nil, w.nearField(name, parts, 1, names)
	}
	list := defiLists[i]
	if i = slices.IndexFunc(list.fields, func(f defiRowField) bool { return f.name == parts[at+1] }); i < 0 {
		return nil, w.nearField(name, parts, at+1, list.fieldNames())
	}
	field := list.fields[i]
	whole, err := w.wholeDefi(ctx)
	if err != nil {
		return nil, err
	}
	row := list.row(whole.summary, parts[at])
	if row == nil {
		var keys []string
		for _, row := range list.rows(whole.summary) {
			keys = append(keys, row.Key)
		}
		return nil, w.nearField(name, parts, at, keys)
	}
	if field.rates != nil {
		err = w.ratesOfDefi(ctx, whole)
	} else if field.name == stakingRatio {
		err = w.capsOfDefi(ctx, whole)
	}
	if err != nil {
		return nil, err
	}
	n := whole.node(strings.Join(parts, "/"), field.value(row), field.unit, field.formula)
	if again := list.row(whole.again, row.Key); again != nil {
		n.compare(field.value(again))
	} else {
		n.notReproduced("the log no longer has what it is made of")
	}
	switch {
	case field.rates != nil:
		return n, w.addRates(ctx, n, whole, *field.rates, func(r schemas.DefiRate) bool { return list.key(r) == row.Key }, depth)
	case of == defiChains:
		return n, w.addChain(ctx, n, whole, field, row, depth)
	}
	for _, p := range whole.protocols {
		if p.value.Slug == row.Key {
			n.Inputs = append(n.Inputs, stated("protocol/"+row.Key+"/tvl", &p.value.Tvl, usd, p.value.Heard, p.at))
			if p.value.Borrowed > 0 {
				n.Inputs = append(n.Inputs, stated("protocol/"+row.Key+"/borrowed", &p.value.Borrowed, usd, p.value.Heard, p.at))
			}
		}
	}
	if field.name == marketShare {
		n.Inputs = append(n.Inputs, whole.total(list.whole))
	}
	return n, nil
}

// total is a number of the summary that shares are of.
func (d *wholeDefi) total(name string) *Node {
	field := defiFields[slices.IndexFunc(defiFields, func(f defiField) bool { return f.name == name })]
	return d.node("defi/"+name, field.value(d.summary), usd, field.formula)
}

// addChain gives a number of a chain what is staked there, by protocol, and what that is a share of.
func (w *work) addChain(ctx context.Context, n *Node, whole *wholeDefi, field defiRowField, row *eventsv1.DefiRow, depth int) error {
	for _, p := range whole.protocols {
		alone := schemas.NewDefiSummary(whole.summary.Time, schemas.DefiInputs{Protocols: []*eventsv1.DefiProtocol{p.value}})
		if alone.GetStaking().GetProtocolCount() == 0 {
			continue
		}
		for _, c := range p.value.Chains {
			if c.Chain == row.Key {
				n.Inputs = append(n.Inputs, stated("protocol/"+p.value.Slug+"/chains/"+c.Chain, &c.Amount, usd, p.value.Heard, p.at))
			}
		}
	}
	slices.SortStableFunc(n.Inputs, func(a, b *Node) int { return cmp.Compare(*b.Value, *a.Value) })
	n.fewer(true)
	switch field.name {
	case chainShare:
		n.Inputs = append(n.Inputs, whole.total("totalStaked"))
	case stakingRatio:
		marketCap := whole.market.rows[row.CoinId]
		if marketCap == nil {
			return nil
		}
		in := stated("market/"+row.CoinId+"/marketCap", marketCap.MarketCap, usd, marketCap.Time, whole.market.places[row.CoinId])
		if w.expands(depth - 1) {
			var err error
			if in, err = w.capOf(ctx, marketCap, depth-1); err != nil {
				return err
			}
		}
		if at := whole.chains[row.Key].at; at.Topic != "" {
			in.Records = append(in.Records, at)
		}
		n.Inputs = append(n.Inputs, in)
	}
	return nil
}
