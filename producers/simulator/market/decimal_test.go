package market

import "testing"

func TestDecimalSpellings(t *testing.T) {
	for _, test := range []struct {
		d                          Decimal
		all, short, padded, number string
	}{
		{Decimal{1000, 4}, "0.1000", "0.1", "0.10000000", "0.1"},
		{Decimal{5, 8}, "0.00000005", "0.00000005", "0.00000005", "0.00000005"},
		{Decimal{740, 0}, "740", "740", "740.00000000", "740.0"},
		{Decimal{74000, 2}, "740.00", "740", "740.00000000", "740.0"},
		{Decimal{-17, 5}, "-0.00017", "-0.00017", "-0.00017000", "-0.00017"},
		{Decimal{0, 2}, "0.00", "0", "0.00000000", "0.0"},
	} {
		if got := test.d.String(); got != test.all {
			t.Errorf("%v: got %s, want %s", test.d, got, test.all)
		}
		if got := test.d.Short(); got != test.short {
			t.Errorf("%v: got %s, want %s", test.d, got, test.short)
		}
		if got := test.d.Padded(8); got != test.padded {
			t.Errorf("%v: got %s, want %s", test.d, got, test.padded)
		}
		if got := string(test.d.AppendNumber(nil)); got != test.number {
			t.Errorf("%v: got %s, want %s", test.d, got, test.number)
		}
	}
}
