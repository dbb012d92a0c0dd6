package schemas

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// SymbolMethod says how a symbol was resolved. In the order of this list the first that can decide does.
type SymbolMethod string

// Methods of resolving a symbol, with the confidences that each gives, in percent, rounded down.
const (
	// MethodOverride is an operator's word on this symbol of this source: 100.
	MethodOverride SymbolMethod = "manual_override"
	// MethodProvider is what a source of reference data itself reports: its own id of the coin, 100; the coin's contract
	// address, 100 with the platform and 95 without. A price that is not the coin's takes either down to 85.
	MethodProvider SymbolMethod = "provider_mapping"
	// MethodExchange is what the coin table says of this symbol at this venue, 100, or of an old name that any venue may
	// use, 95. A price that is not the coin's takes both down to 85; if it is off tenfold, an old name does not count.
	MethodExchange SymbolMethod = "exchange_mapping"
	// MethodUnique is that one coin alone has the symbol: 90. Of a coin outside the coin table a source must report a price or a
	// size: what nobody trades is hardly meant, and the catalog rather lacks the coin that is.
	MethodUnique SymbolMethod = "unique_symbol"
	// MethodPrice is that one coin alone among several has the given price, within 10 %, and all others whose price is
	// known are more than 30 % away from it: 85.
	MethodPrice SymbolMethod = "price_context"
	// MethodDatabase is that one coin of the coin table has the symbol and no other coin is larger:
	// 80 + 10 x (1 - √share), share being the size of the largest other coin as a fraction of its own.
	MethodDatabase SymbolMethod = "coin_database"
	// MethodRanking is the largest of several: 70 + 30 x (1 - √share), and at most 84 where it ranks beyond 1,000 or another
	// is a leveraged fund or a stock in a token of unknown size. A rival of unknown size counts as one at the end of the
	// ranking, which says no more than that it is not before that.
	MethodRanking SymbolMethod = "market_cap_ranking"
	// MethodSearch is what names match: 80 for the one coin with this very name, 75 for an id that is not a name, 70 for the one coin whose name
	// begins with it, 65 for the likeliest among coins of unknown size. It is also the word for what another method found with less
	// certainty than that method may have: the only coin with a symbol about which nothing else is known, 75; a number of units of it, 80; and
	// 65 for any coin whose price is not the given one.
	MethodSearch SymbolMethod = "catalog_search"
)

// SymbolMethods lists the methods in the order in which they are tried.
var SymbolMethods = []SymbolMethod{MethodOverride, MethodProvider, MethodExchange, MethodUnique, MethodPrice, MethodDatabase, MethodRanking, MethodSearch}

// GeneralSource means no source in particular.
const GeneralSource = "general"

const (
	// priceMatches and priceDiffers bound how far a coin's price lies from the given one, as a fraction of it: at most the
	// first, it is the same price; more than the second, it is another. The given price may be minutes old.
	priceMatches, priceDiffers = 0.10, 0.30
	// priceContradicts is the ratio from which a price implies that another coin, or another unit, is meant.
	priceContradicts = 10
	// unknownShare is what a coin of unknown size counts as at least, as a fraction of one whose size is known: sources
	// leave out what hardly trades.
	unknownShare = 0.001
	// checkedRank is how far down collisions of symbols are checked by hand; beyond it a ranking alone is not a ground
	// to trade on.
	checkedRank = 1000
	// mostConfidentUnchecked is for those beyond it, and for those beside a coin that no ranking holds.
	mostConfidentUnchecked = 84
	// multiplied and multipliedUnknown are the confidences at most where a symbol was read as a number of units, of a coin of
	// the table and of another.
	multiplied, multipliedUnknown = 85, 80
	// guessedPair is the confidence at most where letters alone state that a symbol is a pair.
	guessedPair = 80
	// contradicted is the confidence at most of a coin whose price is not the given one, mapped that of one that a source or a venue
	// is known to mean nevertheless.
	contradicted, mapped = 65, 85
	// obscure is the confidence of the only coin with a symbol, if no source reports its price or its size.
	obscure = 75
	// maxCandidates bounds what an answer lists.
	maxCandidates = 10
)

