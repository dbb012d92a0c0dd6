package sources

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
)

// coinPaprika serves the free interface v1 as described on https://docs.coinpaprika.com: tickers, coins, one
// coin, and all of them together.
func coinPaprika() Source {
	return Source{
		Slug: "coinpaprika", Base: "/v1",
		Requests: 10, Per: time.Second, Metered: true, // 10 a second for each address, and 20,000 a month
		MaxAge: time.Minute,
		Throttled: func(w http.ResponseWriter) {
			provider.Respond(w, http.StatusTooManyRequests, map[string]string{"error": "too many requests"})
		},
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			p := &paprika{Reference: r, byID: map[string]*market.Coin{}}
			p.reporter = &market.Reporter{Catalogue: r.catalogue, Seed: r.world.Seed.Of("coinpaprika"), Spread: 0.0008}
			for _, c := range r.catalogue.Coins {
				p.byID[paprikaID(c)] = c
			}
			return map[string]http.HandlerFunc{
				"GET /v1/tickers": p.tickers, "GET /v1/tickers/{id}": p.ticker,
				"GET /v1/coins": p.coins, "GET /v1/coins/{id}": p.coin, "GET /v1/global": p.global,
			}
		},
	}
}

type paprika struct {
	*Reference
	reporter *market.Reporter
	byID     map[string]*market.Coin
}

func (p *paprika) unknown(w http.ResponseWriter) {
	provider.Respond(w, http.StatusNotFound, map[string]string{"error": "id not found"})
}

type paprikaTicker struct {
	ID          string                  `json:"id"`
	Name        string                  `json:"name"`
	Symbol      string                  `json:"symbol"`
	Rank        int                     `json:"rank"`
	Circulating float64                 `json:"circulating_supply"`
	Total       float64                 `json:"total_supply"`
	Max         float64                 `json:"max_supply"`
	Beta        float64                 `json:"beta_value"`
	First       string                  `json:"first_data_at"`
	Updated     string                  `json:"last_updated"`
	Quotes      map[string]paprikaQuote `json:"quotes"`
}

type paprikaQuote struct {
	Price        float64  `json:"price"`
	Volume       float64  `json:"volume_24h"`
	VolumeChange float64  `json:"volume_24h_change_24h"`
	Cap          float64  `json:"market_cap"`
	CapChange    float64  `json:"market_cap_change_24h"`
	Change15m    float64  `json:"percent_change_15m"`
	Change30m    float64  `json:"percent_change_30m"`
	Change1h     float64  `json:"percent_change_1h"`
	Change6h     float64  `json:"percent_change_6h"`
	Change12h    float64  `json:"percent_change_12h"`
	Change24h    float64  `json:"percent_change_24h"`
	Change7d     float64  `json:"percent_change_7d"`
	Change30d    float64  `json:"percent_change_30d"`
	Change1y     float64  `json:"percent_change_1y"`
	Highest      *float64 `json:"ath_price"`
	HighestDate  *string  `json:"ath_date"`
	FromHighest  *float64 `json:"percent_from_price_ath"`
}

const (
	paprikaTime = "2006-01-02T15:04:05Z"
	paprikaDay  = "2006-01-02T00:00:00Z"
)

func (p *paprika) tickers(w http.ResponseWriter, r *http.Request) {
	if q := cmp.Or(r.URL.Query().Get("quotes"), "USD"); q != "USD" { // of which no adapter here has a use
		provider.Respond(w, http.StatusBadRequest, map[string]string{"error": "quotes parameter should be one of: USD"})
		return
	}
	b := p.reporter.Snapshot(p.Now())
	rows := []paprikaTicker{}
	for _, place := range b.Ranked {
		rows = append(rows, p.row(b, p.catalogue.Coins[place]))
	}
	for place, c := range p.catalogue.Coins {
		if b.Rank[place] == 0 && b.Prices[place] > 0 {
			rows = append(rows, p.row(b, c))
		}
	}
	provider.Respond(w, http.StatusOK, rows)
}

func (p *paprika) ticker(w http.ResponseWriter, r *http.Request) {
	b, c := p.reporter.Snapshot(p.Now()), p.byID[r.PathValue("id")]
	if c == nil || b.Prices[c.Place] == 0 {
		p.unknown(w)
		return
	}
	provider.Respond(w, http.StatusOK, p.row(b, c))
}

