package fiat

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
)

// ListBody answers GET /api/v1/fiat.
type ListBody struct {
	Data List `json:"data"`
	Meta Meta `json:"meta"`
}

// List holds every currency with a rate.
type List struct {
	Currencies   []Currency `json:"currencies" doc:"Sorted by code"`
	Count        int        `json:"count"`
	BaseCurrency string     `json:"baseCurrency" enum:"USD" doc:"Rates are per one unit of this currency"`
}

// CurrencyBody answers GET /api/v1/fiat/{symbol}.
type CurrencyBody struct {
	Data DetailedCurrency `json:"data"`
	Meta Meta             `json:"meta"`
}

// RatesBody answers GET /api/v1/fiat/rates/usd.
type RatesBody struct {
	Data Rates `json:"data"`
	Meta Meta  `json:"meta"`
}

// Rates is what one US dollar costs in each currency.
type Rates struct {
	BaseCurrency string             `json:"baseCurrency" enum:"USD" doc:"Rates are per one unit of this currency"`
	Rates        map[string]float64 `json:"rates" explain:"fiat/{key}" doc:"Units per US dollar, by currency code"`
	Count        int                `json:"count"`
	Timestamp    string             `json:"timestamp" format:"date-time" doc:"Time of the newest rate"`
}

const blended = "Each source has one vote: the median of those that are fresh counts, after those more than half of the first median away were left out. A daily fixing counts for six days after its own; a rate set within a day for three intervals."

func (u *Unit) list() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/fiat", ID: "listFiat", Tag: tag,
		Summary: "Exchange rates of the US dollar in all known currencies", Description: blended,
		Params: []query.Param{asOfParam},
		Body:   ListBody{}, MaxAge: maxAge, Hot: true, Handle: u.getList,
	}
}

func (u *Unit) getList(ctx context.Context, r *query.Request) (query.Answer, error) {
	return u.answer(ctx, r, key{operation: "list"}, func(now *current) (any, error) {
		list := List{Currencies: make([]Currency, len(now.currencies)), Count: len(now.currencies), BaseCurrency: base}
		for i, rate := range now.currencies {
			list.Currencies[i] = u.currency(now, rate)
		}
		return ListBody{list, now.meta(list.Count)}, nil
	})
}

func (u *Unit) one() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/fiat/{symbol}", ID: "getFiat", Tag: tag,
		Summary: "Exchange rate of the US dollar in one currency, with its sources", Description: blended,
		Params: []query.Param{{Name: "symbol", In: query.Path, Kind: query.Text, Required: true, Example: "EUR", Check: isCode, Pattern: "^[A-Za-z]{3}$",
			Doc: "ISO 4217 code, case-insensitive."}, asOfParam},
		Body: CurrencyBody{}, NotFound: true, MaxAge: maxAge, Hot: true, Handle: u.getOne,
	}
}

func isCode(text string) string {
	if len(text) != 3 || strings.ContainsFunc(text, func(c rune) bool { return c|0x20 < 'a' || c|0x20 > 'z' }) {
		return "must be a currency code of exactly three letters"
	}
	return ""
}

func (u *Unit) getOne(ctx context.Context, r *query.Request) (query.Answer, error) {
	named, known := u.coins.Fiat(r.Text("symbol"))
	if !known {
		return query.Answer{}, query.NotFound("there is no currency with the code %q", strings.ToUpper(r.Text("symbol")))
	}
	return u.answer(ctx, r, key{operation: "one", code: named.Code}, func(now *current) (any, error) {
		i, found := slices.BinarySearchFunc(now.currencies, named.Code, func(rate schemas.FiatRate, code string) int { return strings.Compare(rate.Code, code) })
		if !found {
			return nil, query.NotFound("no source has a rate of %s", named.Code)
		}
		rate := now.currencies[i]
		return CurrencyBody{DetailedCurrency{u.currency(now, rate), inputs(now, rate)}, now.meta(1)}, nil
	})
}

func (u *Unit) rates() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/fiat/rates/usd", ID: "getFiatRates", Tag: tag,
		Summary: "Exchange rates of the US dollar, by currency code", Description: blended,
		Params: []query.Param{asOfParam},
		Body:   RatesBody{}, MaxAge: maxAge, Hot: true, Handle: u.getRates,
	}
}

func (u *Unit) getRates(ctx context.Context, r *query.Request) (query.Answer, error) {
	return u.answer(ctx, r, key{operation: "rates"}, func(now *current) (any, error) {
		rates := Rates{BaseCurrency: base, Rates: map[string]float64{}, Count: len(now.currencies), Timestamp: query.FormatTime(now.newest())}
		for _, rate := range now.currencies {
			rates.Rates[rate.Code] = rate.Rate
		}
		return RatesBody{rates, now.meta(rates.Count)}, nil
	})
}