// SymbolCoin is what resolving needs to know of a coin. Zero is unknown.
type SymbolCoin struct {
	// ID is canonical, Symbol in upper case.
	ID, Symbol, Name string
	// Rank is by market cap, 1 is the largest.
	Rank int
	// MarketCap and Price are in USD.
	MarketCap, Price float64
	// Platforms are where it is issued.
	Platforms []SymbolPlatform
	// Inactive coins count only where no other has the symbol.
	Inactive bool
}

// SymbolPlatform is a chain, by CoinGecko's name, and a coin's address on it.
type SymbolPlatform struct{ Name, Address string }

// SymbolCatalog is the coins that a symbol may mean, those of the coin table among them. The slices are shared and
// must not be modified.
type SymbolCatalog interface {
	// BySymbol returns the coins with a symbol in upper case.
	BySymbol(symbol string) []SymbolCoin
	ByID(id string) (SymbolCoin, bool)
	// ByContract returns the coins with an address in lower case, on any platform.
	ByContract(address string) []SymbolCoin
	// ByName returns the coins with a name, whatever its letter case and blanks; and if there are none and the name is
	// long enough, those whose names begin with it.
	ByName(name string) (coins []SymbolCoin, whole bool)
	// Ranked is the greatest rank that a coin of the catalog has, 0 if none has one.
	Ranked() int
}

// SymbolContext are hints beside a symbol; empty ones mean nothing.
type SymbolContext struct {
	// Exchange is the venue, where the source is not one.
	Exchange string
	// Platform and Contract are where the coin is issued.
	Platform, Contract string
	// Name is the coin's.
	Name string
}

// SymbolRequest asks which coin a symbol means.
type SymbolRequest struct {
	Symbol string
	// Source is a venue, a source of reference data, or general.
	Source string
	// Price of one unit of what the symbol names, in USD; 0 if not known.
	Price   float64
	Context SymbolContext
	// At is the log time whose overrides hold, Unix nanoseconds.
	At int64
}

// ResolvedSymbol is the answer. Without a coin Method is empty and Confidence 0.
type ResolvedSymbol struct {
	// Coin is nil where none was found.
	Coin       *SymbolCoin
	Method     SymbolMethod
	Confidence int
	// Units is how many of the coin one unit of the symbol is: 1000 for 1000SHIB, else 1.
	Units float64
	// Fiat is the code of the currency that the symbol names, which is not a coin.
	Fiat string
	// Candidates are the coins that came into question, the best first; where there are none, those of the coin table that
	// are called nearly so, with a score of 0.
	Candidates []SymbolCandidate

	refused bool
}

// SymbolCandidate is a coin that came into question.
type SymbolCandidate struct {
	Coin SymbolCoin
	// Score is the decision's confidence for the coin that was decided for; for others that times √share, where share is
	// their size as a fraction of its; 0 for those that a hint excludes.
	Score int
}

// SymbolMapping says which coin a symbol of a venue or source means, since when.
type SymbolMapping struct {
	Source, Symbol, CoinID string
	Method                 SymbolMethod
	// Confidence in percent.
	Confidence int
	Since      time.Time
}

// Resolver finds out which coin a symbol means. It is pure: the same catalog, overrides and request give the same
// answer. Safe for concurrent use as far as its catalog is.
type Resolver struct {
	Table     *CoinTable
	Catalog   SymbolCatalog
	Overrides *SymbolOverrides
}

// Resolve decides by the first of SymbolMethods that can. The symbol is read as it is in any letter case; only where
// nothing has it, also without what is known to be added to symbols: see spellings.
func (r *Resolver) Resolve(req SymbolRequest) ResolvedSymbol {
	req.Symbol = strings.TrimSpace(req.Symbol)
	var first ResolvedSymbol
	venue := r.venue(req)
	known := func(base string) bool { _, _, ok := r.Table.Resolve(venue, base); return ok }
	for i, s := range spellings(venue, req.Symbol, known) {
		got := r.spelled(req, s)
		if i == 0 {
			first = got
		}
		if got.Coin != nil || got.Fiat != "" || got.refused || r.Table.Refuses(venue, req.Symbol) {
			return got // what the venue means otherwise is not to be guessed
		}
	}
	if found := r.search(req); found.Coin != nil {
		return found
	}
	if len(first.Candidates) == 0 {
		first.Candidates = r.misspelt(req.Symbol)
	}
	return first
}

