package simulator

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

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
			respond(w, http.StatusTooManyRequests, map[string]string{"error": "too many requests"})
		},
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			p := &paprika{Reference: r, byID: map[string]*coin{}}
			p.teller = &marketReporter{catalogue: r.catalogue, seed: r.world.seed.of("coinpaprika"), spread: 0.0008}
			for _, c := range r.catalogue.coins {
				p.byID[c.paprikaID()] = c
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
	teller *marketReporter
	byID   map[string]*coin
}

func (p *paprika) unknown(w http.ResponseWriter) {
	respond(w, http.StatusNotFound, map[string]string{"error": "id not found"})
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
		respond(w, http.StatusBadRequest, map[string]string{"error": "quotes parameter should be one of: USD"})
		return
	}
	b := p.teller.board(p.Now())
	rows := []paprikaTicker{}
	for _, place := range b.ranked {
		rows = append(rows, p.row(b, p.catalogue.coins[place]))
	}
	for place, c := range p.catalogue.coins {
		if b.rank[place] == 0 && b.prices[place] > 0 {
			rows = append(rows, p.row(b, c))
		}
	}
	respond(w, http.StatusOK, rows)
}

func (p *paprika) ticker(w http.ResponseWriter, r *http.Request) {
	b, c := p.teller.board(p.Now()), p.byID[r.PathValue("id")]
	if c == nil || b.prices[c.place] == 0 {
		p.unknown(w)
		return
	}
	respond(w, http.StatusOK, p.row(b, c))
}

func (p *paprika) row(b *marketSnapshot, c *coin) paprikaTicker {
	f, at, price := b.of(c), b.at[c.place], b.prices[c.place]
	change := func(span int) float64 { return hundredths(f.change[span]) }
	q := paprikaQuote{
		Price: price, Volume: f.volume, VolumeChange: hundredths(100 * (f.volume/f.volumeBefore - 1)),
		Cap: math.Round(b.caps[c.place]), Change15m: change(spanQuarter), Change30m: change(spanHalf), Change1h: change(span1h),
		Change6h: change(span6h), Change12h: change(span12h), Change24h: change(span24h), Change7d: change(span7d),
		Change30d: change(span30d), Change1y: change(span1y),
	}
	if f.capBefore > 0 {
		q.CapChange = hundredths(100 * (b.caps[c.place]/f.capBefore - 1))
	}
	if c.seed.at(60)%20 > 0 || c.rank <= 100 { // of a few it does not know them
		highest, off, when := f.ath, hundredths(100*(price/f.ath-1)), spellTime(f.athAt, paprikaTime)
		q.Highest, q.FromHighest, q.HighestDate = &highest, &off, &when
	}
	return paprikaTicker{
		ID: c.paprikaID(), Name: c.name, Symbol: c.symbol, Rank: b.rank[c.place],
		Circulating: f.circulating, Total: math.Round(f.total), Max: f.max, Beta: digits(0.4+1.2*c.seed.unit(61), 6),
		First: spellTime(c.born, paprikaDay), Updated: spellTime(at, paprikaTime), Quotes: map[string]paprikaQuote{"USD": q},
	}
}

// hundredths rounds a percentage to two decimals; what is not known is told as 0.
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

func (p *paprika) described(b *marketSnapshot, c *coin) paprikaCoin {
	kind := "token"
	if c.native {
		kind = "coin"
	}
	at := b.at[c.place]
	return paprikaCoin{
		ID: c.paprikaID(), Name: c.name, Symbol: c.symbol, Rank: b.rank[c.place],
		New: c.age(at) < newFor, Active: !c.gone && !c.unpriced, Type: kind,
	}
}

