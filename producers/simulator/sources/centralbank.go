package sources

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
)

// fixed are the currencies that the bank publishes, in its order.
var fixed = strings.Fields(`USD JPY CZK DKK GBP HUF PLN RON SEK CHF ISK NOK TRY AUD BRL CAD CNY HKD IDR ILS INR KRW
	MXN MYR NZD PHP SGD THB ZAR`)

// The bank fixes at about 14:10 and publishes at about 16:00 Frankfurt time; in UTC and in winter:
const (
	fixedAt     = 13*time.Hour + 10*time.Minute
	publishedAt = 15 * time.Hour
)

// centralBank serves the files of the European Central Bank for one day, for 90 and for all, as described on
// https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/html/index.en.html.
func centralBank() Source {
	return Source{
		Slug: "ecb", Base: "/stats/eurofxref", Tagged: true, MaxAge: 5 * time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			all := &longFile{}
			file := func(fixings func(now time.Time) []byte) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/xml")
					_, _ = w.Write(fixings(r.Now()))
				}
			}
			return map[string]http.HandlerFunc{
				"GET /stats/eurofxref/eurofxref-daily.xml":    file(func(now time.Time) []byte { return fixings(r.world, now, 1) }),
				"GET /stats/eurofxref/eurofxref-hist-90d.xml": file(func(now time.Time) []byte { return fixings(r.world, now, 90) }),
				"GET /stats/eurofxref/eurofxref-hist.xml":     file(func(now time.Time) []byte { return all.of(r.world, now) }),
			}
		},
	}
}

// fixingDays are the days of the long file: the five years that markets have a past for, and one before. The bank's own
// goes back to 1999; reading all of that would cost a start more than everything else.
const fixingDays = 6 * 365

// longFile is the file of all days, which takes a while to make and changes once a day.
type longFile struct {
	mu     sync.Mutex
	newest time.Time
	body   []byte
}

func (f *longFile) of(w *market.World, now time.Time) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if newest := workingDay(now); !newest.Equal(f.newest) {
		f.newest, f.body = newest, fixings(w, now, fixingDays)
	}
	return f.body
}

// fixings are those of the newest working days published in the calendar days before now.
func fixings(w *market.World, now time.Time, days int) []byte {
	b := []byte(`<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
	<gesmes:subject>Reference rates</gesmes:subject>
	<gesmes:Sender>
		<gesmes:name>European Central Bank</gesmes:name>
	</gesmes:Sender>
	<Cube>
`)
	date := now.UTC().Truncate(24 * time.Hour)
	oldest := date.AddDate(0, 0, -days)
	if now.Sub(date) < publishedAt {
		date = date.AddDate(0, 0, -1)
	}
	for found := false; date.After(oldest) || !found; date = date.AddDate(0, 0, -1) {
		if d := date.Weekday(); d == time.Saturday || d == time.Sunday {
			continue
		}
		found = true
		b = fmt.Appendf(b, "\t\t<Cube time='%s'>\n", date.Format(time.DateOnly))
		at := date.Add(fixedAt).UnixNano()
		for _, code := range fixed {
			rate := w.Fiats["EUR"].At(at) / w.Fiats[code].At(at)
			b = fmt.Appendf(b, "\t\t\t<Cube currency='%s' rate='%s'/>\n", code, fiveDigits(rate))
		}
		b = append(b, "\t\t</Cube>\n"...)
		if days == 1 {
			break
		}
	}
	return append(b, "\t</Cube>\n</gesmes:Envelope>\n"...)
}

// fiveDigits rounds to five significant digits, as the bank does.
func fiveDigits(x float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 4, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
