package sources

import (
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// coinbaseFiat serves what one unit of a currency or a coin costs in all others, as of now, as described on
// https://docs.cdp.coinbase.com/coinbase-app/track-apis/exchange-rates.
func coinbaseFiat() Source {
	return Source{
		Slug: "coinbasefiat", Requests: 10_000, Per: time.Hour,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /v2/exchange-rates": func(w http.ResponseWriter, req *http.Request) { r.exchangeRates(w, req) }}
		},
	}
}

// coinbaseCoins is how far down the ranks coins are among the rates.
const coinbaseCoins = 200

func (r *Reference) exchangeRates(w http.ResponseWriter, req *http.Request) {
	now := r.Now().Truncate(time.Second).UnixNano()
	prices := map[string]float64{}
	for code, a := range r.world.Fiats {
		prices[code] = a.At(now)
	}
	for _, c := range r.catalogue.Coins[:coinbaseCoins] {
		if prices[c.Symbol] == 0 && c.Listed(now) {
			prices[c.Symbol] = c.At(now)
		}
	}
	currency := req.URL.Query().Get("currency")
	if currency == "" {
		currency = "USD"
	}
	of, ok := prices[currency]
	if !ok {
		provider.Respond(w, http.StatusBadRequest, map[string]any{"errors": []map[string]string{{"id": "invalid_request", "message": "Invalid currency (" + currency + ")"}}})
		return
	}
	rates := map[string]string{}
	for code, price := range prices {
		rates[code] = strconv.FormatFloat(digits(of/price, 12), 'f', -1, 64)
	}
	provider.Respond(w, http.StatusOK, map[string]any{"data": map[string]any{"currency": currency, "rates": rates}})
}

// erAPI serves the rates of a day without a key, as described on https://www.exchangerate-api.com/docs/free.
func erAPI() Source {
	return Source{
		Slug: "erapi", Requests: 60, Per: time.Hour, // it asks for one a day, and refuses what is far more
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /v6/latest/{base}": func(w http.ResponseWriter, req *http.Request) { r.latest(w, req) }}
		},
		Throttled: func(w http.ResponseWriter) {
			provider.Respond(w, http.StatusTooManyRequests, map[string]string{"result": "error", "error-type": "rate-limited"})
		},
	}
}

// updatedAt is when the rates of a day come.
const updatedAt = 2*time.Minute + 31*time.Second

func (r *Reference) latest(w http.ResponseWriter, req *http.Request) {
	base := req.PathValue("base")
	of := r.world.Fiats[base]
	if of == nil {
		provider.Respond(w, http.StatusNotFound, map[string]string{"result": "error", "error-type": "unsupported-code"})
		return
	}
	now := r.Now().UTC()
	last := now.Truncate(24 * time.Hour).Add(updatedAt)
	if last.After(now) {
		last = last.AddDate(0, 0, -1)
	}
	next, at := last.Add(24*time.Hour+4*time.Minute), last.Truncate(24*time.Hour).UnixNano()
	rates := map[string]float64{}
	for code, a := range r.world.Fiats {
		if code == "HRK" || code == "CNH" && base == "CNY" {
			continue
		}
		rates[code] = digits(of.At(at)/a.At(at), 7)
	}
	rates[base] = 1
	const spelled = "Mon, 02 Jan 2006 15:04:05 +0000"
	provider.Respond(w, http.StatusOK, map[string]any{
		"result": "success", "provider": "https://www.exchangerate-api.com", "documentation": "https://www.exchangerate-api.com/docs/free",
		"terms_of_use": "https://www.exchangerate-api.com/terms", "time_last_update_unix": last.Unix(), "time_last_update_utc": last.Format(spelled),
		"time_next_update_unix": next.Unix(), "time_next_update_utc": next.Format(spelled), "time_eol_unix": 0, "base_code": base, "rates": rates,
	})
}
