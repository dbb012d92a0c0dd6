package exchanges

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// parse reads JSON into v; what does not fit is unreadable. Beware of keys that differ only in
// case ("b" and "B"): a field takes both unless a field for each is declared.
func parse(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	return nil
}

// message writes a request; v is a plain value, which always encodes.
func message(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
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

// parseRows reads a list, or the one row that some endpoints answer instead of a list of one.
func parseRows[T any](b []byte, rows *[]T) error {
	if trimmed := bytes.TrimLeft(b, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		*rows = make([]T, 1)
		return parse(b, &(*rows)[0])
	}
	return parse(b, rows)
}

// buyerMaker is the taker's side where a venue tells whether the buyer was the maker: the taker sold then. What is neither true nor
// false is unknown.
func buyerMaker(b json.RawMessage) adapter.Side {
	switch string(b) {
	case "true":
		return adapter.Sell
	case "false":
		return adapter.Buy
	}
	return ""
}

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

// symbolList opens an answer whose rows are its "symbols".
func symbolList[T any](body []byte) ([]T, error) {
	var answer struct {
		Symbols []T `json:"symbols"`
	}
	err := parse(body, &answer)
	return answer.Symbols, err
}
