package pages

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
)

const (
	// textWidth is of a terminal, unless w says otherwise.
	textWidth = 80
	// textRows are the coins of the table.
	textRows = 10
)

// interfaces are where else the same numbers are.
func (u *Unit) interfaces(b *strings.Builder, ctx *fasthttp.RequestCtx) {
	scheme, stream := "http", "ws"
	if ctx.IsTLS() {
		scheme, stream = "https", "wss"
	}
	at := plain(string(ctx.Host()), 60)
	fmt.Fprintf(b, "\n  page    %s://%s/          %s://%s/coins/bitcoin\n", scheme, at, scheme, at)
	fmt.Fprintf(b, "  REST    %s://%s/api/v1    %s://%s/openapi.json\n", scheme, at, scheme, at)
	fmt.Fprintf(b, "  stream  %s://%s/api/v1/prices/ws\n", stream, at)
	fmt.Fprintf(b, "  MCP     %s://%s/mcp\n", scheme, at)
	fmt.Fprintf(b, "  docs    %s://%s/docs    %s://%s/llms.txt\n", scheme, at, scheme, at)
	b.WriteString("  key     Authorization: Bearer $MARKETLOG_API_KEY, which `marketlog env` prints\n")
}

// width is how many columns the reader has: ?w= between 40 and 200.
func width(c *fiber.Ctx) int {
	w, err := strconv.Atoi(c.Query("w"))
	if err != nil {
		return textWidth
	}
	return min(200, max(40, w))
}

func (u *Unit) sendText(ctx *fasthttp.RequestCtx, status int, text string) error {
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType("text/plain; charset=utf-8")
	ctx.Response.SetBodyString(text)
	return nil
}

func (u *Unit) heading(b *strings.Builder, what string, w int) {
	fmt.Fprintln(b, plain("marketlog: "+what, w))
	if u.cfg.Simulated { // on a line of its own, which no width cuts
		fmt.Fprintln(b, "SIMULATED: invented prices")
	}
	fmt.Fprintln(b)
}

// column pads a text to a width, on the left for numbers.
func column(text string, w int, number bool) string {
	padding := strings.Repeat(" ", max(0, w-utf8.RuneCountInString(text)))
	if number {
		return padding + text
	}
	return text + padding
}

// sendPricesText writes the largest coins and the interfaces.
func (u *Unit) sendPricesText(c *fiber.Ctx, v *pricesView) error {
	w := width(c)
	name := max(6, w-60)
	var b strings.Builder
	u.heading(&b, "the median over venues", w)
	line := func(cells ...string) {
		text := " " + column(cells[0], 4, true) + "  " + column(plain(cells[1], 8), 8, false) + " " + column(plain(cells[2], name), name, false) +
			column(cells[3], 14, true) + column(cells[4], 9, true) + column(cells[5], 11, true) + column(cells[6], 8, true)
		fmt.Fprintln(&b, strings.TrimRight(plain(text, w), " "))
	}
	line("#", "COIN", "", "PRICE USD", "24 H", "CAP", "VENUES")
	for _, row := range v.Rows[:min(textRows, len(v.Rows))] {
		venues := "–"
		if row.Providers != nil {
			venues = strconv.Itoa(*row.Providers)
			if row.Rejected != nil {
				venues += "/" + strconv.Itoa(*row.Providers+*row.Rejected)
			}
		}
		rank := "–" // until the first minute of all coins is there
		if row.Rank > 0 {
			rank = strconv.Itoa(row.Rank)
		}
		line(rank, row.Symbol, row.Name, formatPrice(row.Price), formatPercent(row.H24), formatAmount(row.Cap), venues)
	}
	u.interfaces(&b, c.Context())
	return u.sendText(c.Context(), http.StatusOK, b.String())
}

// sendCoinText writes a coin's price and what it is made from.
func (u *Unit) sendCoinText(c *fiber.Ctx, v *coinView) error {
	w := width(c)
	var b strings.Builder
	u.heading(&b, v.Coin.Symbol+" "+v.Coin.Name, w)
	if v.Why == nil {
		if v.Coin.CurrentPrice != nil {
			fmt.Fprintf(&b, "  %s USD\n", formatPrice(*v.Coin.CurrentPrice))
		}
		fmt.Fprintf(&b, "  %s\n", plain(v.WhyNot, w-2))
		return u.sendText(c.Context(), http.StatusOK, b.String())
	}
	why := v.Why
	fmt.Fprintf(&b, "  %s USD at %s UTC   24 h %s   cap %s\n", formatPrice(why.Price), formatClock(why.Timestamp), formatPercent(v.Coin.PriceChangePercentage24h), formatAmount(v.Coin.MarketCap))
	fmt.Fprintf(&b, "  median of %d venues, ± %s bps, folded again from the log: %s\n\n", len(why.Accepted), formatBps(why.Confidence, why.Price), map[bool]string{true: "the same", false: "different"}[why.Reproduced])
	line := func(cells ...string) {
		text := "  " + column(plain(cells[0], 12), 13, false) + column(plain(cells[1], 18), 19, false) + column(cells[2], 14, true) + column(cells[3], 12, true) + column(cells[4], 10, true) + "  " + plain(cells[5], 16)
		fmt.Fprintln(&b, strings.TrimRight(plain(text, w), " "))
	}
	line("VENUE", "MARKET", "USD", "OFF, BPS", "AGE, MS", "USED")
	for _, in := range why.Inputs {
		price, off, used := "–", "–", "yes"
		if in.PriceUSD != nil {
			price = formatPrice(*in.PriceUSD)
			off = strconv.FormatFloat((*in.PriceUSD/why.Price-1)*1e4, 'f', 1, 64)
		}
		if !in.Accepted {
			used = in.Reason
		}
		line(in.Provider, in.VenueSymbol, price, off, strconv.FormatInt(in.AgeMs, 10), used)
	}
	return u.sendText(c.Context(), http.StatusOK, b.String())
}

// sendRefusalText writes why there is nothing to read, and the interfaces for those who only lack a key.
func (u *Unit) sendRefusalText(ctx *fasthttp.RequestCtx, shown *query.Error) error {
	var b strings.Builder
	u.heading(&b, http.StatusText(shown.Status), textWidth)
	fmt.Fprintf(&b, "  %s\n", plain(shown.Message, 200))
	if shown.Status == http.StatusUnauthorized {
		ctx.Response.Header.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="marketlog"`)
		u.interfaces(&b, ctx)
	}
	if shown.RetryAfter > 0 {
		ctx.Response.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(shown.RetryAfter))
	}
	return u.sendText(ctx, shown.Status, b.String())
}

// sendSQLText writes how a terminal asks statements.
func (u *Unit) sendSQLText(ctx *fasthttp.RequestCtx) error {
	var b strings.Builder
	u.heading(&b, "SQL", textWidth)
	at := plain(string(ctx.Host()), 60)
	scheme := "http"
	if ctx.IsTLS() {
		scheme = "https"
	}
	fmt.Fprintf(&b, "  curl -H \"Authorization: Bearer $MARKETLOG_API_KEY\" \\\n    --data-binary \"SELECT symbol, price FROM v_prices LIMIT 5\" \\\n    \"%s://%s/api/v1/sql?format=CSVWithNames\"\n", scheme, at)
	return u.sendText(ctx, http.StatusOK, b.String())
}
