package symbols

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// maxBatch bounds the symbols of one batch.
	maxBatch = 100
	// maxInput is as long as the longest address with its platform before it.
	maxInput = 128
)

// params declares what a symbol is asked with, as parameters of a query or as fields of a body.
func params(in query.In) []query.Param {
	return []query.Param{
		{Name: "symbol", In: in, Kind: query.Text, Required: true, MaxLength: maxInput, Example: "XBT",
			Doc: "Symbol, pair, id, name or contract address of a coin. Case-insensitive."},
		sourceParam(in, in == query.Field),
		{Name: "price", In: in, Kind: query.Number, Doc: "Price of one unit, in the context's quote asset or USD. It distinguishes coins that share a symbol, and takes precedence over a price in the context."},
		contextParam(in), asOfIn(in),
	}
}

// asOfIn declares the instant as a parameter of a query or as a field of a body.
func asOfIn(in query.In) query.Param {
	p := asOfParam
	p.In = in
	return p
}

func sourceParam(in query.In, required bool) query.Param {
	p := query.Param{Name: "source", In: in, Kind: query.Text, Required: required, MaxLength: 64, Example: "kraken",
		Doc: "Where it is used: a venue, a source such as coingecko, or general."}
	if !required {
		p.Default = schemas.GeneralSource
	}
	return p
}

func contextParam(in query.In) query.Param {
	return query.Param{Name: "context", In: in, Kind: query.Hints, Allowed: []string{"exchange", "quote", "platform", "contract", "name", hintPrice}, Word: "exchange", Numbers: []string{hintPrice},
		Doc: "Hints: exchange, quote currency, the coin's platform, contract, name and price. Plain text is an exchange or a quote currency."}
}

func (u *Unit) resolve() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/symbols/resolve", ID: "resolveSymbol", Tool: "resolve_symbol", Tag: "symbols", NotFound: true,
		Summary:     "Resolve a symbol to a coin",
		Description: "The first rule that can decide wins: an operator's override, the mapping of the source or exchange, uniqueness, the given price, the coin table, market cap, a search of names. In the tool view an unresolved symbol is a 404 with candidates.",
		Params:      params(query.Query),
		Body:        ResolutionBody{}, ToolBody: Resolution{}, Hot: true, Handle: u.getResolution,
	}
}

func (u *Unit) resolvePosted() query.Endpoint {
	e := u.resolve()
	e.Method, e.ID, e.Tool, e.Params = http.MethodPost, "resolveSymbolPosted", "", params(query.Field)
	e.Summary = "Which coin a symbol means, asked by a body"
	return e
}

