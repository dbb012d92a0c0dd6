package pages

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/marketlog/marketlog/query"
)

const (
	// coinsShown are the rows of the table, the most that the API answers at once; firstRows are those that are there without the
	// script, which a screen or two show.
	coinsShown = 250
	firstRows  = 100
	// linePoints are the points of a line of seven days: a picture of 120 pixels shows no more.
	linePoints = 42
)

// priceRow is a coin in the table.
type priceRow struct {
	ID     string   `json:"id"`
	Symbol string   `json:"symbol"`
	Name   string   `json:"name"`
	Rank   int      `json:"rank,omitempty"`
	Price  float64  `json:"price"`
	Source string   `json:"source"`
	H1     *float64 `json:"h1,omitempty"`
	H24    *float64 `json:"h24,omitempty"`
	D7     *float64 `json:"d7,omitempty"`
	Cap    *float64 `json:"cap,omitempty"`
	Volume *float64 `json:"volume,omitempty"`
	// Line is of the closing prices of seven days.
	Line       []json.Number `json:"line,omitempty"`
	Providers  *int          `json:"providers,omitempty"`
	Rejected   *int          `json:"rejected,omitempty"`
	Confidence *float64      `json:"confidence,omitempty"`
	Stale      bool          `json:"stale,omitempty"`
}

// pricesView is the page of prices.
type pricesView struct {
	Rows   []priceRow      `json:"rows"`
	Market json.RawMessage `json:"market,omitempty"`
	// Young means that there are prices and no market rows yet: the page asks again by itself.
	Young bool `json:"young,omitempty"`
}

// First are the rows that are there without the script.
func (v *pricesView) First() []priceRow { return v.Rows[:min(firstRows, len(v.Rows))] }

// What the page reads of the API's answers.
type (
	tableAnswer struct {
		Data []struct {
			ID                       string
			Symbol                   string
			Name                     string
			CurrentPrice             float64
			PriceSource              string
			MarketCap                *float64
			MarketCapRank            int
			TotalVolume              *float64
			PriceChangePercentage1h  *float64
			PriceChangePercentage24h *float64
			PriceChangePercentage7d  *float64
			Sparkline7d              []float64
		}
	}
	summaryAnswer struct {
		Data struct {
			Prices map[string]struct {
				Symbol, CoinID, PriceSource string
				Price                       float64
				Volume24h                   *float64
			}
		}
	}
	listAnswer struct {
		Prices []struct {
			CoinID     string
			PriceUSD   float64
			IsStale    bool
			Providers  *int
			Rejected   *int
			Confidence *float64
		}
	}
)

// tableCache keeps the rows of the table's last answer, which is the same for a minute.
type tableCache struct {
	mu   sync.Mutex
	of   string // the answer
	rows []priceRow
}

// get returns a copy of the rows of an answer, made by the first that asks.
func (t *tableCache) get(body json.RawMessage, answer *tableAnswer) ([]priceRow, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != string(body) {
		if err := json.Unmarshal(body, answer); err != nil {
			return nil, err
		}
		t.of, t.rows = string(body), rowsOf(answer)
	}
	return append([]priceRow(nil), t.rows...), nil
}

func rowsOf(answer *tableAnswer) []priceRow {
	rows := make([]priceRow, len(answer.Data))
	for i, d := range answer.Data {
		rows[i] = priceRow{ID: d.ID, Symbol: strings.ToUpper(d.Symbol), Name: d.Name, Rank: d.MarketCapRank, Price: d.CurrentPrice, Source: d.PriceSource,
			H1: d.PriceChangePercentage1h, H24: d.PriceChangePercentage24h, D7: d.PriceChangePercentage7d, Cap: d.MarketCap, Volume: d.TotalVolume,
			Line: line(d.Sparkline7d)}
	}
	return rows
}

// line takes evenly spaced points, the last one always, with as many digits as a picture shows.
func line(closes []float64) []json.Number {
	if len(closes) < 2 {
		return nil
	}
	n := min(linePoints, len(closes))
	points := make([]json.Number, n)
	for i := range points {
		close := closes[i*(len(closes)-1)/(n-1)]
		points[i] = json.Number(strconv.FormatFloat(close, 'g', 5, 64))
	}
	return points
}

// sendPrices answers /: all coins, as a page or as a text for terminals.
func (u *Unit) sendPrices(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "Prices")
	if !ok {
		return err
	}
	v, err := u.prices(r, coinsShown)
	if err != nil {
		return u.fail(r.ctx, err)
	}
	if !wantsPage(r.ctx) {
		return u.sendPricesText(c, v)
	}
	return u.show(r.ctx, http.StatusOK, view{Page: pagePrices, Title: "Prices", About: "Prices of " + strconv.Itoa(len(v.Rows)) + " coins, each the median over venues.", Data: v, Prices: v})
}

// prices asks for what the table shows.
func (u *Unit) prices(r begun, count int) (*pricesView, error) {
	answer, err := u.server.Ask(r.ctx, r.who, "listCoinMarketTable", map[string]string{"per_page": strconv.Itoa(count), "sparkline": "true"}, r.now)
	if err != nil {
		return nil, err
	}
	var table tableAnswer
	v := &pricesView{}
	if v.Rows, err = u.table.get(answer.Body.JSON(), &table); err != nil {
		return nil, err
	}
	var summary struct{}
	if v.Market, err = u.ask(r, "getMarketSummary", nil, &summary); optional(err) != nil {
		return nil, err
	}
	if len(v.Rows) == 0 {
		v.Young = true
		if v.Rows, err = u.young(r, count); err != nil {
			return nil, err
		}
	}
	if err := optional(u.priced(r, v.Rows)); err != nil {
		return nil, err
	}
	return v, nil
}

// young are the coins that have a price before the first minute of an instance has closed, and with it the first rows of the
// market: the most traded ones first.
func (u *Unit) young(r begun, count int) ([]priceRow, error) {
	var summary summaryAnswer
	if _, err := u.ask(r, "summarizePrices", nil, &summary); err != nil {
		return nil, err
	}
	var rows []priceRow
	for _, p := range summary.Data.Prices {
		rows = append(rows, priceRow{ID: p.CoinID, Symbol: p.Symbol, Name: p.Symbol, Price: p.Price, Source: p.PriceSource, Volume: p.Volume24h})
	}
	if len(rows) == 0 {
		return nil, query.Starting("no coin has a price yet")
	}
	volume := func(row priceRow) float64 {
		if row.Volume == nil {
			return 0
		}
		return *row.Volume
	}
	slices.SortFunc(rows, func(a, b priceRow) int { return cmp.Or(cmp.Compare(volume(b), volume(a)), cmp.Compare(a.ID, b.ID)) })
	return rows[:min(count, len(rows))], nil
}

// priced adds the current prices of coins that venues trade, and how they came about.
func (u *Unit) priced(r begun, rows []priceRow) error {
	at := make(map[string]*priceRow, len(rows))
	var ids []string
	for i := range rows {
		at[rows[i].ID] = &rows[i]
		ids = append(ids, rows[i].ID)
	}
	var list listAnswer
	if _, err := u.ask(r, "listPrices", map[string]string{"symbols": strings.Join(ids, ",")}, &list); err != nil {
		return err
	}
	for _, p := range list.Prices {
		if row := at[p.CoinID]; row != nil {
			row.Price, row.Stale, row.Providers, row.Rejected, row.Confidence = p.PriceUSD, p.IsStale, p.Providers, p.Rejected, p.Confidence
		}
	}
	return nil
}
