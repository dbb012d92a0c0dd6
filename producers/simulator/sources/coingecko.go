package sources

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// coinGecko serves the keyless interface v3 as described on https://docs.coingecko.com/v3.0.1/reference/endpoint-overview:
// the list of coins, their markets, one coin, and all of them together. Coins have no tickers here.
func coinGecko() Source {
	return Source{
		Slug: "coingecko", Base: "/api/v3",
		Requests: 30, Per: time.Minute, Metered: true, // "5 to 15 calls a minute", 30 with a key
		Tagged: true, MaxAge: 30 * time.Second,
		Throttled: func(w http.ResponseWriter) {
			provider.Respond(w, http.StatusTooManyRequests, map[string]any{"status": map[string]any{
				"error_code":    http.StatusTooManyRequests,
				"error_message": "You've exceeded the Rate Limit.",
			}})
		},
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			g := &gecko{Reference: r, reporter: &market.Reporter{Catalogue: r.catalogue, Seed: r.world.Seed.Of("coingecko"), Spread: 0.0004}}
			return map[string]http.HandlerFunc{
				"GET /api/v3/ping": func(w http.ResponseWriter, _ *http.Request) {
					provider.Respond(w, http.StatusOK, map[string]string{"gecko_says": "(V3) To the Moon!"})
				},
				"GET /api/v3/coins/list":    g.list,
				"GET /api/v3/coins/markets": g.markets,
				"GET /api/v3/coins/{id}":    g.coin,
				"GET /api/v3/global":        g.global,

				"GET /api/v3/coins/{id}/market_chart": g.chart,
			}
		},
	}
}

type gecko struct {
	*Reference
	reporter *market.Reporter
}

func (g *gecko) refuse(w http.ResponseWriter, status int, text string) {
	provider.Respond(w, status, map[string]string{"error": text})
}

type geckoListed struct {
	ID        string            `json:"id"`
	Symbol    string            `json:"symbol"`
	Name      string            `json:"name"`
	Platforms map[string]string `json:"platforms,omitzero"`
}