func (p *paprika) coins(w http.ResponseWriter, _ *http.Request) {
	b := p.teller.board(p.Now())
	rows := []paprikaCoin{}
	for place, c := range p.catalogue.coins {
		if c.born <= b.at[place] {
			rows = append(rows, p.described(b, c))
		}
	}
	// Those without a rank come last.
	slices.SortStableFunc(rows, func(x, y paprikaCoin) int {
		return cmp.Or(cmp.Compare(min(x.Rank, 1), min(y.Rank, 1))*-1, cmp.Compare(x.Rank, y.Rank))
	})
	respond(w, http.StatusOK, rows)
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
	b, c := p.teller.board(p.Now()), p.byID[r.PathValue("id")]
	if c == nil || c.born > b.at[c.place] {
		p.unknown(w)
		return
	}
	row, at := p.described(b, c), b.at[c.place]
	tags := []paprikaTag{}
	for _, name := range c.categoriesAt(at) {
		tags = append(tags, paprikaTag{ID: slug(name), Name: name, Coins: 10 + len(name)*7, ICOs: len(name)})
	}
	last := at
	if !row.Active {
		last = supplyFrom - int64(c.seed.unit(62)*700)*day
	}
	repository := int(60_000 / math.Pow(float64(c.rank), 0.7) * (0.3 + c.seed.unit(54)))
	said := map[string]any{
		"id": row.ID, "name": row.Name, "symbol": row.Symbol, "rank": row.Rank, "is_new": row.New, "is_active": row.Active, "type": row.Type,
		"logo": "https://images.example.invalid/coin/" + row.ID + "/logo.png", "tags": tags,
		"team":        []map[string]string{{"id": c.id + "-founder", "name": "Founder of " + c.name, "position": "Founder"}},
		"description": c.description(), "message": "", "open_source": true, "started_at": spellTime(c.born, paprikaDay),
		"development_status": "Working product", "hardware_wallet": c.rank < 300, "proof_type": cmp.Or(text(c.algorithm()), "Not mineable"),
		"org_structure": "Decentralized", "hash_algorithm": text(c.algorithm()),
		"links": map[string][]string{
			"explorer": {c.site("explorer"), c.site("blocks")}, "reddit": {c.site("boards")}, "source_code": {c.site("code")}, "website": {c.site("www")},
		},
		"links_extended": []paprikaLink{
			{URL: c.site("explorer"), Type: "explorer"}, {URL: c.site("forum"), Type: "message_board"},
			{URL: c.site("boards"), Type: "reddit", Stats: map[string]int{"subscribers": int(3e6 / float64(c.rank))}},
			{URL: c.site("code"), Type: "source_code", Stats: map[string]int{"contributors": repository / 70, "stars": repository}},
			{URL: c.site("social"), Type: "twitter", Stats: map[string]int{"followers": int(8e6 / float64(c.rank))}}, {URL: c.site("www"), Type: "website"},
		},
		"whitepaper":    map[string]any{"link": c.site("papers"), "thumbnail": nil},
		"first_data_at": spellTime(c.born, paprikaDay), "last_data_at": spellTime(last, paprikaTime),
	}
	if c.kind == schemas.KindToken && len(c.platforms) > 0 {
		var contracts []map[string]string
		for _, on := range c.platforms {
			contracts = append(contracts, map[string]string{"contract": on.address, "platform": paprikaPlatform(on.chain), "type": "ERC20"})
		}
		said["contracts"] = contracts
	}
	respond(w, http.StatusOK, said)
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
	b := p.teller.board(p.Now())
	volume, capBefore, volumeBefore := b.totals()
	respond(w, http.StatusOK, map[string]any{
		"market_cap_usd": int64(b.cap), "volume_24h_usd": int64(volume), "bitcoin_dominance_percentage": hundredths(b.dominance("bitcoin")),
		"cryptocurrencies_number": b.listed, "market_cap_ath_value": int64(b.cap * 1.4), "market_cap_ath_date": "2025-10-07T00:00:00Z",
		"volume_24h_ath_value": int64(volume * 2.2), "volume_24h_ath_date": "2025-10-11T00:00:00Z",
		"volume_24h_percent_from_ath": hundredths(100/2.2 - 100), "volume_24h_percent_to_ath": hundredths(100 * 2.2),
		"market_cap_change_24h": hundredths(100 * (b.cap/capBefore - 1)), "volume_24h_change_24h": hundredths(100 * (volume/volumeBefore - 1)),
		"last_updated": b.minute * 60,
	})
}
