package coins

import (
	"strings"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// mask holds a bit for each pair of neighbouring letters of a text. A text that holds another has all its bits, so
// a search looks at 16 bytes of most coins and at the names of few.
type mask [2]uint64

func maskOf(text string) (m mask) {
	for i := 1; i < len(text); i++ {
		bit := (uint32(text[i-1])*31 + uint32(text[i])*17) % 128
		m[bit/64] |= 1 << (bit % 64)
	}
	return m
}

// sought is what a request narrows a list to; empty texts take all.
type sought struct {
	words  [2]string // both in name, symbol or id, folded
	symbol string    // in upper case
	// category is by slug.
	category string
	// mask has the bits of both words.
	mask mask
}

func seek(q, search, symbol, category string) sought {
	s := sought{words: [2]string{views.Fold(q), views.Fold(search)}, symbol: strings.ToUpper(strings.TrimSpace(symbol)), category: schemas.CategoryID(category)}
	for _, word := range s.words {
		m := maskOf(word)
		s.mask[0] |= m[0]
		s.mask[1] |= m[1]
	}
	return s
}

// all means that nothing is left out.
func (s *sought) all() bool { return s.words == [2]string{} && s.symbol == "" && s.category == "" }

// narrow returns the coins of a list that are sought, in its order.
func (ix *index) narrow(list []int32, s *sought) []int32 {
	if s.all() {
		return list
	}
	var members map[int32]bool
	if s.category != "" {
		members = ix.categories().members(s.category)
	}
	found := []int32{}
	for _, i := range list {
		if (s.category == "" || members[i]) && ix.matches(i, s) {
			found = append(found, i)
		}
	}
	return found
}

func (ix *index) matches(i int32, s *sought) bool {
	if has := &ix.masks[i]; s.mask[0]&^has[0] != 0 || s.mask[1]&^has[1] != 0 {
		return false
	}
	for _, word := range s.words {
		if word != "" && !strings.Contains(ix.coins[i].Folded, word) {
			return false
		}
	}
	return s.symbol == "" || ix.coins[i].Symbol == s.symbol
}
