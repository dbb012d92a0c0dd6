package schemas

import (
	"slices"
)

// misspeltFrom is how long a text must be, in letters, to be taken for a coin's name with a slip in it: shorter ones are one
// letter away from many.
const misspeltFrom = 5

// misspelt are the coins of the table whose name or id is one slip away from a text: a letter too many, too few or another,
// or two that changed places. They are an aid to who made the slip, and never decide.
func (r *Resolver) misspelt(text string) []SymbolCandidate {
	text = FoldName(text)
	if n := len([]rune(text)); n < misspeltFrom || n > maxNameLetters {
		return nil
	}
	var near []SymbolCoin
	for _, coin := range r.Table.All() {
		if OneSlip(text, FoldName(coin.Name)) || OneSlip(text, FoldName(coin.ID)) {
			if c, ok := r.Catalog.ByID(coin.ID); ok {
				near = append(near, c)
			}
		}
	}
	slices.SortFunc(near, compareSize)
	var list []SymbolCandidate
	for _, c := range near[:min(len(near), maxCandidates)] {
		list = append(list, SymbolCandidate{Coin: c})
	}
	return list
}

// maxNameLetters is beyond any coin's name.
const maxNameLetters = 64

// OneSlip reports whether two texts differ by one letter, or by two neighbours that changed places.
func OneSlip(a, b string) bool {
	if a == b || len(a)-len(b) > 4 || len(b)-len(a) > 4 { // a letter has at most four bytes
		return false
	}
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	switch len(y) - len(x) {
	case 0:
		return slices.Equal(x[i+1:], y[i+1:]) || i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
	case 1:
		return slices.Equal(x[i:], y[i+1:])
	}
	return false
}
