package producers

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// Num is a number as the venue spelled it, as a JSON number or in a string; null and "" are "".
// It keeps every digit. Decoding one never fails: Out.Add refuses what is not a number, so that one
// bad row does not affect other rows.
type Num string

// UnmarshalJSON keeps the text of any JSON value.
func (n *Num) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*n = ""
	case len(b) >= 2 && b[0] == '"' && isPlain(b[1:len(b)-1]):
		*n = Num(b[1 : len(b)-1])
	case len(b) >= 2 && b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*n = Num(s)
	default:
		*n = Num(b)
	}
	return nil
}

// isPlain reports whether the inside of a JSON string spells itself, as that of a number does.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// BadTime is a time that could not be read. Out.Add refuses an event that has it.
const BadTime = math.MinInt64

// RFC3339 reads a time with any number of fraction digits as Unix nanoseconds. "" is 0, "the
// venue has no time", and so is a year before 1970 ("0001-01-01", an unset time of the venue's).
func RFC3339(s string) int64 {
	if s == "" {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	switch {
	case err != nil || t.Year() > 2260:
		return BadTime
	case t.Year() < 1970:
		return 0
	}
	return t.UnixNano()
}

// Unix reads a decimal number of units since 1970, with or without fraction, as Unix
// nanoseconds, exactly: a float would lose the last digits. "" is 0.
func Unix(n Num, unit time.Duration) int64 {
	if n == "" {
		return 0
	}
	whole, fraction, _ := strings.Cut(string(n), ".")
	total, scale := int64(0), int64(unit)
	for i := range len(whole) {
		digit := int64(whole[i]) - '0'
		if digit < 0 || digit > 9 || total > (math.MaxInt64-digit)/10 {
			return BadTime
		}
		total = total*10 + digit
	}
	if whole == "" || total > math.MaxInt64/scale-1 {
		return BadTime
	}
	total *= scale
	for i := range len(fraction) {
		digit := int64(fraction[i]) - '0'
		if digit < 0 || digit > 9 {
			return BadTime
		}
		scale /= 10
		total += digit * scale
	}
	return total
}