// venue is the slug of the venue that a request names, in lower case; empty for none.
func (r *Resolver) venue(req SymbolRequest) string {
	source := VenueSlug(req.Source)
	if source == "" || source == GeneralSource {
		return VenueSlug(req.Context.Exchange)
	}
	return source
}

// ours reports whether a coin is one of the coin table.
func (r *Resolver) ours(c SymbolCoin) bool {
	_, ok := r.Table.ByID(c.ID)
	return ok
}

func (r *Resolver) spelled(req SymbolRequest, s spelling) ResolvedSymbol {
	symbol, venue := strings.ToUpper(s.symbol), r.venue(req)
	q := question{r: r, req: req, symbol: symbol, venue: venue, units: s.units, price: req.Price / s.units}
	got := q.answer()
	got.Units = s.units
	if s.units != 1 && got.Coin != nil && got.Method != MethodOverride {
		limit, ours := multipliedUnknown, r.ours(*got.Coin)
		if ours {
			limit = multiplied
		}
		got.limit(limit)
		switch { // no method may be less sure than it is documented to be
		case got.Method == MethodUnique && ours:
			got.Method = MethodDatabase
		case got.Method == MethodUnique, got.Method == MethodPrice && !ours:
			got.Method = MethodSearch
		}
		got.Candidates[0].Score = got.Confidence
	}
	if s.guessed && got.Coin != nil && got.Method != MethodOverride {
		got.limit(guessedPair)
	}
	return got
}

// limit lowers the confidence of a symbol that is resolved.
func (s *ResolvedSymbol) limit(most int) {
	s.Confidence = min(s.Confidence, most)
	s.Candidates[0].Score = s.Confidence
}

// question is one spelling of a request.
type question struct {
	r             *Resolver
	req           SymbolRequest
	symbol, venue string
	units, price  float64
	// all have the symbol; fitting are those of them that no hint excludes.
	all, fitting []SymbolCoin
	// refused reports that the venue means by the symbol something that the coin table does not have.
	refused bool
	// refusedByHand reports that an operator rejected all coins.
	refusedByHand bool
}

func (q *question) answer() ResolvedSymbol {
	q.collect()
	for _, method := range []func() ResolvedSymbol{q.override, q.provider, q.exchange} {
		if got := method(); got.Coin != nil {
			return got
		}
		if q.refusedByHand {
			return ResolvedSymbol{Candidates: q.candidates(nil, 0), refused: true}
		}
	}
	_, _, named := q.r.Table.Resolve(q.venue, q.symbol)
	if fiat, ok := q.r.Table.ResolveQuote(q.venue, q.symbol); ok && fiat.Fiat && !named {
		return ResolvedSymbol{Fiat: fiat.ID, Candidates: q.candidates(nil, 0)}
	}
	methods := []func() ResolvedSymbol{q.unique, q.byPrice, q.database, q.ranking, q.likeliest}
	if q.refused {
		// Whether the venue's coin is among those that others call so is not known.
		methods = []func() ResolvedSymbol{q.byPrice, q.likeliest}
	}
	for _, method := range methods {
		if got := method(); got.Coin != nil {
			return got
		}
	}
	return ResolvedSymbol{Candidates: q.candidates(nil, 0)}
}

// collect finds the coins with the symbol, and those of them that fit the hints.
func (q *question) collect() {
	q.refused = q.r.Table.Refuses(q.venue, q.symbol)
	for _, c := range q.r.Catalog.BySymbol(q.symbol) {
		if q.refused && q.r.ours(c) {
			continue // the table knows that this venue means another coin
		}
		q.all = append(q.all, c)
	}
	if slices.ContainsFunc(q.all, func(c SymbolCoin) bool { return !c.Inactive }) {
		q.all = slices.DeleteFunc(q.all, func(c SymbolCoin) bool { return c.Inactive })
	}
	slices.SortFunc(q.all, compareSize)
	q.fitting = keep(q.all, func(c SymbolCoin) bool { return q.fits(c) && !q.contradicts(c) })
	if len(q.fitting) == 0 {
		q.fitting = keep(q.all, q.fits)
	}
	if name := FoldName(q.req.Context.Name); name != "" {
		if named := keep(q.fitting, func(c SymbolCoin) bool { return FoldName(c.Name) == name }); len(named) > 0 {
			q.fitting = named
		}
	}
}

