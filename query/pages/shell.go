package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Pages by their bundles.
const (
	pagePrices      = "prices"
	pageCoin        = "coin"
	pageSystem      = "system"
	pageRates       = "rates"
	pageStablecoins = "stablecoins"
	pageMarket      = "market"
	pageSQL         = "sql"
	pageReference   = "reference"
	pageSignIn      = "signin"
	// pageDocs and pageNotice have no script.
	pageDocs   = "docs"
	pageNotice = "notice"
)

// view is what a page shows before its script runs, and all that it shows where none does.
type view struct {
	Page  string
	Title string
	// About describes the page in a sentence.
	About string
	// Notice is shown where there are no numbers.
	Notice string
	// Data is given to the script, as JSON.
	Data any

	Prices      *pricesView
	Coin        *coinView
	Rates       *ratesView
	Rate        *rateView
	Stablecoins *pegsView
	Market      *marketView
	System      *systemAnswer
	SQL         *sqlView
	Guide       *guideView
	Reference   *referenceView

	// What the shell adds.
	Simulated bool
	Version   string
	Icon      string
	Bundle    bundle
}

//go:embed shell.html numbers.html
var documents embed.FS

// shell escapes what it shows by where that is: as text, in an attribute, in an address, as JSON.
var shell = template.Must(template.New("shell.html").Funcs(template.FuncMap{
	"price": formatPrice, "percent": formatPercent, "amount": formatAmount, "sign": signOf, "bps": formatBps, "clock": formatClock, "visible": visible,
	"rate": formatRate, "signed": formatSigned, "score": formatScore, "usd": func(n float64) string { return formatAmount(&n) },
}).ParseFS(documents, "*.html"))

// show answers with a page.
func (u *Unit) show(ctx *fasthttp.RequestCtx, status int, v view) error {
	v.Simulated, v.Version, v.Icon, v.Bundle = u.cfg.Simulated, u.cfg.Version, u.manifest.Icon, u.manifest.Pages[v.Page]
	if v.Bundle.Style == "" {
		v.Bundle.Style = u.manifest.Pages[pageSignIn].Style
	}
	var page bytes.Buffer
	if err := shell.Execute(&page, v); err != nil {
		return fmt.Errorf("writing the page %s: %w", v.Page, err)
	}
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType("text/html; charset=utf-8")
	if ctx.Request.Header.HasAcceptEncoding("gzip") {
		ctx.Response.Header.Set(fiber.HeaderContentEncoding, "gzip")
		ctx.Response.SetBodyRaw(fasthttp.AppendGzipBytesLevel(nil, page.Bytes(), fasthttp.CompressBestSpeed))
		return nil
	}
	ctx.Response.SetBodyRaw(page.Bytes())
	return nil
}
