package native

import (
	"math/bits"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// decimals is how many digits after the point our columns keep.
const decimals = 18

// Digits before the point that Decimal(38, 18) and Decimal(76, 18) hold.
const (
	whole128 = 38 - decimals
	whole256 = 76 - decimals
)

// NullableDecimal is a Nullable(Decimal(38, 18)) column.
type NullableDecimal struct {
	nulls  proto.ColUInt8
	values proto.ColDecimal128
}

// Add adds a decimal of the log. An empty one is NULL, and so is one too great to be kept exactly:
// prices and sizes are bounded when they are resolved, but a venue may state any 24 h volume.
func (c *NullableDecimal) Add(s string) {
	null, value := uint8(1), proto.Decimal128{}
	if v, ok := ParseDecimal128(s); ok {
		null, value = 0, v
	}
	c.nulls = append(c.nulls, null)
	c.values = append(c.values, value)
}

// Reset empties the column.
func (c *NullableDecimal) Reset() { c.nulls, c.values = c.nulls[:0], c.values[:0] }

// Rows returns the number of rows.
func (c *NullableDecimal) Rows() int { return len(c.nulls) }

// Type is the type of ClickHouse.
func (c *NullableDecimal) Type() proto.ColumnType { return "Nullable(Decimal(38, 18))" }

// WriteColumn writes what EncodeColumn does.
func (c *NullableDecimal) WriteColumn(p *proto.Writer) { p.ChainBuffer(c.EncodeColumn) }

// EncodeColumn writes which rows are NULL, then a value for every row.
func (c *NullableDecimal) EncodeColumn(b *proto.Buffer) {
	c.nulls.EncodeColumn(b)
	c.values.EncodeColumn(b)
}

// Decimal128 is a decimal of our own making, which is neither empty nor too great.
func Decimal128(s string) proto.Decimal128 {
	v, _ := ParseDecimal128(s)
	return v
}

// ParseDecimal128 reads a decimal of the log as a Decimal(38, 18), cut after 18 digits after the point. It is not ok for what is not a decimal or
// too great.
func ParseDecimal128(s string) (v proto.Decimal128, ok bool) {
	limbs, negative, ok := scaled(s, whole128)
	if !ok {
		return v, false
	}
	return proto.Decimal128(int128(limbs, negative)), true
}

// Decimal256 is the same as a Decimal(76, 18).
func Decimal256(s string) proto.Decimal256 {
	v, negative, _ := scaled(s, whole256)
	if negative {
		negate(&v)
	}
	return proto.Decimal256{
		Low:  proto.UInt128{Low: v[0], High: v[1]},
		High: proto.UInt128{Low: v[2], High: v[3]},
	}
}

func int128(v [4]uint64, negative bool) proto.Int128 {
	if negative {
		negate(&v)
	}
	return proto.Int128{Low: v[0], High: v[1]}
}

// scaled reads a canonical decimal, times 10^18 and cut there, into limbs of 64 bits, least first.
// It is not ok if s is not such a decimal or has more digits before the point than given.
func scaled(s string, whole int) (v [4]uint64, negative, ok bool) {
	s, negative = strings.CutPrefix(s, "-")
	before, after, _ := strings.Cut(s, ".")
	if before == "" || len(before) > whole {
		return v, false, false
	}
	if len(after) > decimals {
		after = after[:decimals]
	}
	if len(before)+len(after) <= decimals { // one word holds the digits, as of nearly all there are
		n, whole := digits(0, before)
		n, part := digits(n, after)
		v[1], v[0] = bits.Mul64(n, powers[decimals-len(after)])
		return v, negative, whole && part
	}
	for len(before) > 0 {
		n := min(len(before), decimals)
		if !shift(&v, before[:n]) {
			return v, false, false
		}
		before = before[n:]
	}
	if !shift(&v, after) {
		return v, false, false
	}
	scale(&v, powers[decimals-len(after)], 0)
	return v, negative, true
}

// digits appends the digits of a text to n; it is not ok if the text has anything else.
func digits(n uint64, text string) (_ uint64, ok bool) {
	for i := range len(text) {
		d := text[i] - '0'
		if d > 9 {
			return n, false
		}
		n = n*10 + uint64(d)
	}
	return n, true
}

// shift appends up to 18 digits to v.
func shift(v *[4]uint64, text string) bool {
	n, ok := digits(0, text)
	scale(v, powers[len(text)], n)
	return ok
}

// scale makes v times factor plus addend. Digits are counted before, so nothing overflows.
func scale(v *[4]uint64, factor, addend uint64) {
	for i := range v {
		high, low := bits.Mul64(v[i], factor)
		sum, carry := bits.Add64(low, addend, 0)
		v[i], addend = sum, high+carry
	}
}

func negate(v *[4]uint64) {
	carry := uint64(1)
	for i := range v {
		v[i], carry = bits.Add64(^v[i], 0, carry)
	}
}

var powers = func() (p [decimals + 1]uint64) {
	p[0] = 1
	for i := 1; i <= decimals; i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()
