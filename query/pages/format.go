package pages

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// formatPrice writes an amount of USD: as many digits as distinguish two prices, thousands grouped.
func formatPrice(v any) string {
	var n float64
	switch v := v.(type) {
	case float64:
		n = v
	case *float64:
		if v == nil {
			return "–"
		}
		n = *v
	}
	switch size := math.Abs(n); {
	case size >= 100:
		return group(strconv.FormatFloat(n, 'f', 2, 64))
	case size >= 0.1, size == 0:
		return strconv.FormatFloat(n, 'f', 4, 64)
	default:
		// Four digits that count, and never an exponent.
		return strconv.FormatFloat(n, 'f', min(24, 3-int(math.Floor(math.Log10(size)))), 64)
	}
}

func group(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	var b strings.Builder
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return sign + b.String() + "." + fraction
}

func formatPercent(v *float64) string {
	if v == nil {
		return "–"
	}
	text := strconv.FormatFloat(*v, 'f', 2, 64)
	switch {
	case text == "-0.00":
		text = "0.00"
	case *v > 0 && text != "0.00":
		text = "+" + text
	}
	return text + "%"
}

// signOf is the class of a change.
func signOf(v *float64) string {
	switch {
	case v == nil || *v == 0:
		return ""
	case *v > 0:
		return "up"
	}
	return "down"
}

// formatAmount writes a large amount of USD shortly.
func formatAmount(v *float64) string {
	if v == nil {
		return "–"
	}
	for _, unit := range []struct {
		from float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if math.Abs(*v) >= unit.from {
			return "$" + strconv.FormatFloat(*v/unit.from, 'f', 2, 64) + unit.name
		}
	}
	return "$" + strconv.FormatFloat(*v, 'f', 2, 64)
}

// formatBps writes a width beside a price in basis points.
func formatBps(width, price float64) string {
	if price == 0 {
		return "–"
	}
	return strconv.FormatFloat(width/price*1e4, 'f', 1, 64)
}

// formatRate writes percent a year, without a sign where it is positive: most rates are.
func formatRate(v any) string {
	var n float64
	switch v := v.(type) {
	case float64:
		n = v
	case *float64:
		if v == nil {
			return "–"
		}
		n = *v
	}
	text := strconv.FormatFloat(n, 'f', 2, 64)
	if text == "-0.00" {
		text = "0.00"
	}
	return text + "%"
}

// formatSigned writes basis points with their sign: below a peg is another thing than above it.
func formatSigned(v *float64) string {
	if v == nil {
		return "–"
	}
	text := strconv.FormatFloat(*v, 'f', 1, 64)
	switch {
	case text == "-0.0":
		return "0.0"
	case *v > 0 && text != "0.0":
		return "+" + text
	}
	return text
}

// formatScore writes a score from 0 to 100.
func formatScore(v *float64) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(*v, 'f', 1, 64)
}

func formatClock(iso string) string {
	at, err := time.Parse(time.RFC3339, iso)
	if err != nil {
		return iso
	}
	return at.UTC().Format(time.TimeOnly)
}

// visible is a text of others without what is not seen, or turns the direction of a line around.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// plain is a text of others on a terminal: whatever is not a letter, mark, number, punctuation or symbol could command the terminal
// or turn the line around. It is cut to a width in letters.
func plain(text string, width int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if !unicode.IsPrint(r) {
			r = '?'
		}
		if n++; n > width {
			return strings.TrimRight(b.String(), " ")
		}
		b.WriteRune(r)
	}
	return b.String()
}
