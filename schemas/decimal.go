package schemas

import (
	"fmt"
	"strconv"
	"strings"
)

// decimalDigits bounds a canonical decimal. An exponent can ask for any number of zeros, and
// what needs more than these is not a price.
const decimalDigits = 80

// CanonicalDecimal writes a decimal number without exponent, plus sign, leading or trailing
// zeros: "9.20E-7" becomes "0.00000092", "-0.0" becomes "0". One value has one spelling, so
// spellings can be compared and hashed. A number that is canonical already is returned as it
// is, without allocation. The error wraps NotANumber, or Absurd for a number that would need
// more than 80 digits.
func CanonicalDecimal(s string) (string, error) {
	if isCanonical(s) {
		return s, nil
	}
	mantissa, exponent, err := splitExponent(s)
	if err != nil {
		return "", err
	}
	sign := ""
	switch {
	case strings.HasPrefix(mantissa, "-"):
		sign, mantissa = "-", mantissa[1:]
	case strings.HasPrefix(mantissa, "+"):
		mantissa = mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole == "" && fraction == "" {
		return "", notANumber(s)
	}
	for _, part := range [...]string{whole, fraction} {
		for i := range len(part) {
			if part[i] < '0' || part[i] > '9' {
				return "", notANumber(s)
			}
		}
	}
	// digits × 10^-scale is the number.
	digits, scale := whole+fraction, len(fraction)-exponent
	trimmed := strings.TrimRight(digits, "0")
	scale -= len(digits) - len(trimmed)
	digits = strings.TrimLeft(trimmed, "0")
	if digits == "" {
		return "0", nil
	}
	if max(len(digits), scale, len(digits)-scale) > decimalDigits {
		return "", fmt.Errorf("%w: %.40q needs more than %d digits", Absurd, s, decimalDigits)
	}
	switch {
	case scale <= 0:
		return sign + digits + strings.Repeat("0", -scale), nil
	case scale >= len(digits):
		return sign + "0." + strings.Repeat("0", scale-len(digits)) + digits, nil
	default:
		return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:], nil
	}
}

// isCanonical recognizes the common spelling: digits, perhaps a point and digits, no zero too many.
func isCanonical(s string) bool {
	if s == "" || len(s) > decimalDigits {
		return false
	}
	point := -1
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
		case c == '.' && point < 0:
			point = i
		default:
			return false
		}
	}
	if point < 0 {
		return s[0] != '0' || len(s) == 1
	}
	leading := point == 1 || (point > 1 && s[0] != '0')
	return leading && point < len(s)-1 && s[len(s)-1] != '0'
}

func splitExponent(s string) (mantissa string, exponent int, err error) {
	at := strings.IndexAny(s, "eE")
	if at < 0 {
		return s, 0, nil
	}
	text, negative := s[at+1:], false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative, text = text[0] == '-', text[1:]
	}
	if text == "" {
		return "", 0, notANumber(s)
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return "", 0, notANumber(s)
		}
		// Beyond any bound the digit count refuses it; stop before the sum overflows.
		exponent = min(exponent*10+int(text[i]-'0'), 1_000_000_000)
	}
	if negative {
		exponent = -exponent
	}
	return s[:at], exponent, nil
}

func notANumber(s string) error { return fmt.Errorf("%w: %.40q", NotANumber, s) }

// Float reads an exact decimal of the log as a float; 0 where it is not one.
func Float(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}
