package exchanges

import (
	"slices"
	"strings"

	"github.com/marketlog/marketlog/producers/adapter"
)

// market says by which keys a venue's list describes a market.
type market struct {
	Symbol, Base, Quote string
	// Pair is a name that Split takes apart, where the list has neither Base nor Quote. What it does not split is left out.
	Pair  string
	Split func(string) (base, quote string, ok bool)
	// Alias is another name of the market, where it differs from its symbol.
	Alias string
	// If are conditions of a market that is spot: key=a|b is met by either value. Unless are those of one that is not, or that never trades again.
	If, Unless []string
	// Trades are conditions of one that trades now, which are all met; what meets one of them not is halted.
	Trades []string
	// Within is the key of the object that holds the list; "" is a list by itself.
	Within string
}

// list is Venue.Instruments of a venue whose answers have such rows; open takes them out.
func (m market) list(open opener) func(string, []byte) ([]adapter.Instrument, error) {
	return m.rows(open, func(in adapter.Instrument) bool { return in.Status == "" })
}

// halted is Venue.Halted of the same answers.
func (m market) halted(open opener) func(string, []byte) ([]adapter.Instrument, error) {
	return m.rows(open, func(in adapter.Instrument) bool { return in.Status != "" })
}

// rows reads the markets that are wanted.
func (m market) rows(open opener, wanted func(adapter.Instrument) bool) func(string, []byte) ([]adapter.Instrument, error) {
	keys := []string{m.Symbol, m.Base, m.Quote, m.Pair, m.Alias}
	for _, condition := range slices.Concat(m.If, m.Unless, m.Trades) {
		key, _, _ := strings.Cut(condition, "=")
		keys = append(keys, key)
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return key == "" })
	shape := shapeOf(keys, m.Within)
	return func(_ string, body []byte) ([]adapter.Instrument, error) {
		body, _, err := open(body)
		if err != nil {
			return nil, err
		}
		rows, err := shape.list(body)
		if err != nil {
			return nil, err
		}
		var found []adapter.Instrument
		for i := range rows.Len() {
			in, ok := m.instrument(func(key string) string {
				if place := slices.Index(keys, key); place >= 0 {
					return rows.Index(i).Field(place).String()
				}
				return ""
			})
			if ok && wanted(in) {
				found = append(found, in)
			}
		}
		return found, nil
	}
}

// instrument reads a row whose values are stated by key.
func (m market) instrument(value func(key string) string) (in adapter.Instrument, ok bool) {
	met := func(condition string) bool {
		key, values, _ := strings.Cut(condition, "=")
		return slices.Contains(strings.Split(values, "|"), value(key))
	}
	if slices.ContainsFunc(m.If, func(c string) bool { return !met(c) }) || slices.ContainsFunc(m.Unless, met) {
		return in, false
	}
	base, quote := value(m.Base), value(m.Quote)
	if m.Split != nil {
		if base, quote, ok = m.Split(value(m.Pair)); !ok {
			return in, false
		}
	}
	in = adapter.Instrument{Symbol: value(m.Symbol), Base: strings.ToUpper(base), Quote: strings.ToUpper(quote)}
	if i := slices.IndexFunc(m.Trades, func(c string) bool { return !met(c) }); i >= 0 {
		key, _, _ := strings.Cut(m.Trades[i], "=")
		in.Status = key + "=" + value(key)
	}
	if alias := value(m.Alias); alias != "" && alias != in.Symbol {
		in.Aliases = []string{alias}
	}
	return in, true
}
