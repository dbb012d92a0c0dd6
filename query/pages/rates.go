package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// categoryOfPrices is beside the rates in the API's answers; the pages of prices show it.
const categoryOfPrices = "price"

// ratesView is the page of what coins yield and cost, of all coins.
type ratesView struct {
	// Summary are the API's rows of a coin and category, without prices.
	Summary   []rateSummary   `json:"summary"`
	Benchmark json.RawMessage `json:"benchmark,omitempty"`

	Median *float64 `json:"-"` // of the benchmark
}

// rateSummary is what providers report of a coin in a category, in percent a year.
type rateSummary struct {
	Symbol        string  `json:"symbol"`
	CoinID        string  `json:"coinId"`
	Category      string  `json:"category"`
	MinRate       float64 `json:"minRate"`
	MaxRate       float64 `json:"maxRate"`
	MedianRate    float64 `json:"medianRate"`
	ProviderCount int     `json:"providerCount"`
	LatestUpdate  string  `json:"latestUpdate"`
}

// rateOfCoin is a coin with what there is of it, by category; nil where nobody reports it.
type rateOfCoin struct {
	Symbol, CoinID              string
	Lending, Staking, Borrowing *rateSummary
}

// Coins are the rows of a table: the API's order of the category in which a coin comes first.
func (v *ratesView) Coins() []*rateOfCoin {
	var rows []*rateOfCoin
	byCoin := map[string]*rateOfCoin{}
	for i := range v.Summary {
		s := &v.Summary[i]
		row := byCoin[s.CoinID]
		if row == nil {
			row = &rateOfCoin{Symbol: s.Symbol, CoinID: s.CoinID}
			byCoin[s.CoinID] = row
			rows = append(rows, row)
		}
		switch s.Category {
		case "lending":
			row.Lending = s
		case "staking":
			row.Staking = s
		case "borrowing":
			row.Borrowing = s
		}
	}
	return rows
}

// rateView is the page of the rates of one coin.
type rateView struct {
	Symbol  string          `json:"symbol"`
	CoinID  string          `json:"coinId"`
	Entries []rateEntry     `json:"rates"`
	Earn    json.RawMessage `json:"earn,omitempty"`
}

// rateEntry is what one provider pays or asks.
type rateEntry struct {
	ID           string        `json:"id"`
	Provider     string        `json:"provider"`
	ProviderName string        `json:"providerName,omitempty"`
	Category     string        `json:"category"`
	Rate         float64       `json:"rate"`
	Metadata     *rateMetadata `json:"metadata,omitempty"`
	LastUpdated  string        `json:"lastUpdated"`
}

// Name is that of the provider, as people know it.
func (e *rateEntry) Name() string {
	if e.ProviderName != "" {
		return e.ProviderName
	}
	return e.Provider
}

// Reported is the number as the source reported it, with its unit.
func (e *rateEntry) Reported() string {
	if e.Metadata == nil || e.Metadata.Raw == "" {
		return ""
	}
	reported := e.Metadata.Raw + " " + strings.ReplaceAll(e.Metadata.RawUnit, "_", " ")
	if e.Metadata.Compounding != "" {
		reported += ", compounded " + e.Metadata.Compounding
	}
	return reported
}

// rateMetadata is what the page shows of what else is known.
type rateMetadata struct {
	Source      string   `json:"source,omitempty"`
	Chain       string   `json:"chain,omitempty"`
	Name        string   `json:"name,omitempty"`
	Term        string   `json:"term,omitempty"`
	TVLUSD      *float64 `json:"tvlUsd,omitempty"`
	RewardAPY   *float64 `json:"rewardApy,omitempty"`
	Promo       bool     `json:"promo,omitempty"`
	Raw         string   `json:"raw,omitempty"`
	RawUnit     string   `json:"rawUnit,omitempty"`
	Compounding string   `json:"compounding,omitempty"`
}

// sendRates answers /rates.
func (u *Unit) sendRates(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "Rates")
	if !ok {
		return err
	}
	v := &ratesView{Summary: []rateSummary{}}
	var answer struct {
		Data struct{ Summary []rateSummary }
	}
	if _, err := u.ask(r, "summarizeRates", nil, &answer); err != nil {
		return u.fail(r.ctx, err)
	}
	for _, row := range answer.Data.Summary {
		if row.Category != categoryOfPrices {
			v.Summary = append(v.Summary, row)
		}
	}
	var benchmark struct{ Data struct{ Median *float64 } }
	if v.Benchmark, err = u.ask(r, "getEarnBenchmark", nil, &benchmark); optional(err) != nil {
		return err
	}
	v.Median = benchmark.Data.Median
	if !wantsPage(r.ctx) {
		return u.sendRatesText(c, v)
	}
	return u.show(r.ctx, http.StatusOK, view{Page: pageRates, Title: "Rates", About: "What lending, staking and borrowing of coins yields and costs, by coin.", Data: v, Rates: v})
}