func (p *paprika) row(b *market.Snapshot, c *market.Coin) paprikaTicker {
	f, at, price := b.FiguresOf(c), b.At[c.Place], b.Prices[c.Place]
	change := func(span int) float64 { return hundredths(f.Change[span]) }
	q := paprikaQuote{
		Price: price, Volume: f.Volume, VolumeChange: hundredths(100 * (f.Volume/f.VolumeBefore - 1)),
		Cap: math.Round(b.Caps[c.Place]), Change15m: change(market.Span15m), Change30m: change(market.Span30m), Change1h: change(market.Span1h),
		Change6h: change(market.Span6h), Change12h: change(market.Span12h), Change24h: change(market.Span24h), Change7d: change(market.Span7d),
		Change30d: change(market.Span30d), Change1y: change(market.Span1y),
	}
	if f.CapBefore > 0 {
		q.CapChange = hundredths(100 * (b.Caps[c.Place]/f.CapBefore - 1))
	}
	if c.Seed.At(60)%20 > 0 || c.Rank <= 100 { // of a few it does not know them
		highest, off, when := f.ATH, hundredths(100*(price/f.ATH-1)), provider.SpellTime(f.ATHAt, paprikaTime)
		q.Highest, q.FromHighest, q.HighestDate = &highest, &off, &when
	}
	return paprikaTicker{
		ID: paprikaID(c), Name: c.Name, Symbol: c.Symbol, Rank: b.Rank[c.Place],
		Circulating: f.Circulating, Total: math.Round(f.Total), Max: f.Max, Beta: digits(0.4+1.2*c.Seed.Unit(61), 6),
		First: provider.SpellTime(c.Born, paprikaDay), Updated: provider.SpellTime(at, paprikaTime), Quotes: map[string]paprikaQuote{"USD": q},
	}
}

// hundredths rounds a percentage to two decimals; what is not known is served as 0.
func hundredths(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return math.Round(100*x) / 100
}

type paprikaCoin struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Symbol string `json:"symbol"`
	Rank   int    `json:"rank"`
	New    bool   `json:"is_new"`
	Active bool   `json:"is_active"`
	Type   string `json:"type"`
}

// newFor is how long a coin counts as new.
const newFor = 14 * 24 * time.Hour

func (p *paprika) described(b *market.Snapshot, c *market.Coin) paprikaCoin {
	kind := "token"
	if c.Native {
		kind = "coin"
	}
	at := b.At[c.Place]
	return paprikaCoin{
		ID: paprikaID(c), Name: c.Name, Symbol: c.Symbol, Rank: b.Rank[c.Place],
		New: ageOf(c, at) < newFor, Active: !c.Gone && !c.Unpriced, Type: kind,
	}
}

func (p *paprika) coins(w http.ResponseWriter, _ *http.Request) {
	b := p.reporter.Snapshot(p.Now())
	rows := []paprikaCoin{}
	for place, c := range p.catalogue.Coins {
		if c.Born <= b.At[place] {
			rows = append(rows, p.described(b, c))
		}
	}
	// Those without a rank come last.
	slices.SortStableFunc(rows, func(x, y paprikaCoin) int {
		return cmp.Or(cmp.Compare(min(x.Rank, 1), min(y.Rank, 1))*-1, cmp.Compare(x.Rank, y.Rank))
	})
	provider.Respond(w, http.StatusOK, rows)
}

type paprikaTag struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Coins int    `json:"coin_counter"`
	ICOs  int    `json:"ico_counter"`
}

type paprikaLink struct {
	URL   string         `json:"url"`
	Type  string         `json:"type"`
	Stats map[string]int `json:"stats,omitempty"`
}

