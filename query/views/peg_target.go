package views

import (
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// PegTarget is what one unit of the currency of a peg costs in USD, 0 where that is not known or stale, and the fixings that it is made of:
// the dollars that a euro costs and, of other currencies, the units. They are nil where the rate is the one that the fiat endpoints
// answer, and for the US dollar itself.
type PegTarget struct {
	USD            float64
	Dollars, Units *eventsv1.Fixing
}

// PegTarget is what one unit of a currency costs in USD by the reference rates of the newest day, as the views of pegs
// take it. Of a currency that has none of the last six days, such as the offshore yuan, it is the rate that the fiat endpoints
// answer.
func (f *Rates) PegTarget(snapshot *Snapshot, code string, now time.Time) (target PegTarget) {
	if code == schemas.USD {
		return PegTarget{USD: 1}
	}
	newest := ""
	for id, dollar := range snapshot.Fixings {
		if id.Base != "EUR" || id.Quote != schemas.USD || dollar.Date < newest {
			continue
		}
		rate := schemas.Float(dollar.Rate)
		var units *eventsv1.Fixing
		if code != "EUR" {
			units = snapshot.Fixings[FiatID{Source: id.Source, Base: "EUR", Quote: code}]
			if units == nil || units.Date != dollar.Date || schemas.Float(units.Rate) <= 0 {
				continue
			}
			rate /= schemas.Float(units.Rate)
		}
		if day, err := time.Parse(time.DateOnly, dollar.Date); err != nil || now.Truncate(24*time.Hour).Sub(day) > schemas.FixingDays*24*time.Hour {
			continue
		}
		if dollar.Date > newest || rate < target.USD { // of two sources of one day always the same
			newest, target = dollar.Date, PegTarget{rate, dollar, units}
		}
	}
	if target.USD > 0 {
		return target
	}
	for _, rate := range f.Of(snapshot, now) {
		if rate.Code == code && !rate.Stale {
			return PegTarget{USD: 1 / rate.Rate}
		}
	}
	return PegTarget{}
}