// earnShown are the products of a coin that the page of its rates asks for.
const earnShown = "100"

// sendRate answers /rates/{symbol}, by symbol or id of a coin.
func (u *Unit) sendRate(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "Rates")
	if !ok {
		return err
	}
	var answer struct {
		Data struct {
			Symbol, CoinID string
			Rates          []rateEntry
		}
	}
	if _, err := u.ask(r, "getRates", map[string]string{"symbol": param(c, "symbol")}, &answer); err != nil {
		return u.fail(r.ctx, err)
	}
	v := &rateView{Symbol: answer.Data.Symbol, CoinID: answer.Data.CoinID, Entries: []rateEntry{}}
	for _, e := range answer.Data.Rates {
		if e.Category != categoryOfPrices {
			v.Entries = append(v.Entries, e)
		}
	}
	var products struct{}
	if v.Earn, err = u.ask(r, "listEarnProducts", map[string]string{"symbol": v.CoinID, "limit": earnShown}, &products); optional(err) != nil {
		return err
	}
	if !wantsPage(r.ctx) {
		return u.sendRateText(c, v)
	}
	return u.show(r.ctx, http.StatusOK, view{Page: pageRates, Title: v.Symbol + " rates", About: "What providers pay and ask for " + v.Symbol + ".", Data: v, Rate: v})
}

// textRates are the rows of a terminal's table of rates.
const textRates = 40

// sendRatesText writes the best and the middle rate of each coin.
func (u *Unit) sendRatesText(c *fiber.Ctx, v *ratesView) error {
	w := width(c)
	var b strings.Builder
	u.heading(&b, "rates, percent a year (APY)", w)
	line := func(cells ...string) {
		text := "  " + column(plain(cells[0], 9), 10, false)
		for _, cell := range cells[1:] {
			text += column(cell, 11, true)
		}
		fmt.Fprintln(&b, strings.TrimRight(plain(text, w), " "))
	}
	line("", "LEND BEST", "MEDIAN", "STAKE BEST", "MEDIAN", "LOAN FROM", "MEDIAN")
	rows := v.Coins()
	for _, row := range rows[:min(textRates, len(rows))] {
		cells := []string{row.Symbol}
		for _, s := range []*rateSummary{row.Lending, row.Staking, row.Borrowing} {
			switch {
			case s == nil:
				cells = append(cells, "–", "–")
			case s.Category == "borrowing":
				cells = append(cells, formatRate(s.MinRate), formatRate(s.MedianRate))
			default:
				cells = append(cells, formatRate(s.MaxRate), formatRate(s.MedianRate))
			}
		}
		line(cells...)
	}
	if len(rows) == 0 {
		b.WriteString("  no source has reported a rate yet\n")
	}
	if v.Median != nil {
		fmt.Fprintf(&b, "\n  flexible USD stablecoin deposits, median: %s\n", formatRate(v.Median))
	}
	fmt.Fprintf(&b, "\n  one coin with its providers: /rates/usdc\n")
	return u.sendText(c.Context(), http.StatusOK, b.String())
}

// sendRateText writes what each provider pays or asks for a coin.
func (u *Unit) sendRateText(c *fiber.Ctx, v *rateView) error {
	w := width(c)
	reportedWidth := max(10, w-62)
	var b strings.Builder
	u.heading(&b, v.Symbol+" rates, percent a year (APY)", w)
	line := func(cells ...string) {
		text := "  " + column(plain(cells[0], 10), 11, false) + column(plain(cells[1], 20), 21, false) + column(cells[2], 10, true) + "  " +
			column(plain(cells[3], 14), 15, false) + plain(cells[4], reportedWidth)
		fmt.Fprintln(&b, strings.TrimRight(plain(text, w), " "))
	}
	line("", "PROVIDER", "RATE", "SOURCE", "AS REPORTED")
	for i := range v.Entries {
		e := &v.Entries[i]
		source := ""
		if e.Metadata != nil {
			source = e.Metadata.Source
		}
		line(e.Category, e.Name(), formatRate(e.Rate), source, e.Reported())
	}
	if len(v.Entries) == 0 {
		b.WriteString("  no source reports a rate of this coin\n")
	}
	return u.sendText(c.Context(), http.StatusOK, b.String())
}