func (u *Unit) getResolution(ctx context.Context, r *query.Request) (query.Answer, error) {
	by, err := u.asks(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	answer, now := u.ask(by, r, r.Text("symbol")), by.snapshot
	if err := by.fault(); err != nil {
		return query.Answer{}, err
	}
	if r.View == query.Reference {
		body, err := query.Encode(ResolutionBody{answer})
		body.Simulated = now.Simulated
		return body, err
	}
	if !answer.Resolved {
		failed := query.NotFound("no coin matches %q", answer.Input)
		failed.Candidates = answer.Candidates
		return query.Answer{}, failed
	}
	body, err := query.Encode(answer)
	body.Simulated = now.Simulated
	return body, err
}

// Resolve answers as the endpoints do.
func (u *Unit) Resolve(req schemas.SymbolRequest) Resolution {
	resolver, _ := u.resolver(time.Unix(0, req.At))
	return describe(schemas.SymbolQuestion{Symbol: req.Symbol, Source: req.Source, Price: req.Price, Context: req.Context}, req.Symbol, resolver.Resolve(req))
}

// ask resolves one symbol with the source, price and context of a request.
func (u *Unit) ask(by *asked, r *query.Request, symbol string) Resolution {
	q := u.question(r, symbol)
	req, _, rated := u.request(by.Table, q, by.at)
	answer := describe(q, symbol, by.Resolve(req))
	if !rated {
		answer.Reason = "no_rate"
	}
	return answer
}

// question is what a request asks of a symbol.
func (u *Unit) question(r *query.Request, symbol string) schemas.SymbolQuestion {
	hints := r.Hints("context")
	q := schemas.SymbolQuestion{Symbol: symbol, Source: r.Text("source"), Price: price(r, hints), Quote: hints["quote"],
		Context: schemas.SymbolContext{Exchange: hints["exchange"], Platform: hints["platform"], Contract: hints["contract"], Name: hints["name"]}}
	if q.Quote == "" && isQuote(u.priceCache.Coins(), hints["exchange"]) {
		q.Quote, q.Context.Exchange = hints["exchange"], ""
	}
	return q
}

// request is what is decided on, and the exchange rate that the price was converted by, nil where it is in USD or there is none; false where it has a price
// that cannot be converted now, and which is ignored.
func (u *Unit) request(table *schemas.CoinTable, q schemas.SymbolQuestion, at time.Time) (req schemas.SymbolRequest, rate *eventsv1.QuoteRate, rated bool) {
	req = schemas.SymbolRequest{Symbol: q.Symbol, Source: q.Source, At: at.UnixNano(), Context: q.Context}
	if q.Price <= 0 {
		return req, nil, true
	}
	usd, rate, rated := u.usd(table, req, q.Quote)
	if rated {
		req.Price = q.Price * usd
	}
	return req, rate, rated
}

// Asked is what a question is decided on now: the request with its price in USD, the exchange rate that this was converted by, if any, and what decides. It is
// for explanations.
func (u *Unit) Asked(q schemas.SymbolQuestion, at time.Time) (req schemas.SymbolRequest, rate *eventsv1.QuoteRate, by *schemas.Resolver) {
	by, _ = u.resolver(at)
	req, rate, _ = u.request(by.Table, q, at)
	return req, rate, by
}

// hintPrice is the hint that is a number; a batch has no other price.
const hintPrice = "price"

// price is the one given, 0 for none.
func price(r *query.Request, hints map[string]string) float64 {
	if r.Declares("price") && r.Has("price") {
		return r.Number("price")
	}
	hinted, _ := strconv.ParseFloat(hints[hintPrice], 64) // the declaration has checked it
	return hinted
}

// isQuote means that a plain word names what markets are quoted in.
func isQuote(table *schemas.CoinTable, word string) bool {
	asset, ok := table.ResolveQuote("", word)
	if !ok || asset.Fiat {
		return ok
	}
	coin, _ := table.ByID(asset.ID)
	return coin.Kind == schemas.KindStablecoin || schemas.QuoteRank(asset.ID) < len(schemas.QuotePreference())
}

// usd is what one unit of a quote costs, with the rate that states it; a price without a quote is in USD.
func (u *Unit) usd(table *schemas.CoinTable, req schemas.SymbolRequest, quote string) (usd float64, rate *eventsv1.QuoteRate, ok bool) {
	if quote == "" {
		return 1, nil, true
	}
	venue := schemas.VenueSlug(req.Source)
	if venue == schemas.GeneralSource {
		venue = schemas.VenueSlug(req.Context.Exchange)
	}
	asset, ok := table.ResolveQuote(venue, quote)
	if !ok {
		return 0, nil, false
	}
	return u.rates.Rate(asset.ID)
}

func (u *Unit) batch() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodPost, Path: "/api/v1/symbols/resolve/batch", ID: "resolveSymbols", Tool: "resolve_symbols_batch", Tag: "symbols", Needs: limits.FeatureBulk,
		Summary:     "Resolve up to 100 symbols to coins",
		Description: "Each is resolved separately, with the same source and context. Results are in request order, and by symbol.",
		Params: []query.Param{
			{Name: "symbols", In: query.Field, Kind: query.List, Required: true, MaxItems: maxBatch, Example: "XBT,ETH", Doc: "1 to 100 symbols."},
			sourceParam(query.Field, false), contextParam(query.Field), asOfIn(query.Field)},
		Body: BatchBody{}, Hot: true, Handle: u.getBatch,
	}
}

func (u *Unit) getBatch(ctx context.Context, r *query.Request) (query.Answer, error) {
	by, err := u.asks(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	body := BatchBody{Resolved: []Resolution{}, Data: BatchData{Resolved: map[string]Resolution{}, Source: r.Text("source"), Timestamp: u.timestampOf(by)}}
	for _, symbol := range r.List("symbols") {
		answer := u.ask(by, r, symbol)
		body.Data.Resolved[answer.Input] = answer
		if !answer.Resolved {
			answer = Resolution{Input: answer.Input}
		}
		body.Resolved = append(body.Resolved, answer)
	}
	body.Data.Count = len(body.Resolved)
	if err := by.fault(); err != nil {
		return query.Answer{}, err
	}
	answer, err := query.Encode(body)
	answer.Simulated = by.snapshot.Simulated
	return answer, err
}

// timestamp is the last clock that is in an answer.
func (u *Unit) timestamp(now *views.Snapshot) string {
	return query.FormatTime(max(now.Time, now.SourcesTime, u.priceCache.Now()))
}
