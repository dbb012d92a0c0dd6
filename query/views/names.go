package views

import (
	"slices"
	"strings"

	"github.com/marketlog/marketlog/schemas"
)

// Named is the coin that a name means.
type Named struct {
	*CatalogCoin
	// Others are the other coins that the name could mean, the largest first; they are asked for by id. The list is shared.
	Others []*CatalogCoin
}

// IDPrefix before a name makes it an id and nothing else.
const IDPrefix = "id:"

// MaxName is how long a coin's name may be asked for in bytes: the longest ids have some hundred.
const MaxName = 128

// Find returns the coin that a name means, which may be its symbol, an old name of our table or its id, in any letter case: of
// the coins that have it the largest. The id of a coin of our table, written in lower case as ids are, always means that
// coin, and so does any id after IDPrefix. All operations that take a coin by name find it here, so that a name means the same
// coin in all of them.
func (s *Snapshot) Find(name string) (Named, bool) {
	if id, only := strings.CutPrefix(name, IDPrefix); only {
		coin := s.byID[strings.ToLower(id)]
		return Named{CatalogCoin: coin}, coin != nil
	}
	var upper, lower [MaxName]byte
	with := s.bySymbol[string(folded(upper[:0], name, strings.ToUpper, 'a', 'z'))]
	same := s.byID[string(folded(lower[:0], name, strings.ToLower, 'A', 'Z'))]
	switch {
	case same == nil && len(with) == 0:
		return Named{}, false
	case same == nil, len(with) > 0 && with[0] == same:
		return Named{with[0], with[1:]}, true
	case len(with) == 0:
		return Named{same, nil}, true
	}
	others := slices.DeleteFunc(slices.Clone(with), func(c *CatalogCoin) bool { return c == same })
	if same.Own.Rank > 0 && same.ID == name || bySize(same, with[0]) < 0 {
		return Named{same, others}, true
	}
	others = append(others[1:], same)
	slices.SortStableFunc(others, bySize)
	return Named{with[0], others}, true
}

// Naming is the coin with an id, and what else a name could mean: for a name that means that coin elsewhere.
func (s *Snapshot) Naming(name, id string) (Named, bool) {
	coin := s.byID[id]
	if coin == nil {
		return Named{}, false
	}
	named, ok := s.Find(name)
	switch {
	case !ok:
		return Named{coin, nil}, true
	case named.CatalogCoin == coin:
		return named, true
	}
	others := slices.DeleteFunc(slices.Clone(named.Others), func(c *CatalogCoin) bool { return c == coin })
	return Named{coin, append([]*CatalogCoin{named.CatalogCoin}, others...)}, true
}

// nearFrom is how long names are at least, in bytes of letters and digits, of which one may be taken for another one with a slip in it: shorter ones are one
// slip away from many.
const nearFrom = 4

// Near are the coins whose name, id or symbol is one slip away from a text that names none, the largest first, at most
// maxAlternatives. It looks at every coin.
func (s *Snapshot) Near(text string) []Alternative {
	text = schemas.FoldName(strings.TrimPrefix(text, IDPrefix))
	if len(text) < nearFrom || len(text) > MaxName {
		return nil
	}
	var near []*CatalogCoin
	for _, c := range s.Coins {
		if slices.ContainsFunc([]string{c.Name, c.ID, c.Symbol}, func(name string) bool {
			name = schemas.FoldName(name)
			return len(name) >= nearFrom && schemas.OneSlip(text, name)
		}) {
			near = append(near, c)
		}
	}
	slices.SortStableFunc(near, bySize)
	return Named{Others: near}.Alternatives()
}

// folded writes text in one letter case into buf where it is ASCII, which costs no memory, else by fold. From and to bound
// the letters of the other case.
func folded(buf []byte, text string, fold func(string) string, from, to byte) []byte {
	if len(text) > cap(buf) {
		return []byte(fold(text))
	}
	for i := range len(text) {
		c := text[i]
		if c >= 0x80 {
			return []byte(fold(text))
		}
		if from <= c && c <= to {
			c ^= 'a' - 'A'
		}
		buf = append(buf, c)
	}
	return buf
}

// OthersKey distinguishes what else names could mean: of one coin, two names with equal keys have the same Others. The zero value is
// none.
type OthersKey struct {
	first *CatalogCoin
	count int
}

// OthersKey is that of Others.
func (n Named) OthersKey() OthersKey {
	if len(n.Others) == 0 {
		return OthersKey{}
	}
	return OthersKey{n.Others[0], len(n.Others)}
}

// Leads reports whether a coin is the one that its symbol means.
func (s *Snapshot) Leads(coin *CatalogCoin) bool {
	with := s.bySymbol[coin.Symbol]
	return len(with) == 0 || with[0] == coin
}

// Alternative is another coin that a name could mean.
type Alternative struct {
	CoinID string `json:"coinId"`
	Name   string `json:"name" doc:"Name of the coin"`
	Rank   int    `json:"rank,omitempty" explain:"market/{coinId}/rank" doc:"By market cap, 1 is the largest"`
}

// maxAlternatives bounds those of one answer: some symbols have hundreds.
const maxAlternatives = 20

// Alternatives are the other coins that the name could mean, as answers list them.
func (n Named) Alternatives() []Alternative {
	var alternatives []Alternative
	for _, other := range n.Others[:min(len(n.Others), maxAlternatives)] {
		alternatives = append(alternatives, Alternative{other.ID, other.Name, other.Rank})
	}
	return alternatives
}