// fits reports whether a coin can be issued where the context says.
func (q *question) fits(c SymbolCoin) bool {
	platform, contract := FoldName(q.req.Context.Platform), strings.ToLower(strings.TrimSpace(q.req.Context.Contract))
	if platform == "" && contract == "" || len(c.Platforms) == 0 {
		return true // coins without a known platform may be issued anywhere
	}
	return slices.ContainsFunc(c.Platforms, func(p SymbolPlatform) bool {
		return (platform == "" || FoldName(p.Name) == platform) && (contract == "" || p.Address == "" || strings.ToLower(p.Address) == contract)
	})
}

// contradicts reports whether the given price is that of another coin, or of another unit.
func (q *question) contradicts(c SymbolCoin) bool {
	return q.price > 0 && c.Price > 0 && max(c.Price/q.price, q.price/c.Price) >= priceContradicts
}

// differs reports whether the given price is not the coin's, though it may be one that the coin once had.
func (q *question) differs(c SymbolCoin) bool {
	return q.price > 0 && c.Price > 0 && math.Abs(c.Price-q.price)/q.price > priceDiffers
}

// doubted is the confidence in a coin that is known to be meant, which a given price that is not the coin's lowers.
func (q *question) doubted(c SymbolCoin, confidence int) int {
	if q.differs(c) {
		return min(confidence, mapped)
	}
	return confidence
}

func (q *question) override() ResolvedSymbol {
	for _, source := range []string{VenueSlug(q.req.Source), q.venue, GeneralSource} {
		if id, ok := q.r.Overrides.At(source, q.symbol, q.req.At); ok {
			if id == NoCoin {
				q.refusedByHand = true
				return ResolvedSymbol{}
			}
			return q.decide(q.coin(id), MethodOverride, 100)
		}
	}
	return ResolvedSymbol{}
}

// coin is one that somebody named by its id, also if the catalog does not know it.
func (q *question) coin(id string) SymbolCoin {
	if c, ok := q.r.Catalog.ByID(id); ok {
		return c
	}
	return SymbolCoin{ID: id, Symbol: q.symbol, Name: id}
}

func (q *question) provider() ResolvedSymbol {
	if id, ok := CanonicalCoin(VenueSlug(q.req.Source), q.req.Symbol, "", ""); ok && q.units == 1 {
		// A source's id of one coin may be the symbol of others: then it is not clear which was meant.
		if c, known := q.r.Catalog.ByID(id); known && (len(q.all) == 0 || slices.ContainsFunc(q.all, func(o SymbolCoin) bool { return o.ID == id })) {
			return q.decide(c, MethodProvider, q.doubted(c, 100))
		}
	}
	platform, contract := q.req.Context.Platform, q.req.Context.Contract
	if contract == "" && isAddress(q.req.Symbol) {
		platform, contract = cutPlatform(q.req.Symbol, platform)
	}
	if contract == "" {
		return ResolvedSymbol{}
	}
	found := q.r.Catalog.ByContract(strings.ToLower(strings.TrimSpace(contract)))
	confidence := 95
	if platform != "" {
		confidence = 100
		found = keep(found, func(c SymbolCoin) bool {
			return slices.ContainsFunc(c.Platforms, func(p SymbolPlatform) bool {
				return FoldName(p.Name) == FoldName(platform) && strings.EqualFold(p.Address, strings.TrimSpace(contract))
			})
		})
	}
	if len(found) != 1 {
		return ResolvedSymbol{}
	}
	return q.decide(found[0], MethodProvider, q.doubted(found[0], confidence))
}

