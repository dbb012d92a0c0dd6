package schemas

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

//go:embed coin_ids.csv
var coinIDsCSV string

const (
	coinIDsHeader = "source,source_id,coin_id"
	// canonicalSource is whose ids of coins are ours.
	canonicalSource = "coingecko"
)

// CoinIDs finds which coin a reference source means. It never changes after it was made, so its method is safe for
// concurrent use.
type CoinIDs struct {
	known map[sourceCoin]string
	// claimed are the coins of which known names the source's id: no other id of that source is theirs.
	claimed map[sourceCoin]bool
	// byName finds a coin by nameKey; "" where several have it.
	byName map[string]string
}

// sourceCoin is a source and an id: its own, or a canonical one in claimed.
type sourceCoin struct{ source, id string }

var embeddedCoinIDs = sync.OnceValue(func() *CoinIDs {
	ids, err := parseCoinIDs(coinIDsCSV, Coins())
	if err != nil {
		panic("the embedded table of coin ids is broken, which a test forbids: " + err.Error())
	}
	return ids
})

// CanonicalCoin is the canonical id of what a source calls sourceID, going by the embedded tables; symbol and name are
// the source's. CoinGecko's ids are canonical, also those that the tables do not have.
func CanonicalCoin(source, sourceID, symbol, name string) (id string, ok bool) {
	return embeddedCoinIDs().Canonical(source, sourceID, symbol, name)
}

func (c *CoinIDs) add(coin Coin) {
	key, ok := nameKey(coin.Symbol, coin.Name)
	if !ok {
		return
	}
	if id, taken := c.byName[key]; taken && id != coin.ID {
		c.byName[key] = ""
		return
	}
	c.byName[key] = coin.ID
}

// Canonical is the canonical id of what a source calls sourceID: what the table of ids has, else the one coin whose
// symbol and name are those in the id (CoinPaprika spells it symbol-name), else the one with the source's symbol and
// name. A source keeps a coin's id when the coin takes another symbol, so an id with another symbol in it proves
// nothing; and it separates namesakes by an id that goes on after the name, so such an id is no proof either.
// It is not ok where nothing or more than one coin fits.
func (c *CoinIDs) Canonical(source, sourceID, symbol, name string) (id string, ok bool) {
	if sourceID == "" {
		return "", false
	}
	if source == canonicalSource {
		return sourceID, true
	}
	if id, known := c.known[sourceCoin{source, sourceID}]; known {
		return id, id != ""
	}
	rest := sourceID
	if inID, name, ok := strings.Cut(sourceID, "-"); ok && (symbol == "" || strings.EqualFold(inID, symbol)) {
		if key, ok := nameKey(inID, name); ok {
			if id := c.byName[key]; id != "" {
				return c.unclaimed(source, id)
			}
		}
		rest = name
	}
	spelled, named := squash(rest), squash(name)
	if len(spelled) > len(named) && strings.HasPrefix(spelled, named) {
		return "", false
	}
	key, ok := nameKey(symbol, name)
	if !ok || c.byName[key] == "" {
		return "", false
	}
	return c.unclaimed(source, c.byName[key])
}

func (c *CoinIDs) unclaimed(source, id string) (string, bool) {
	if c.claimed[sourceCoin{source, id}] {
		return "", false
	}
	return id, true
}

// nameKey is how a coin is found by symbol and name: sources differ in letter case, blanks and points.
func nameKey(symbol, name string) (key string, ok bool) {
	symbol, name = squash(symbol), squash(name)
	return symbol + "-" + name, symbol != "" && name != ""
}

// squash keeps letters and digits, in lower case.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// parseCoinIDs reads a table in the form of coin_ids.csv, and reports all faults at once. A row without a coin_id says
// that the source means a coin which the table of coins does not have, whatever its name suggests.
func parseCoinIDs(text string, coins *CoinTable) (*CoinIDs, error) {
	ids := &CoinIDs{known: map[sourceCoin]string{}, claimed: map[sourceCoin]bool{}, byName: map[string]string{}}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading coin_ids.csv: %w", err)
	}
	if len(rows) == 0 || strings.Join(rows[0], ",") != coinIDsHeader {
		return nil, fmt.Errorf("reading coin_ids.csv: its first line is not %s", coinIDsHeader)
	}
	var faults []error
	for i, row := range rows[1:] {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("coin_ids.csv line %d: %w", i+2, fmt.Errorf(format, args...)))
		}
		at, id := sourceCoin{row[0], row[1]}, row[2]
		if !isSlug(at.source) || at.source == canonicalSource {
			fault("source: %q is not a slug, or the source whose ids are ours", at.source)
		}
		if at.id == "" || at.id != strings.TrimSpace(at.id) {
			fault("source_id: %q is empty or has blanks around it", at.id)
		}
		if _, twice := ids.known[at]; twice {
			fault("source_id: %s appears twice for %s", at.id, at.source)
		}
		ids.known[at] = id
		if id == "" {
			continue
		}
		if _, ok := coins.ByID(id); !ok {
			fault("coin_id: %q is not in coins.csv", id)
		}
		if claim := (sourceCoin{at.source, id}); ids.claimed[claim] {
			fault("coin_id: %s is two coins of %s", id, at.source)
		}
		ids.claimed[sourceCoin{at.source, id}] = true
	}
	for _, c := range coins.All() {
		ids.add(c)
	}
	return ids, errors.Join(faults...)
}
