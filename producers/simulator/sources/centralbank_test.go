package sources

import (
	"encoding/xml"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestCentralBankFixesOnWorkingDays(t *testing.T) {
	w := market.NewWorld(1)
	file := struct {
		Days []struct {
			Time  string `xml:"time,attr"`
			Rates []struct {
				Currency string  `xml:"currency,attr"`
				Rate     float64 `xml:"rate,attr"`
			} `xml:"Cube"`
		} `xml:"Cube>Cube"`
	}{}
	if err := xml.Unmarshal(fixings(w, simulatortest.Noon, 90), &file); err != nil {
		t.Fatal(err)
	}
	if n := len(file.Days); n < 60 || n > 65 {
		t.Errorf("%d working days in 90", n)
	}
	// At half past twelve the day's own rates are not out yet.
	if got := file.Days[0].Time; got != "2026-03-03" {
		t.Errorf("newest is %s, want 2026-03-03", got)
	}
	for _, d := range file.Days {
		if day, err := time.Parse(time.DateOnly, d.Time); err != nil || day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			t.Errorf("fixed on %s, %v", d.Time, err)
		}
		if len(d.Rates) != len(fixed) {
			t.Errorf("%d rates on %s, want %d", len(d.Rates), d.Time, len(fixed))
		}
		for _, r := range d.Rates {
			if r.Rate <= 0 {
				t.Errorf("%s at %g on %s", r.Currency, r.Rate, d.Time)
			}
		}
	}
	var daily = file
	daily.Days = nil
	if err := xml.Unmarshal(fixings(w, simulatortest.Noon, 1), &daily); err != nil || len(daily.Days) != 1 {
		t.Errorf("the daily file has %d days, %v", len(daily.Days), err)
	}
}
