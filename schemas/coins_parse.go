package schemas

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	coinsHeader = "id,symbol,name,rank,kind,peg,aliases"
	fiatsHeader = "code,name,aliases"
	anyVenue    = "*"
)

// ParseCoins reads a coin table in the form of coins.csv and fiats.csv, and reports all faults at
// once, each with file, line and field.
//
// Coins are in the order of their ranks, which run 1 to n. Aliases are separated by ";":
// "venue:SYM" says that this venue calls the coin SYM, "*:SYM" that any may, "!venue:SYM" that at
// this venue SYM is something else that the table does not have. An alias means the same unit:
// a symbol that counts thousands, or a predecessor that was swapped at another ratio, is not one.
func ParseCoins(coinsCSV, fiatsCSV string) (*CoinTable, error) {
	p := parser{t: &CoinTable{
		byID:       map[string]int32{},
		byFiatCode: map[string]int32{},
		bySymbol:   map[string][]Coin{},
		symbols:    map[string]symbolEntry{},
		venue:      map[string]venueEntry{},
	}}
	p.rows("fiats.csv", fiatsHeader, fiatsCSV, p.fiat)
	p.rows("coins.csv", coinsHeader, coinsCSV, p.coin)
	// Aliases come last: whether one is allowed depends on every symbol.
	for _, a := range p.aliases {
		p.alias(a)
	}
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	return p.t, nil
}

type parser struct {
	t       *CoinTable
	aliases []pendingAlias
	faults  []error
	file    string
	line    int
}

type pendingAlias struct {
	file  string
	line  int
	text  string
	entry venueEntry
}

func (p *parser) fault(field, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s line %d: %s: %w", p.file, p.line, field, fmt.Errorf(format, args...)))
}

func (p *parser) rows(file, header, text string, row func([]string)) {
	p.file, p.line = file, 1
	r := csv.NewReader(strings.NewReader(text))
	rows, err := r.ReadAll()
	if err != nil {
		p.faults = append(p.faults, fmt.Errorf("reading %s: %w", file, err))
		return
	}
	if len(rows) == 0 || strings.Join(rows[0], ",") != header {
		p.fault("header", "want %s", header)
		return
	}
	for i, fields := range rows {
		// No name spans lines, so the row number is the line number.
		p.line = i + 1
		// Writing to a hash cannot fail. No field holds a control character, so the separators
		// cannot be forged.
		for _, f := range fields {
			if f != strings.TrimSpace(f) || strings.ContainsFunc(f, func(r rune) bool { return r < ' ' }) {
				p.fault("row", "%q has blanks around it or control characters", f)
			}
		}
		if i > 0 {
			row(fields)
		}
	}
}

func (p *parser) fiat(f []string) {
	code, name, aliases := f[0], f[1], f[2]
	if len(code) != 3 || !isSymbol(code) {
		p.fault("code", "%q is not three capital letters", code)
	}
	if name == "" {
		p.fault("name", "empty")
	}
	if _, twice := p.t.byFiatCode[code]; twice {
		p.fault("code", "%s appears twice", code)
	}
	i := int32(len(p.t.fiats))
	p.t.byFiatCode[code] = i
	p.t.fiats = append(p.t.fiats, Fiat{Code: code, Name: name})
	p.collect(aliases, venueEntry{index: i, target: venueFiat})
}

func (p *parser) coin(f []string) {
	c := Coin{ID: f[0], Symbol: f[1], Name: f[2], Kind: Kind(f[4]), Peg: f[5]}
	if !isSlug(c.ID) {
		p.fault("id", "%q is not lower case letters, digits and hyphens", c.ID)
	}
	if _, twice := p.t.byID[c.ID]; twice {
		p.fault("id", "%s appears twice", c.ID)
	}
	if !isSymbol(c.Symbol) {
		p.fault("symbol", "%q is not upper case, or holds a separator", c.Symbol)
	}
	if c.Name == "" {
		p.fault("name", "empty")
	}
	rank, err := strconv.Atoi(f[3])
	if want := len(p.t.coins) + 1; err != nil || rank != want {
		p.fault("rank", "got %q, want %d: ranks run 1 to n in the order of lines", f[3], want)
	}
	c.Rank = rank
	switch c.Kind {
	case KindCoin, KindToken, KindWrapped, KindStaked:
		if c.Peg != "" {
			p.fault("peg", "%q on a %s; only stablecoins have one", c.Peg, c.Kind)
		}
	case KindStablecoin:
		if _, ok := p.t.byFiatCode[c.Peg]; !ok {
			p.fault("peg", "%q of a stablecoin is not a code of fiats.csv", c.Peg)
		}
	default:
		p.fault("kind", "%q is unknown", c.Kind)
	}
	i := int32(len(p.t.coins))
	p.t.byID[c.ID] = i
	p.t.coins = append(p.t.coins, c)
	p.t.bySymbol[c.Symbol] = append(p.t.bySymbol[c.Symbol], c)
	if e, shared := p.t.symbols[c.Symbol]; shared {
		p.t.symbols[c.Symbol] = symbolEntry{coin: e.coin, method: ResolvedByRank}
	} else {
		p.t.symbols[c.Symbol] = symbolEntry{coin: i, method: ResolvedBySymbol}
	}
	p.collect(f[6], venueEntry{index: i, target: venueCoin})
}

func (p *parser) collect(aliases string, e venueEntry) {
	if aliases == "" {
		return
	}
	for text := range strings.SplitSeq(aliases, ";") {
		p.aliases = append(p.aliases, pendingAlias{file: p.file, line: p.line, text: text, entry: e})
	}
}

func (p *parser) alias(a pendingAlias) {
	p.file, p.line = a.file, a.line
	text, refused := strings.CutPrefix(a.text, "!")
	venue, symbol, ok := strings.Cut(text, ":")
	if !ok || !isSymbol(symbol) || venue != anyVenue && !isSlug(venue) {
		p.fault("aliases", "%q is not [!]venue:SYMBOL", a.text)
		return
	}
	if refused {
		if venue == anyVenue || a.entry.target == venueFiat {
			p.fault("aliases", "%q refuses a symbol everywhere, or of a fiat currency", a.text)
			return
		}
		a.entry = venueEntry{target: venueRefused}
	}
	if venue == anyVenue {
		if a.entry.target == venueFiat {
			p.fault("aliases", "%q: a fiat currency has one code on all venues", a.text)
			return
		}
		if _, taken := p.t.symbols[symbol]; taken {
			p.fault("aliases", "%q is a symbol or an alias of another coin too", a.text)
			return
		}
		p.t.symbols[symbol] = symbolEntry{coin: a.entry.index, method: ResolvedByAlias}
		p.t.bySymbol[symbol] = []Coin{p.t.coins[a.entry.index]}
		return
	}
	key := venue + ":" + symbol
	if _, taken := p.t.venue[key]; taken {
		p.fault("aliases", "%q: %s is listed twice", a.text, key)
		return
	}
	p.t.venue[key] = a.entry
}

func isSlug(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// isSymbol accepts what Resolve can be asked for: no lower case, no separators of pairs.
func isSymbol(s string) bool {
	if s == "" || len(s) > 32 || strings.ContainsAny(s, "-/_: ;!*") {
		return false
	}
	for i := range len(s) {
		if upperASCII(s[i]) != s[i] {
			return false
		}
	}
	return true
}