func (g *gecko) list(w http.ResponseWriter, r *http.Request) {
	now, platforms := g.Now().UnixNano(), flag(r, "include_platform", false)
	rows := []geckoListed{}
	for _, c := range g.catalogue.Coins {
		if !c.Listed(now) {
			continue
		}
		row := geckoListed{ID: c.ID, Symbol: strings.ToLower(c.Symbol), Name: c.Name}
		if platforms {
			row.Platforms = map[string]string{}
			for _, p := range c.Platforms {
				row.Platforms[p.Chain] = p.Address
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b geckoListed) int { return cmp.Compare(a.ID, b.ID) })
	provider.Respond(w, http.StatusOK, rows)
}

type geckoMarket struct {
	ID               string            `json:"id"`
	Symbol           string            `json:"symbol"`
	Name             string            `json:"name"`
	Image            string            `json:"image"`
	Price            provider.Nullable `json:"current_price"`
	Cap              provider.Nullable `json:"market_cap"`
	Rank             *int              `json:"market_cap_rank"`
	Diluted          provider.Nullable `json:"fully_diluted_valuation"`
	Volume           provider.Nullable `json:"total_volume"`
	High             provider.Nullable `json:"high_24h"`
	Low              provider.Nullable `json:"low_24h"`
	Change           provider.Nullable `json:"price_change_24h"`
	ChangePercent    provider.Nullable `json:"price_change_percentage_24h"`
	CapChange        provider.Nullable `json:"market_cap_change_24h"`
	CapChangePercent provider.Nullable `json:"market_cap_change_percentage_24h"`
	Circulating      provider.Nullable `json:"circulating_supply"`
	Total            provider.Nullable `json:"total_supply"`
	Max              provider.Nullable `json:"max_supply"`
	Highest          provider.Nullable `json:"ath"`
	FromHighest      provider.Nullable `json:"ath_change_percentage"`
	HighestDate      *string           `json:"ath_date"`
	Lowest           provider.Nullable `json:"atl"`
	FromLowest       provider.Nullable `json:"atl_change_percentage"`
	LowestDate       *string           `json:"atl_date"`
	ReturnOnOffering *struct{}         `json:"roi"`
	Updated          *string           `json:"last_updated"`
	Sparkline        *geckoWeek        `json:"sparkline_in_7d,omitempty"`
	Change1h         geckoSpan         `json:"price_change_percentage_1h_in_currency,omitzero"`
	Change24h        geckoSpan         `json:"price_change_percentage_24h_in_currency,omitzero"`
	Change7d         geckoSpan         `json:"price_change_percentage_7d_in_currency,omitzero"`
	Change14d        geckoSpan         `json:"price_change_percentage_14d_in_currency,omitzero"`
	Change30d        geckoSpan         `json:"price_change_percentage_30d_in_currency,omitzero"`
	Change200d       geckoSpan         `json:"price_change_percentage_200d_in_currency,omitzero"`
	Change1y         geckoSpan         `json:"price_change_percentage_1y_in_currency,omitzero"`
}

// geckoSpan is a change over a span that was asked for.
type geckoSpan struct{ *provider.Nullable }

// MarshalJSON spells the number.
func (s geckoSpan) MarshalJSON() ([]byte, error) { return s.Nullable.MarshalJSON() }

type geckoWeek struct {
	Price []float64 `json:"price"`
}

const (
	geckoTime    = "2006-01-02T15:04:05.000Z"
	geckoPage    = 100
	geckoMaxPage = 250
)

func (g *gecko) markets(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch currency := query.Get("vs_currency"); currency {
	case "usd":
	case "":
		g.refuse(w, http.StatusUnprocessableEntity, "Missing parameter vs_currency")
		return
	default: // of which no adapter here has a use
		g.refuse(w, http.StatusUnprocessableEntity, "invalid vs_currency")
		return
	}
	b := g.reporter.Snapshot(g.Now())
	order := g.order(b, cmp.Or(query.Get("order"), "market_cap_desc"))
	if ids := query.Get("ids"); ids != "" {
		wanted := strings.Split(ids, ",")
		order = slices.DeleteFunc(order, func(c *market.Coin) bool { return !slices.Contains(wanted, c.ID) })
	}
	size, page := geckoPage, 1
	if n, err := strconv.Atoi(query.Get("per_page")); err == nil && n > 0 {
		size = min(n, geckoMaxPage)
	}
	if n, err := strconv.Atoi(query.Get("page")); err == nil && n > 0 {
		page = min(n, len(order)/size+2)
	}
	order = order[min((page-1)*size, len(order)):min(page*size, len(order))]
	asked := strings.Split(query.Get("price_change_percentage"), ",")
	sparkline, shown := flag(r, "sparkline", false), quoted
	if query.Get("precision") == "full" {
		shown = func(x float64) provider.Nullable { return provider.Nullable(x) }
	}
	rows := make([]geckoMarket, len(order))
	for i, c := range order {
		rows[i] = g.market(b, c, shown, asked)
		if sparkline {
			rows[i].Sparkline = g.week(b, c)
		}
	}
	provider.Respond(w, http.StatusOK, rows)
}

// order are the listed coins as a client asks for them; those without the value that they are ordered by come last.
func (g *gecko) order(b *market.Snapshot, by string) []*market.Coin {
	list := make([]*market.Coin, 0, b.Listed)
	for _, i := range b.Ranked {
		list = append(list, g.catalogue.Coins[i])
	}
	for i, c := range g.catalogue.Coins {
		if b.Rank[i] == 0 && c.Listed(b.At[i]) {
			list = append(list, c)
		}
	}
	what, down := strings.CutSuffix(by, "_desc")
	switch what = strings.TrimSuffix(what, "_asc"); what {
	case "volume":
		volumes := make([]float64, len(g.catalogue.Coins))
		for _, c := range list {
			if b.Prices[c.Place] > 0 {
				volumes[c.Place] = c.VolumeOf(b.At[c.Place], b.Prices[c.Place])
			}
		}
		slices.SortStableFunc(list, func(x, y *market.Coin) int { return cmp.Compare(volumes[y.Place], volumes[x.Place]) })
	case "id":
		slices.SortFunc(list, func(x, y *market.Coin) int { return cmp.Compare(y.ID, x.ID) })
	}
	if !down {
		slices.Reverse(list)
	}
	return list
}

// image is where a picture of a coin would be.
func (g *gecko) image(c *market.Coin, size string) string {
	return "https://images.example.invalid/coins/images/" + strconv.Itoa(c.Place+1) + "/" + size + "/" + c.ID + ".png"
}

// market is a row of the list; shown is how prices are rounded.
func (g *gecko) market(b *market.Snapshot, c *market.Coin, shown func(float64) provider.Nullable, spansAsked []string) geckoMarket {
	unknown := provider.Nullable(math.NaN())
	m := geckoMarket{
		ID: c.ID, Symbol: strings.ToLower(c.Symbol), Name: c.Name, Image: g.image(c, "large"),
		Price: unknown, Cap: unknown, Diluted: unknown, Volume: unknown, High: unknown, Low: unknown, Change: unknown,
		ChangePercent: unknown, CapChange: unknown, CapChangePercent: unknown, Circulating: unknown, Total: unknown, Max: unknown,
		Highest: unknown, FromHighest: unknown, Lowest: unknown, FromLowest: unknown,
	}
	change := [len(market.Spans)]float64{}
	for i := range change {
		change[i] = math.NaN()
	}
	if price := b.Prices[c.Place]; price > 0 {
		f := b.FiguresOf(c)
		change = f.Change
		m.Price, m.High, m.Low = shown(price), shown(f.High), shown(f.Low)
		m.Cap, m.Volume = whole(b.Caps[c.Place]), whole(f.Volume)
		m.Diluted = whole(price * cmp.Or(f.Max, f.Total))
		if rank := b.Rank[c.Place]; rank > 0 {
			m.Rank = &rank
		} else {
			m.Diluted = unknown
		}
		m.Change, m.ChangePercent = provider.Nullable(digits(price-f.Before, 12)), percent(change[market.Span24h])
		if b.Caps[c.Place] > 0 {
			m.CapChange, m.CapChangePercent = whole(b.Caps[c.Place]-f.CapBefore), percent(100*(b.Caps[c.Place]/f.CapBefore-1))
		}
		m.Circulating, m.Total = provider.Nullable(f.Circulating), provider.Nullable(f.Total)
		if f.Max > 0 {
			m.Max = provider.Nullable(f.Max)
		}
		m.Highest, m.FromHighest, m.HighestDate = shown(f.ATH), percent(100*(price/f.ATH-1)), moment(f.ATHAt)
		m.Lowest, m.FromLowest, m.LowestDate = shown(f.ATL), percent(100*(price/f.ATL-1)), moment(f.ATLAt)
		m.Updated = moment(b.At[c.Place])
	}
	for _, asked := range spansAsked {
		var to *geckoSpan
		var span int
		switch strings.TrimSpace(asked) {
		case "1h":
			span, to = market.Span1h, &m.Change1h
		case "24h":
			span, to = market.Span24h, &m.Change24h
		case "7d":
			span, to = market.Span7d, &m.Change7d
		case "14d":
			span, to = market.Span14d, &m.Change14d
		case "30d":
			span, to = market.Span30d, &m.Change30d
		case "200d":
			span, to = market.Span200d, &m.Change200d
		case "1y":
			span, to = market.Span1y, &m.Change1y
		default:
			continue
		}
		x := provider.Nullable(change[span])
		to.Nullable = &x
	}
	return m
}

// week are the prices at the last 168 full hours.
func (g *gecko) week(b *market.Snapshot, c *market.Coin) *geckoWeek {
	week := &geckoWeek{Price: []float64{}}
	if b.Prices[c.Place] == 0 {
		return week
	}
	last := market.FloorDiv(b.At[c.Place], market.Hour)
	for h := last - 167; h <= last; h++ {
		if h*market.Hour >= c.Born {
			week.Price = append(week.Price, c.Opening(h)*g.reporter.Factor(c.Place))
		}
	}
	return week
}

func (g *gecko) global(w http.ResponseWriter, _ *http.Request) {
	b := g.reporter.Snapshot(g.Now())
	now := b.Minute * market.Minute
	volume, capBefore, _ := b.Totals()
	caps, volumes, shares := map[string]float64{"usd": b.Cap}, map[string]float64{"usd": volume}, map[string]float64{}
	for _, q := range g.catalogue.Quotes {
		price := q.Price(now)
		caps[q.Code], volumes[q.Code] = b.Cap/price, volume/price
	}
	for _, place := range b.Ranked[:min(10, len(b.Ranked))] {
		shares[strings.ToLower(g.catalogue.Coins[place].Symbol)] = 100 * b.Caps[place] / b.Cap
	}
	provider.Respond(w, http.StatusOK, map[string]any{"data": map[string]any{
		"active_cryptocurrencies": b.Listed, "upcoming_icos": 0, "ongoing_icos": 49, "ended_icos": 3376, "markets": 1297,
		"total_market_cap": caps, "total_volume": volumes, "market_cap_percentage": shares,
		"market_cap_change_percentage_24h_usd": 100 * (b.Cap/capBefore - 1),
		"updated_at":                           now / market.Second,
	}})
}

// quoted rounds a price to what is shown of it.
func quoted(x float64) provider.Nullable {
	if x >= 10_000 {
		return provider.Nullable(math.Round(x))
	}
	return provider.Nullable(digits(x, 6))
}

// whole rounds to USD.
func whole(x float64) provider.Nullable { return provider.Nullable(math.Round(x)) }

// percent rounds to five decimals.
func percent(x float64) provider.Nullable { return provider.Nullable(math.Round(x*1e5) / 1e5) }

func moment(t int64) *string {
	text := provider.SpellTime(t, geckoTime)
	return &text
}
