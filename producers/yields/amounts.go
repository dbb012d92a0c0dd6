package yields

import (
	"slices"
	"strconv"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/schemas"
)

// maxDigits bounds the numbers that are reckoned with: exponents can make a few letters fill the memory.
const maxDigits = 96

// exact reads a number; false if it is invalid or missing.
func exact(n producers.Num) (decimal.Decimal, bool) {
	canonical, err := schemas.CanonicalDecimal(string(n))
	if err != nil || len(canonical) > maxDigits {
		return decimal.Decimal{}, false
	}
	x, err := decimal.NewFromString(canonical)
	return x, err == nil
}

// difference is a less b, exactly; "" if one of them is missing or is not a number.
func difference(a, b producers.Num) string {
	x, ok := exact(a)
	y, also := exact(b)
	if !ok || !also {
		return ""
	}
	return x.Sub(y).String()
}

// sum is both together, exactly; "" if one of them is missing or is not a number.
func sum(a, b producers.Num) string {
	x, ok := exact(a)
	y, also := exact(b)
	if !ok || !also {
		return ""
	}
	return x.Add(y).String()
}

// remainder is what a limit leaves beyond what is taken, never below zero; "" if there is no limit, which interfaces of
// contracts report as zero.
func remainder(limit, taken producers.Num) string {
	most, ok := exact(limit)
	so, also := exact(taken)
	if !ok || !also || !most.IsPositive() {
		return ""
	}
	return decimal.Max(most.Sub(so), decimal.Zero).String()
}

// least is the smaller of two amounts, of which one may be unknown.
func least(a, b string) string {
	x, ok := exact(producers.Num(a))
	y, also := exact(producers.Num(b))
	if !ok || also && y.LessThan(x) {
		return b
	}
	return a
}

// whole is an amount that is reported in its smallest unit, in units of the coin; "" if it or the number of its decimals is
// missing.
func whole(n, decimals producers.Num) string {
	x, ok := exact(n)
	places, err := strconv.ParseUint(string(decimals), 10, 6)
	if !ok || err != nil {
		return ""
	}
	return x.Shift(-int32(places)).String()
}

// maxPlaces are the decimals that are kept of an amount: some report amounts of dust with sixty digits.
const maxPlaces = 18

// rounded is an amount without the digits that mean nothing; what is not a number stays, and refuses its row.
func rounded(n producers.Num) string {
	x, ok := exact(n)
	if !ok {
		return string(n)
	}
	return x.Truncate(maxPlaces).String()
}

// addresses leaves out what is missing.
func addresses(all ...string) []string {
	return slices.DeleteFunc(all, func(address string) bool { return address == "" })
}