func (q *question) exchange() ResolvedSymbol {
	coin, method, ok := q.r.Table.Resolve(q.venue, q.symbol)
	if !ok {
		return ResolvedSymbol{}
	}
	c := q.coin(coin.ID)
	switch off := q.contradicts(c); {
	case method == ResolvedByVenueAlias:
		return q.decide(c, MethodExchange, q.doubted(c, 100))
	case method == ResolvedByAlias && q.venue != "" && !off && q.fits(c):
		return q.decide(c, MethodExchange, q.doubted(c, 95))
	case method == ResolvedByAlias && !slices.ContainsFunc(q.all, func(o SymbolCoin) bool { return o.ID == c.ID }):
		// For no venue in particular it is one coin among those that have the symbol.
		q.all = append(q.all, c)
		slices.SortFunc(q.all, compareSize)
		if q.fits(c) && !off {
			q.fitting = append(q.fitting, c)
			slices.SortFunc(q.fitting, compareSize)
		}
	}
	return ResolvedSymbol{}
}

func (q *question) unique() ResolvedSymbol {
	if len(q.all) != 1 || len(q.fitting) != 1 {
		return ResolvedSymbol{}
	}
	if q.differs(q.fitting[0]) {
		return q.decide(q.fitting[0], MethodSearch, contradicted)
	}
	if name := FoldName(q.req.Context.Name); name != "" && FoldName(q.fitting[0].Name) != name {
		return ResolvedSymbol{} // the catalog lacks the coin that is meant
	}
	if c := q.fitting[0]; !q.r.ours(c) && unsized(c) && c.Price <= 0 {
		return q.decide(c, MethodSearch, obscure)
	}
	return q.decide(q.fitting[0], MethodUnique, 90)
}

func (q *question) byPrice() ResolvedSymbol {
	if q.price <= 0 || len(q.all) < 2 {
		return ResolvedSymbol{}
	}
	var match []SymbolCoin
	for _, c := range q.fitting {
		if c.Price <= 0 {
			continue
		}
		switch off := math.Abs(c.Price-q.price) / q.price; {
		case off <= priceMatches:
			match = append(match, c)
		case off <= priceDiffers:
			return ResolvedSymbol{}
		}
	}
	if len(match) != 1 {
		return ResolvedSymbol{}
	}
	return q.decide(match[0], MethodPrice, 85)
}

func (q *question) database() ResolvedSymbol {
	ours := keep(q.fitting, q.r.ours)
	if len(ours) != 1 || ours[0].ID != q.fitting[0].ID || q.differs(ours[0]) {
		return ResolvedSymbol{}
	}
	return q.decide(ours[0], MethodDatabase, 80+int(10*(1-math.Sqrt(q.rival(ours[0])))))
}

func (q *question) ranking() ResolvedSymbol {
	if len(q.fitting) == 0 || unsized(q.fitting[0]) || q.differs(q.fitting[0]) {
		return ResolvedSymbol{}
	}
	best := q.fitting[0]
	rival := q.rival(best)
	if last := q.r.Catalog.Ranked(); last > 0 && best.Rank > 0 && slices.ContainsFunc(q.fitting, unsized) {
		rival = max(rival, min(1, float64(best.Rank)/float64(last)))
	}
	confidence := 70 + int(30*(1-math.Sqrt(rival)))
	if best.Rank == 0 || best.Rank > checkedRank || slices.ContainsFunc(q.fitting, unranked) {
		confidence = min(confidence, mostConfidentUnchecked)
	}
	return q.decide(best, MethodRanking, confidence)
}

// likeliest is for coins of unknown size: the one with the given name, else the one whose id has the fewest additions,
// since a source gives the plain id to whom it lists first.
func (q *question) likeliest() ResolvedSymbol {
	if len(q.fitting) == 0 {
		return ResolvedSymbol{}
	}
	if name := FoldName(q.req.Context.Name); name != "" && len(q.fitting) == 1 && FoldName(q.fitting[0].Name) == name && !q.differs(q.fitting[0]) {
		return q.decide(q.fitting[0], MethodSearch, 80)
	}
	return q.decide(q.fitting[0], MethodSearch, contradicted)
}

// rival is the size of the largest fitting coin beside best, as a fraction of best's.
func (q *question) rival(best SymbolCoin) float64 {
	largest := 0.0
	for _, c := range q.fitting {
		if c.ID != best.ID {
			largest = max(largest, share(c, best))
		}
	}
	return largest
}

