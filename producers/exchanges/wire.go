package exchanges

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	fast "github.com/segmentio/encoding/json"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// mostFast is up to how many bytes are parsed by the faster parser, in a quarter to a half of the time. It calls itself for each level of nesting, and knows no limit
// of them: of these bytes it is no more than the 10,000 of encoding/json, of MaxFrame it would take more of a stack than a program may have, which ends it.
const mostFast = 10_000

// parse reads JSON into v; what does not fit is unreadable. Beware of keys that differ only in
// case ("b" and "B"): a field takes both unless a field for each is declared.
func parse(b []byte, v any) error {
	// What it refuses, json.Number in quotes for one, encoding/json may take.
	if len(b) <= mostFast && fast.Unmarshal(b, v) == nil {
		return nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	return nil
}

// symbols names the markets of a request.
func symbols(markets []adapter.Instrument) []string {
	names := make([]string, len(markets))
	for i, m := range markets {
		names[i] = m.Symbol
	}
	return names
}

// endpoint splits the target of an HTTP answer into its path and its parameters.
func endpoint(target string) (path string, query url.Values) {
	u, err := url.Parse(target)
	if err != nil {
		return target, nil
	}
	return strings.TrimSuffix(u.Path, "/"), u.Query()
}

// unreadAnswer is what an HTTP answer comes to that an adapter does not read: nothing if it is an order
// book, which holds no price that was paid, else it is unreadable.
func unreadAnswer(target string) error {
	path, _ := endpoint(target)
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		switch strings.NewReplacer("-", "", "_", "").Replace(part) {
		case "book", "books", "booksfull", "depth", "getbook", "mergedepth", "orderbook", "productbook":
			return nil
		}
	}
	return producers.Unreadable("answer of unknown endpoint %q", path)
}

// bestPrice is the first level's of a side of a book, whose levels begin with a price; "" if it is empty.
func bestPrice(levels [][]producers.Num) producers.Num {
	if len(levels) == 0 || len(levels[0]) == 0 {
		return ""
	}
	return levels[0][0]
}

// isBuyerMaker is the taker's side where a venue reports whether the buyer was the maker: the taker sold then. What is neither true nor
// false is unknown.
var isBuyerMaker = sides("false", "true")

// sides reads the taker's side by what a venue calls it. What is neither is unknown.
func sides(buy, sell producers.Num) func(producers.Num) adapter.Side {
	return func(n producers.Num) adapter.Side {
		switch n {
		case buy:
			return adapter.Buy
		case sell:
			return adapter.Sell
		}
		return ""
	}
}

// clock reads a time since 1970 in units, as Unix nanoseconds.
func clock(unit time.Duration) func(producers.Num) int64 {
	return func(n producers.Num) int64 { return producers.Unix(n, unit) }
}

// rfc3339 reads a time as Unix nanoseconds.
func rfc3339(n producers.Num) int64 { return producers.RFC3339(string(n)) }

// unixByDigits reads a time since 1970 of a venue whose unit is not certain, as Unix nanoseconds: a time of this century has 13 digits in
// milliseconds, 16 in microseconds and 19 in nanoseconds. "" is 0, "the venue has no time".
func unixByDigits(n producers.Num) int64 {
	switch {
	case len(n) <= 13:
		return producers.Unix(n, time.Millisecond)
	case len(n) <= 16:
		return producers.Unix(n, time.Microsecond)
	}
	return producers.Unix(n, time.Nanosecond)
}
