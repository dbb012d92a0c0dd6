package market

import (
	"math"
	"strconv"
)

// Decimal is an exact number: Units times 10^-Scale.
type Decimal struct {
	Units int64
	Scale int
}

// Exact is units times 10^-scale.
func Exact(units int64, scale int) Decimal { return Decimal{units, scale} }

// Round rounds x to scale decimals.
func Round(x float64, scale int) Decimal {
	return Decimal{int64(math.Round(x * pow10(scale))), scale}
}

func pow10(n int) float64 { return math.Pow10(n) }

// Float is the nearest float64.
func (d Decimal) Float() float64 { return float64(d.Units) / pow10(d.Scale) }

// Append spells all decimals: 0.1000.
func (d Decimal) Append(b []byte) []byte {
	units := d.Units
	if units < 0 {
		b, units = append(b, '-'), -units
	}
	var buf [24]byte
	digits := strconv.AppendInt(buf[:0], units, 10)
	if d.Scale == 0 {
		return append(b, digits...)
	}
	whole := len(digits) - d.Scale
	if whole > 0 {
		b = append(b, digits[:whole]...)
		b = append(b, '.')
		return append(b, digits[whole:]...)
	}
	b = append(b, "0."...)
	for ; whole < 0; whole++ {
		b = append(b, '0')
	}
	return append(b, digits...)
}

// AppendPadded spells at least n decimals.
func (d Decimal) AppendPadded(b []byte, n int) []byte {
	b = d.Append(b)
	if d.Scale == 0 && n > 0 {
		b = append(b, '.')
	}
	for i := d.Scale; i < n; i++ {
		b = append(b, '0')
	}
	return b
}

// AppendShort leaves out zeros at the end: 0.1.
func (d Decimal) AppendShort(b []byte) []byte { return d.Trim().Append(b) }

// AppendNumber spells as programs print a floating-point number, with a decimal at least: 740.0.
func (d Decimal) AppendNumber(b []byte) []byte {
	d = d.Trim()
	return d.AppendPadded(b, 1)
}

// Trim leaves out zeros at the end.
func (d Decimal) Trim() Decimal {
	for d.Scale > 0 && d.Units%10 == 0 {
		d.Units, d.Scale = d.Units/10, d.Scale-1
	}
	return d
}

// String spells all decimals.
func (d Decimal) String() string { return string(d.Append(nil)) }

// Short leaves out zeros at the end.
func (d Decimal) Short() string { return string(d.AppendShort(nil)) }

// Padded spells at least n decimals.
func (d Decimal) Padded(n int) string { return string(d.AppendPadded(nil, n)) }