func (q *question) decide(coin SymbolCoin, method SymbolMethod, confidence int) ResolvedSymbol {
	return ResolvedSymbol{Coin: &coin, Method: method, Confidence: confidence, Candidates: q.candidates(&coin, confidence)}
}

// candidates lists the coin that was decided for and those with the symbol, scored.
func (q *question) candidates(decided *SymbolCoin, confidence int) []SymbolCandidate {
	var list []SymbolCandidate
	if decided != nil {
		list = append(list, SymbolCandidate{*decided, confidence})
	}
	for _, c := range q.all {
		if decided != nil && c.ID == decided.ID {
			continue
		}
		score := 0
		if decided != nil && q.fits(c) && !q.contradicts(c) {
			score = int(float64(confidence) * math.Sqrt(share(c, *decided)))
		}
		list = append(list, SymbolCandidate{c, score})
	}
	slices.SortStableFunc(list, func(a, b SymbolCandidate) int { return b.Score - a.Score })
	return list[:min(len(list), maxCandidates)]
}

// share is the size of a coin as a fraction of another's, at most 1: by market cap where both are known, else by rank,
// to which market cap is about inverse.
func share(c, of SymbolCoin) float64 {
	switch {
	case c.MarketCap > 0 && of.MarketCap > 0:
		return min(1, c.MarketCap/of.MarketCap)
	case c.Rank > 0 && of.Rank > 0:
		return min(1, float64(of.Rank)/float64(c.Rank))
	case unsized(c) && (of.Rank > 0 || of.MarketCap > 0):
		return unknownShare
	default:
		return 1
	}
}

func unsized(c SymbolCoin) bool { return c.Rank == 0 && c.MarketCap == 0 }

// unranked reports whether a coin of unknown size is, by its name, a leveraged fund or a stock in a token. Sources report no market cap
// of those however much they trade: BULL was FTX's fund at several venues, while rankings held BuySell alone.
func unranked(c SymbolCoin) bool {
	name := strings.ToLower(c.Name)
	return unsized(c) &&
		(strings.Contains(name, "x long ") || strings.Contains(name, "x short ") || strings.Contains(name, "tokenized stock"))
}

// compareSize puts the largest coin first; those of unknown size follow, the shortest id first.
func compareSize(a, b SymbolCoin) int {
	if a.MarketCap > 0 && b.MarketCap > 0 && a.MarketCap != b.MarketCap {
		return cmp.Compare(b.MarketCap, a.MarketCap)
	}
	return cmp.Or(cmp.Compare(uint(a.Rank)-1, uint(b.Rank)-1), cmp.Compare(b.MarketCap, a.MarketCap),
		cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
}

// search looks for the name that the context gives, or that the symbol is.
func (r *Resolver) search(req SymbolRequest) ResolvedSymbol {
	got := ResolvedSymbol{Units: 1}
	for _, text := range []string{req.Context.Name, req.Symbol} {
		if FoldName(text) == "" {
			continue
		}
		q := question{r: r, req: req, symbol: strings.ToUpper(req.Symbol), units: 1, price: req.Price}
		found, whole := r.Catalog.ByName(text)
		confidence := 70
		if whole {
			confidence = 80
		}
		if c, ok := r.Catalog.ByID(strings.ToLower(strings.TrimSpace(text))); ok {
			confidence = 75
			if slices.ContainsFunc(found, func(o SymbolCoin) bool { return whole && o.ID == c.ID }) {
				confidence = 80
			}
			found = []SymbolCoin{c}
		}
		q.all = slices.Clone(found)
		slices.SortFunc(q.all, compareSize)
		q.fitting = keep(q.all, func(c SymbolCoin) bool { return q.fits(c) && !q.contradicts(c) })
		switch len(q.fitting) {
		case 0:
			continue
		case 1:
			if q.differs(q.fitting[0]) {
				confidence = contradicted
			}
		default:
			confidence = contradicted
		}
		if got = q.decide(q.fitting[0], MethodSearch, confidence); got.Coin != nil {
			got.Units = 1
			return got
		}
	}
	return got
}

func keep(coins []SymbolCoin, ok func(SymbolCoin) bool) []SymbolCoin {
	var kept []SymbolCoin
	for _, c := range coins {
		if ok(c) {
			kept = append(kept, c)
		}
	}
	return kept
}
