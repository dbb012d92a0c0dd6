package schemas

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
)

// SymbolQuestion is what somebody asks of a symbol, as the names of numbers of the answer hold it: all that the answer depends on, apart from what
// is known of coins.
type SymbolQuestion struct {
	Symbol string
	// Source is a venue, a source of reference data, or general, by its slug.
	Source string
	// Price of one unit of what the symbol names, in Quote; 0 if not known.
	Price float64
	// Quote is what the price is in, as the venue spells it; empty for USD.
	Quote   string
	Context SymbolContext
}

// questionHints are the names of what a question may hold beside source and symbol, in the order in which it is written.
var questionHints = []string{"price", "quote", "exchange", "platform", "contract", "name"}

// hint returns where a hint other than the price is.
func (q *SymbolQuestion) hint(name string) *string {
	switch name {
	case "quote":
		return &q.Quote
	case "exchange":
		return &q.Context.Exchange
	case "platform":
		return &q.Context.Platform
	case "contract":
		return &q.Context.Contract
	default:
		return &q.Context.Name
	}
}

// String writes a question as segments of a path: the source, the symbol, and what else was given, as kraken/XBT or general/BTC/price=0.016/quote=eur.
// Bytes that a path could not hold, or that part it, are ~ and two hexadecimal digits, so that it stays the same however often a path is unescaped.
func (q SymbolQuestion) String() string {
	parts := []string{escapeSegment(cmp.Or(VenueSlug(q.Source), GeneralSource)), escapeSegment(strings.TrimSpace(q.Symbol))}
	if q.Price > 0 {
		parts = append(parts, questionHints[0]+"="+strconv.FormatFloat(q.Price, 'g', -1, 64))
	}
	for _, name := range questionHints[1:] {
		if text := *q.hint(name); text != "" {
			parts = append(parts, name+"="+escapeSegment(text))
		}
	}
	return strings.Join(parts, "/")
}

// ParseSymbolQuestion reads segments that String has written, and returns those that follow them; false where they are not a source, a symbol and hints,
// each at most once and in order.
func ParseSymbolQuestion(parts []string) (q SymbolQuestion, rest []string, ok bool) {
	if len(parts) < 2 {
		return q, nil, false
	}
	var fits [2]bool
	q.Source, fits[0] = unescapeSegment(parts[0])
	q.Symbol, fits[1] = unescapeSegment(parts[1])
	if !fits[0] || !fits[1] || q.Source == "" || q.Symbol == "" {
		return q, nil, false
	}
	rest = parts[2:]
	for next := 0; len(rest) > 0; rest = rest[1:] {
		name, text, is := strings.Cut(rest[0], "=")
		if !is {
			break
		}
		at := slices.Index(questionHints, name)
		text, ok = unescapeSegment(text)
		if at < next || !ok || text == "" {
			return q, nil, false
		}
		if next = at + 1; at > 0 {
			*q.hint(name) = text
			continue
		}
		price, err := strconv.ParseFloat(text, 64)
		if err != nil || !(price > 0) || math.IsInf(price, 0) {
			return q, nil, false
		}
		q.Price = price
	}
	return q, rest, true
}

// escapeSegment writes a text as a segment of a path: letters, digits, -, _ and . stay, but not dots alone, which are steps of a path.
func escapeSegment(text string) string {
	dots := strings.Trim(text, ".") == ""
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && !dots:
			b.WriteByte(c)
		default:
			b.WriteString("~" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// unescapeSegment reads what escapeSegment has written; false for a ~ without two digits after it.
func unescapeSegment(text string) (string, bool) {
	var b strings.Builder
	for {
		before, after, escaped := strings.Cut(text, "~")
		b.WriteString(before)
		if !escaped {
			return b.String(), true
		}
		if len(after) < 2 {
			return "", false
		}
		c, err := hex.DecodeString(after[:2])
		if err != nil {
			return "", false
		}
		b.Write(c)
		text = after[2:]
	}
}
