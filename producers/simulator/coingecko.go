package simulator

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// coinGecko serves the keyless interface v3 as described on https://docs.coingecko.com/v3.0.1/reference/endpoint-overview:
// the list of coins, their markets, one coin, and all of them together. Coins have no tickers here.
func coinGecko() Source {
	return Source{
		Slug: "coingecko", Base: "/api/v3",
		Requests: 30, Per: time.Minute, Metered: true, // "5 to 15 calls a minute", 30 with a key
		Tagged: true, MaxAge: 30 * time.Second,
		Throttled: func(w http.ResponseWriter) {
			respond(w, http.StatusTooManyRequests, map[string]any{"status": map[string]any{
				"error_code":    http.StatusTooManyRequests,
				"error_message": "You've exceeded the Rate Limit.",
			}})
		},
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			g := &gecko{Reference: r, teller: &marketReporter{catalogue: r.catalogue, seed: r.world.seed.of("coingecko"), spread: 0.0004}}
			return map[string]http.HandlerFunc{
				"GET /api/v3/ping": func(w http.ResponseWriter, _ *http.Request) {
					respond(w, http.StatusOK, map[string]string{"gecko_says": "(V3) To the Moon!"})
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
	teller *marketReporter
}

func (g *gecko) refuse(w http.ResponseWriter, status int, text string) {
	respond(w, status, map[string]string{"error": text})
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
	for _, c := range g.catalogue.coins {
		if !c.listed(now) {
			continue
		}
		row := geckoListed{ID: c.id, Symbol: lower(c.symbol), Name: c.name}
		if platforms {
			row.Platforms = map[string]string{}
			for _, p := range c.platforms {
				row.Platforms[p.chain] = p.address
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b geckoListed) int { return cmp.Compare(a.ID, b.ID) })
	respond(w, http.StatusOK, rows)
}

type geckoMarket struct {
	ID               string     `json:"id"`
	Symbol           string     `json:"symbol"`
	Name             string     `json:"name"`
	Image            string     `json:"image"`
	Price            nullable   `json:"current_price"`
	Cap              nullable   `json:"market_cap"`
	Rank             *int       `json:"market_cap_rank"`
	Diluted          nullable   `json:"fully_diluted_valuation"`
	Volume           nullable   `json:"total_volume"`
	High             nullable   `json:"high_24h"`
	Low              nullable   `json:"low_24h"`
	Change           nullable   `json:"price_change_24h"`
	ChangePercent    nullable   `json:"price_change_percentage_24h"`
	CapChange        nullable   `json:"market_cap_change_24h"`
	CapChangePercent nullable   `json:"market_cap_change_percentage_24h"`
	Circulating      nullable   `json:"circulating_supply"`
	Total            nullable   `json:"total_supply"`
	Max              nullable   `json:"max_supply"`
	Highest          nullable   `json:"ath"`
	FromHighest      nullable   `json:"ath_change_percentage"`
	HighestDate      *string    `json:"ath_date"`
	Lowest           nullable   `json:"atl"`
	FromLowest       nullable   `json:"atl_change_percentage"`
	LowestDate       *string    `json:"atl_date"`
	ReturnOnOffering *struct{}  `json:"roi"`
	Updated          *string    `json:"last_updated"`
	Sparkline        *geckoWeek `json:"sparkline_in_7d,omitempty"`
	Change1h         geckoSpan  `json:"price_change_percentage_1h_in_currency,omitzero"`
	Change24h        geckoSpan  `json:"price_change_percentage_24h_in_currency,omitzero"`
	Change7d         geckoSpan  `json:"price_change_percentage_7d_in_currency,omitzero"`
	Change14d        geckoSpan  `json:"price_change_percentage_14d_in_currency,omitzero"`
	Change30d        geckoSpan  `json:"price_change_percentage_30d_in_currency,omitzero"`
	Change200d       geckoSpan  `json:"price_change_percentage_200d_in_currency,omitzero"`
	Change1y         geckoSpan  `json:"price_change_percentage_1y_in_currency,omitzero"`
}

// geckoSpan is a change over a span that was asked for.
type geckoSpan struct{ *nullable }

// MarshalJSON spells the number.
func (s geckoSpan) MarshalJSON() ([]byte, error) { return s.nullable.MarshalJSON() }

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
	b := g.teller.board(g.Now())
	order := g.order(b, cmp.Or(query.Get("order"), "market_cap_desc"))
	if ids := query.Get("ids"); ids != "" {
		wanted := strings.Split(ids, ",")
		order = slices.DeleteFunc(order, func(c *coin) bool { return !slices.Contains(wanted, c.id) })
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
		shown = func(x float64) nullable { return nullable(x) }
	}
	rows := make([]geckoMarket, len(order))
	for i, c := range order {
		rows[i] = g.market(b, c, shown, asked)
		if sparkline {
			rows[i].Sparkline = g.week(b, c)
		}
	}
	respond(w, http.StatusOK, rows)
}

// order are the listed coins as a client asks for them; those without the value that they are ordered by come last.
func (g *gecko) order(b *marketSnapshot, by string) []*coin {
	list := make([]*coin, 0, b.listed)
	for _, i := range b.ranked {
		list = append(list, g.catalogue.coins[i])
	}
	for i, c := range g.catalogue.coins {
		if b.rank[i] == 0 && c.listed(b.at[i]) {
			list = append(list, c)
		}
	}
	what, down := strings.CutSuffix(by, "_desc")
	switch what = strings.TrimSuffix(what, "_asc"); what {
	case "volume":
		volumes := make([]float64, len(g.catalogue.coins))
		for _, c := range list {
			if b.prices[c.place] > 0 {
				volumes[c.place] = c.volumeOf(b.at[c.place], b.prices[c.place])
			}
		}
		slices.SortStableFunc(list, func(x, y *coin) int { return cmp.Compare(volumes[y.place], volumes[x.place]) })
	case "id":
		slices.SortFunc(list, func(x, y *coin) int { return cmp.Compare(y.id, x.id) })
	}
	if !down {
		slices.Reverse(list)
	}
	return list
}

// image is where a picture of a coin would be.
func (g *gecko) image(c *coin, size string) string {
	return "https://images.example.invalid/coins/images/" + strconv.Itoa(c.place+1) + "/" + size + "/" + c.id + ".png"
}

// market is a row of the list; shown is how prices are rounded.
func (g *gecko) market(b *marketSnapshot, c *coin, shown func(float64) nullable, spansAsked []string) geckoMarket {
	unknown := nullable(math.NaN())
	m := geckoMarket{
		ID: c.id, Symbol: lower(c.symbol), Name: c.name, Image: g.image(c, "large"),
		Price: unknown, Cap: unknown, Diluted: unknown, Volume: unknown, High: unknown, Low: unknown, Change: unknown,
		ChangePercent: unknown, CapChange: unknown, CapChangePercent: unknown, Circulating: unknown, Total: unknown, Max: unknown,
		Highest: unknown, FromHighest: unknown, Lowest: unknown, FromLowest: unknown,
	}
	change := [len(spans)]float64{}
	for i := range change {
		change[i] = math.NaN()
	}
	if price := b.prices[c.place]; price > 0 {
		f := b.of(c)
		change = f.change
		m.Price, m.High, m.Low = shown(price), shown(f.high), shown(f.low)
		m.Cap, m.Volume = whole(b.caps[c.place]), whole(f.volume)
		m.Diluted = whole(price * cmp.Or(f.max, f.total))
		if rank := b.rank[c.place]; rank > 0 {
			m.Rank = &rank
		} else {
			m.Diluted = unknown
		}
		m.Change, m.ChangePercent = nullable(digits(price-f.before, 12)), percent(change[span24h])
		if b.caps[c.place] > 0 {
			m.CapChange, m.CapChangePercent = whole(b.caps[c.place]-f.capBefore), percent(100*(b.caps[c.place]/f.capBefore-1))
		}
		m.Circulating, m.Total = nullable(f.circulating), nullable(f.total)
		if f.max > 0 {
			m.Max = nullable(f.max)
		}
		m.Highest, m.FromHighest, m.HighestDate = shown(f.ath), percent(100*(price/f.ath-1)), moment(f.athAt)
		m.Lowest, m.FromLowest, m.LowestDate = shown(f.atl), percent(100*(price/f.atl-1)), moment(f.atlAt)
		m.Updated = moment(b.at[c.place])
	}
	for _, asked := range spansAsked {
		var to *geckoSpan
		var span int
		switch strings.TrimSpace(asked) {
		case "1h":
			span, to = span1h, &m.Change1h
		case "24h":
			span, to = span24h, &m.Change24h
		case "7d":
			span, to = span7d, &m.Change7d
		case "14d":
			span, to = span14d, &m.Change14d
		case "30d":
			span, to = span30d, &m.Change30d
		case "200d":
			span, to = span200d, &m.Change200d
		case "1y":
			span, to = span1y, &m.Change1y
		default:
			continue
		}
		x := nullable(change[span])
		to.nullable = &x
	}
	return m
}

// week are the prices at the last 168 full hours.
func (g *gecko) week(b *marketSnapshot, c *coin) *geckoWeek {
	week := &geckoWeek{Price: []float64{}}
	if b.prices[c.place] == 0 {
		return week
	}
	last := floorDiv(b.at[c.place], hour)
	for h := last - 167; h <= last; h++ {
		if h*hour >= c.born {
			week.Price = append(week.Price, c.opening(h)*g.teller.factor(c.place))
		}
	}
	return week
}

// opening is the price at a full hour.
func (a *asset) opening(index int64) float64 {
	x := 0.0
	for ; a != nil; a = a.parent {
		x += a.path.walk(index)
	}
	return math.Exp(x)
}

func (g *gecko) global(w http.ResponseWriter, _ *http.Request) {
	b := g.teller.board(g.Now())
	now := b.minute * minute
	volume, capBefore, _ := b.totals()
	caps, volumes, shares := map[string]float64{"usd": b.cap}, map[string]float64{"usd": volume}, map[string]float64{}
	for _, q := range g.catalogue.quotes {
		price := q.price(now)
		caps[q.code], volumes[q.code] = b.cap/price, volume/price
	}
	for _, place := range b.ranked[:min(10, len(b.ranked))] {
		shares[lower(g.catalogue.coins[place].symbol)] = 100 * b.caps[place] / b.cap
	}
	respond(w, http.StatusOK, map[string]any{"data": map[string]any{
		"active_cryptocurrencies": b.listed, "upcoming_icos": 0, "ongoing_icos": 49, "ended_icos": 3376, "markets": 1297,
		"total_market_cap": caps, "total_volume": volumes, "market_cap_percentage": shares,
		"market_cap_change_percentage_24h_usd": 100 * (b.cap/capBefore - 1),
		"updated_at":                           now / second,
	}})
}

// quoted rounds a price to what is shown of it.
func quoted(x float64) nullable {
	if x >= 10_000 {
		return nullable(math.Round(x))
	}
	return nullable(digits(x, 6))
}

// whole rounds to USD.
func whole(x float64) nullable { return nullable(math.Round(x)) }

// percent rounds to five decimals.
func percent(x float64) nullable { return nullable(math.Round(x*1e5) / 1e5) }

// digits rounds to n significant digits.
func digits(x float64, n int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', n-1, 64), 64)
	return rounded
}

func moment(t int64) *string {
	text := spellTime(t, geckoTime)
	return &text
}