func (p *paprika) coin(w http.ResponseWriter, r *http.Request) {
	b, c := p.reporter.Snapshot(p.Now()), p.byID[r.PathValue("id")]
	if c == nil || c.Born > b.At[c.Place] {
		p.unknown(w)
		return
	}
	row, at := p.described(b, c), b.At[c.Place]
	tags := []paprikaTag{}
	for _, name := range categoriesAt(c, at) {
		tags = append(tags, paprikaTag{ID: market.Slug(name), Name: name, Coins: 10 + len(name)*7, ICOs: len(name)})
	}
	last := at
	if !row.Active {
		last = market.SupplyFrom - int64(c.Seed.Unit(62)*700)*market.Day
	}
	repository := int(60_000 / math.Pow(float64(c.Rank), 0.7) * (0.3 + c.Seed.Unit(54)))
	body := map[string]any{
		"id": row.ID, "name": row.Name, "symbol": row.Symbol, "rank": row.Rank, "is_new": row.New, "is_active": row.Active, "type": row.Type,
		"logo": "https://images.example.invalid/coin/" + row.ID + "/logo.png", "tags": tags,
		"team":        []map[string]string{{"id": c.ID + "-founder", "name": "Founder of " + c.Name, "position": "Founder"}},
		"description": descriptionOf(c), "message": "", "open_source": true, "started_at": provider.SpellTime(c.Born, paprikaDay),
		"development_status": "Working product", "hardware_wallet": c.Rank < 300, "proof_type": cmp.Or(text(algorithmOf(c)), "Not mineable"),
		"org_structure": "Decentralized", "hash_algorithm": text(algorithmOf(c)),
		"links": map[string][]string{
			"explorer": {siteOf(c, "explorer"), siteOf(c, "blocks")}, "reddit": {siteOf(c, "boards")}, "source_code": {siteOf(c, "code")}, "website": {siteOf(c, "www")},
		},
		"links_extended": []paprikaLink{
			{URL: siteOf(c, "explorer"), Type: "explorer"}, {URL: siteOf(c, "forum"), Type: "message_board"},
			{URL: siteOf(c, "boards"), Type: "reddit", Stats: map[string]int{"subscribers": int(3e6 / float64(c.Rank))}},
			{URL: siteOf(c, "code"), Type: "source_code", Stats: map[string]int{"contributors": repository / 70, "stars": repository}},
			{URL: siteOf(c, "social"), Type: "twitter", Stats: map[string]int{"followers": int(8e6 / float64(c.Rank))}}, {URL: siteOf(c, "www"), Type: "website"},
		},
		"whitepaper":    map[string]any{"link": siteOf(c, "papers"), "thumbnail": nil},
		"first_data_at": provider.SpellTime(c.Born, paprikaDay), "last_data_at": provider.SpellTime(last, paprikaTime),
	}
	if c.Kind == schemas.KindToken && len(c.Platforms) > 0 {
		var contracts []map[string]string
		for _, on := range c.Platforms {
			contracts = append(contracts, map[string]string{"contract": on.Address, "platform": paprikaPlatform(on.Chain), "type": "ERC20"})
		}
		body["contracts"] = contracts
	}
	provider.Respond(w, http.StatusOK, body)
}

// paprikaPlatform is the id of the coin whose chain it is.
func paprikaPlatform(chain string) string {
	switch chain {
	case "ethereum":
		return "eth-ethereum"
	case "binance-smart-chain":
		return "bnb-binance-coin"
	case "solana":
		return "sol-solana"
	}
	return chain
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (p *paprika) global(w http.ResponseWriter, _ *http.Request) {
	b := p.reporter.Snapshot(p.Now())
	volume, capBefore, volumeBefore := b.Totals()
	provider.Respond(w, http.StatusOK, map[string]any{
		"market_cap_usd": int64(b.Cap), "volume_24h_usd": int64(volume), "bitcoin_dominance_percentage": hundredths(b.Dominance("bitcoin")),
		"cryptocurrencies_number": b.Listed, "market_cap_ath_value": int64(b.Cap * 1.4), "market_cap_ath_date": "2025-10-07T00:00:00Z",
		"volume_24h_ath_value": int64(volume * 2.2), "volume_24h_ath_date": "2025-10-11T00:00:00Z",
		"volume_24h_percent_from_ath": hundredths(100/2.2 - 100), "volume_24h_percent_to_ath": hundredths(100 * 2.2),
		"market_cap_change_24h": hundredths(100 * (b.Cap/capBefore - 1)), "volume_24h_change_24h": hundredths(100 * (volume/volumeBefore - 1)),
		"last_updated": b.Minute * 60,
	})
}

// paprikaID is how CoinPaprika spells it: the symbol and the name.
func paprikaID(n *market.Coin) string { return market.Slug(n.Symbol) + "-" + market.Slug(n.Name) }
