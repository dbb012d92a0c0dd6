package sources

import (
	"math"
	"strconv"
)

// digits rounds to n significant digits.
func digits(x float64, n int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', n-1, 64), 64)
	return rounded
}

// plain spells a number with so many digits and without an exponent.
func plain(x float64, n int) string { return strconv.FormatFloat(digits(x, n), 'f', -1, 64) }

// inPercent spells a fraction in percent, to the hundredth.
func inPercent(x float64) string {
	return strconv.FormatFloat(math.Round(x*1e4)/1e2, 'f', -1, 64) + "%"
}
