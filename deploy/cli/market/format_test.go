package market

import (
	"testing"
	"time"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	of := func(v float64) *float64 { return &v }
	for _, c := range []struct{ got, want string }{
		{amount(nil), "–"},
		{amount(of(0)), "0"},
		{amount(of(85201.694)), "85,201.69"},
		{amount(of(1234567.8)), "1,234,567.80"},
		{amount(of(-1234.5)), "-1,234.50"},
		{amount(of(999.99994)), "999.9999"},
		{amount(of(1.0002249)), "1.0002"},
		{amount(of(0.24050163)), "0.240502"},
		{amount(of(0.0000123456789)), "0.0000123457"},
		{amount(of(3e-18)), "0.00000000000000000300"},
		{change(nil), "–"},
		{change(of(-2.104)), "-2.10 %"},
		{change(of(1.6)), "+1.60 %"},
		{short(nil), "–"},
		{short(of(999)), "999.00"},
		{short(of(1_694_000_000_000)), "1.69 T"},
		{short(of(-2_500_000)), "-2.50 M"},
		{clock(time.Time{}), "–"},
		{clock(time.Unix(1795423320, 0)), "2026-11-23 08:42:00Z"},
		{clock(time.Unix(1795423320, 5e6)), "2026-11-23 08:42:00.005Z"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
