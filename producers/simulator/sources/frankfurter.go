package sources

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// frankfurter serves rates that are blended from central banks, version 2, as described on
// https://frankfurter.dev and made by https://github.com/lineofflight/frankfurter.
func frankfurter() Source {
	return Source{
		Slug: "frankfurter", Tagged: true, MaxAge: 24 * time.Hour,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /v2/rates": func(w http.ResponseWriter, req *http.Request) { r.rates(w, req) }}
		},
	}
}

// banks are the central banks that rates are blended from, by Frankfurter's keys.
var banks = strings.Fields("BOC BOI BOJ CBA ECB HKMA NBP NBU NB RBA SNB TCMB")

// anchored currencies are derived from their peg to the dollar, not by a bank.
var anchored = map[string]float64{"AED": 3.6725, "BHD": 0.376, "QAR": 3.64, "SAR": 3.75}

type blendedRate struct {
	Date      string     `json:"date"`
	Base      string     `json:"base"`
	Quote     string     `json:"quote"`
	Rate      float64    `json:"rate"`
	Providers []bankRate `json:"providers,omitempty"`
}

type bankRate struct {
	Key      string  `json:"key"`
	Rate     float64 `json:"rate"`
	Excluded bool    `json:"excluded,omitempty"`
}

// longestRange bounds what one request may ask for.
const longestRange = 400

func (r *Reference) rates(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	for name := range query {
		if !slices.Contains([]string{"base", "quotes", "date", "from", "to", "expand"}, name) {
			provider.Respond(w, http.StatusUnprocessableEntity, map[string]string{"message": "unknown parameter: " + name})
			return
		}
	}
	base := strings.ToUpper(cmp.Or(query.Get("base"), "EUR"))
	if r.world.Fiats[base] == nil {
		provider.Respond(w, http.StatusUnprocessableEntity, map[string]string{"message": "invalid currency: " + base})
		return
	}
	newest := workingDay(r.Now())
	from, ok := dayOf(cmp.Or(query.Get("from"), query.Get("date")), newest)
	to, ok2 := dayOf(cmp.Or(query.Get("to"), query.Get("date")), newest)
	if !ok || !ok2 || query.Get("date") != "" && query.Get("from")+query.Get("to") != "" || to.Sub(from) > longestRange*24*time.Hour {
		provider.Respond(w, http.StatusUnprocessableEntity, map[string]string{"message": "invalid date"})
		return
	}
	var wanted []string
	if quotes := query.Get("quotes"); quotes != "" {
		wanted = strings.Split(strings.ToUpper(quotes), ",")
	}
	rows := []blendedRate{}
	for date := from; !date.After(to) && !date.After(newest); date = date.AddDate(0, 0, 1) {
		if weekend(date) && from != to {
			continue
		}
		rows = append(rows, blend(r.world, lastWorkingDay(date), base, wanted, query.Get("expand") == "providers")...)
	}
	provider.Respond(w, http.StatusOK, rows)
}

// blend are the rates of a working day, by currency.
func blend(w *market.World, date time.Time, base string, wanted []string, expand bool) []blendedRate {
	at, day := date.Add(fixedAt).UnixNano(), date.Format(time.DateOnly)
	var rows []blendedRate
	for _, code := range slices.Sorted(maps.Keys(w.Fiats)) {
		if wanted != nil && !slices.Contains(wanted, code) || code == "HRK" { // which is no more
			continue
		}
		row := blendedRate{Date: day, Base: base, Quote: code, Rate: 1}
		if code != base {
			rate := inDollars(w, base, at) / inDollars(w, code, at)
			row.Rate = digits(rate, 5)
			if _, ok := anchored[code]; expand && !ok {
				row.Providers = banksOn(w, code, date, rate)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// inDollars is what a currency costs; the anchored ones cost what they are anchored at.
func inDollars(w *market.World, code string, at int64) float64 {
	if peg, ok := anchored[code]; ok {
		return 1 / peg
	}
	return w.Fiats[code].At(at)
}

// banksOn are what some banks publish of a currency; now and then one is off, and is left out of the blend.
func banksOn(w *market.World, code string, date time.Time, rate float64) []bankRate {
	var list []bankRate
	for i, key := range banks {
		own := w.Seed.Of("bank " + key + code)
		if i%4 > 0 && own.At(0)%3 == 0 {
			continue
		}
		published := bankRate{Key: key, Rate: digits(rate*(1+0.0006*(own.Unit(date.Unix())-0.5)), 5)}
		if own.At(^date.Unix())%200 == 0 {
			published.Rate, published.Excluded = digits(rate*1.04, 5), true
		}
		list = append(list, published)
	}
	return list
}

// dayOf reads a date, absent if there is none.
func dayOf(text string, absent time.Time) (time.Time, bool) {
	if text == "" {
		return absent, true
	}
	t, err := time.Parse(time.DateOnly, text)
	return t, err == nil
}

func weekend(date time.Time) bool {
	return date.Weekday() == time.Saturday || date.Weekday() == time.Sunday
}

// lastWorkingDay is the day itself or, at a weekend, the Friday before.
func lastWorkingDay(date time.Time) time.Time {
	for weekend(date) {
		date = date.AddDate(0, 0, -1)
	}
	return date
}

// workingDay is the newest whose rates are published.
func workingDay(now time.Time) time.Time {
	date := now.UTC().Truncate(24 * time.Hour)
	if now.Sub(date) < publishedAt {
		date = date.AddDate(0, 0, -1)
	}
	return lastWorkingDay(date)
}
