package simulator

import (
	"net/http"
	"strconv"
	"time"
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
	for code, a := range r.world.fiats {
		prices[code] = a.at(now)
	}
	for _, c := range r.catalogue.coins[:coinbaseCoins] {
		if prices[c.symbol] == 0 && c.listed(now) {
			prices[c.symbol] = c.at(now)
		}
	}
	currency := req.URL.Query().Get("currency")
	if currency == "" {
		currency = "USD"
	}
	of, ok := prices[currency]
	if !ok {
		respond(w, http.StatusBadRequest, map[string]any{"errors": []map[string]string{{"id": "invalid_request", "message": "Invalid currency (" + currency + ")"}}})
		return
	}
	rates := map[string]string{}
	for code, price := range prices {
		rates[code] = strconv.FormatFloat(digits(of/price, 12), 'f', -1, 64)
	}
	respond(w, http.StatusOK, map[string]any{"data": map[string]any{"currency": currency, "rates": rates}})
}

// erAPI serves the rates of a day without a key, as described on https://www.exchangerate-api.com/docs/free.
func erAPI() Source {
	return Source{
		Slug: "erapi", Requests: 60, Per: time.Hour, // it asks for one a day, and refuses what is far more
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /v6/latest/{base}": func(w http.ResponseWriter, req *http.Request) { r.latest(w, req) }}
		},
		Throttled: func(w http.ResponseWriter) {
			respond(w, http.StatusTooManyRequests, map[string]string{"result": "error", "error-type": "rate-limited"})
		},
	}
}

// updatedAt is when the rates of a day come.
const updatedAt = 2*time.Minute + 31*time.Second

func (r *Reference) latest(w http.ResponseWriter, req *http.Request) {
	base := req.PathValue("base")
	of := r.world.fiats[base]
	if of == nil {
		respond(w, http.StatusNotFound, map[string]string{"result": "error", "error-type": "unsupported-code"})
		return
	}
	now := r.Now().UTC()
	last := now.Truncate(24 * time.Hour).Add(updatedAt)
	if last.After(now) {
		last = last.AddDate(0, 0, -1)
	}
	next, at := last.Add(24*time.Hour+4*time.Minute), last.Truncate(24*time.Hour).UnixNano()
	rates := map[string]float64{}
	for code, a := range r.world.fiats {
		if code == "HRK" || code == "CNH" && base == "CNY" {
			continue
		}
		rates[code] = digits(of.at(at)/a.at(at), 7)
	}
	rates[base] = 1
	const spelled = "Mon, 02 Jan 2006 15:04:05 +0000"
	respond(w, http.StatusOK, map[string]any{
		"result": "success", "provider": "https://www.exchangerate-api.com", "documentation": "https://www.exchangerate-api.com/docs/free",
		"terms_of_use": "https://www.exchangerate-api.com/terms", "time_last_update_unix": last.Unix(), "time_last_update_utc": last.Format(spelled),
		"time_next_update_unix": next.Unix(), "time_next_update_utc": next.Format(spelled), "time_eol_unix": 0, "base_code": base, "rates": rates,
	})
}
