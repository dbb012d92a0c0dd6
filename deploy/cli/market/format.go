package market

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// unknown is printed where a number is not known.
const unknown = "–"

// amount writes a price with as many digits as people compare: two after the point from a thousand on, four from one on, six
// significant ones below.
func amount(v *float64) string {
	switch {
	case v == nil:
		return unknown
	case math.Abs(*v) >= 1000:
		return grouped(strconv.FormatFloat(*v, 'f', 2, 64))
	case math.Abs(*v) >= 1:
		return strconv.FormatFloat(*v, 'f', 4, 64)
	case *v == 0:
		return "0"
	}
	digits := 5 - int(math.Floor(math.Log10(math.Abs(*v))))
	return strconv.FormatFloat(*v, 'f', min(digits, 20), 64)
}

// grouped puts commas between thousands of a number written out.
func grouped(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// change writes a change in percent with its sign.
func change(v *float64) string {
	if v == nil {
		return unknown
	}
	return fmt.Sprintf("%+.2f %%", *v)
}

// short writes a large amount in thousands (K), millions (M), billions (B) or trillions (T).
func short(v *float64) string {
	if v == nil {
		return unknown
	}
	for _, unit := range []struct {
		least float64
		name  string
	}{{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " K"}} {
		if math.Abs(*v) >= unit.least {
			return strconv.FormatFloat(*v/unit.least, 'f', 2, 64) + unit.name
		}
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// serverTime is how the server writes instants.
const serverTime = "2006-01-02T15:04:05.000Z07:00"

// clock writes an instant in UTC, to the millisecond where it has any.
func clock(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	if t.Nanosecond() == 0 {
		return t.UTC().Format("2006-01-02 15:04:05Z")
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}
