package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// pegsShown are the stablecoins of the page, the most stable ones first.
const pegsShown = "200"

// pegsView is the page of stablecoins; the script gets the API's answer as it is.
type pegsView struct {
	Body json.RawMessage `json:"stablecoins"`
	Pegs []peg           `json:"-"`
}

// peg is what the page itself reads of the API's answer.
type peg struct {
	Symbol, Name, ID string
	Price            *float64
	PegDeviation     *float64
	StabilityScore   *float64
	MarketCap        *float64
	PegCurrency      string
	PegMechanism     string
	IsDepegged       bool
	IsStale          bool
}

// State reports what a reader must know before the numbers.
func (p *peg) State() string {
	switch {
	case p.PegDeviation == nil:
		return "no price"
	case p.IsDepegged:
		return "off its peg"
	case p.IsStale:
		return "stale"
	}
	return "held"
}

// sendStablecoins answers /stablecoins.
func (u *Unit) sendStablecoins(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "Stablecoins")
	if !ok {
		return err
	}
	v := &pegsView{}
	var answer struct{ Stablecoins []peg }
	if v.Body, err = u.ask(r, "listStablecoins", map[string]string{"limit": pegsShown}, &answer); err != nil {
		return u.fail(r.ctx, err)
	}
	v.Pegs = answer.Stablecoins
	if !wantsPage(r.ctx) {
		return u.sendStablecoinsText(c, v)
	}
	return u.show(r.ctx, http.StatusOK, view{Page: pageStablecoins, Title: "Stablecoins", About: "How far stablecoins are from their pegs, now and over 30 days.", Data: v, Stablecoins: v})
}

func (u *Unit) sendStablecoinsText(c *fiber.Ctx, v *pegsView) error {
	w := width(c)
	var b strings.Builder
	u.heading(&b, "stablecoins, basis points from the peg", w)
	line := func(cells ...string) {
		text := "  " + column(plain(cells[0], 9), 10, false) + column(plain(cells[1], 5), 5, false)
		for _, cell := range cells[2:6] {
			text += column(cell, 11, true)
		}
		fmt.Fprintln(&b, strings.TrimRight(plain(text+"  "+cells[6], w), " "))
	}
	line("", "PEG", "PRICE USD", "OFF, BPS", "SCORE", "CAP", "")
	for i := range v.Pegs {
		p := &v.Pegs[i]
		line(p.Symbol, p.PegCurrency, formatPrice(p.Price), formatSigned(p.PegDeviation), formatScore(p.StabilityScore), formatAmount(p.MarketCap), p.State())
	}
	if len(v.Pegs) == 0 {
		b.WriteString("  no stablecoin has a market cap yet\n")
	}
	return u.sendText(c.Context(), http.StatusOK, b.String())
}
