package schemas

import "testing"

func TestSlipsInNamesAreCandidatesAndDecideNothing(t *testing.T) {
	resolver := &Resolver{Table: Coins(), Catalog: smallCatalog()}
	for _, test := range []struct{ text, candidate string }{
		{"BITCON", "bitcoin"},   // a letter is missing
		{"bitcoinn", "bitcoin"}, // one too many
		{"Etherium", "ethereum"},
		{"etheremu", "ethereum"}, // two changed places
		{"bitcoin-chash", "bitcoin-cash"},
		{"BTZ", ""}, // too short to say
		{"entirely else", ""},
	} {
		got := resolver.Resolve(SymbolRequest{Symbol: test.text})
		if got.Coin != nil || got.Confidence != 0 {
			t.Errorf("%q: got %s at %d, want nothing decided", test.text, got.Coin.ID, got.Confidence)
		}
		first := ""
		if len(got.Candidates) > 0 {
			first = got.Candidates[0].Coin.ID
			if got.Candidates[0].Score != 0 {
				t.Errorf("%q: got score %d, want 0", test.text, got.Candidates[0].Score)
			}
		}
		if first != test.candidate {
			t.Errorf("%q: got candidates %v, want %q first", test.text, got.Candidates, test.candidate)
		}
	}
}

func TestOneSlip(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"abc", "abc", false}, {"abc", "abd", true}, {"abc", "ab", true}, {"abc", "xabc", true}, {"abc", "acb", true},
		{"abc", "cba", false}, {"abcd", "badc", false}, {"", "a", true}, {"", "", false}, {"aé", "ae", true}, {"ab", "abcd", false},
	} {
		if got := OneSlip(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: got %v, want %v", test.a, test.b, got, test.want)
		}
		if got := OneSlip(test.b, test.a); got != test.want {
			t.Errorf("%q and %q: got %v, want %v", test.b, test.a, got, test.want)
		}
	}
}
