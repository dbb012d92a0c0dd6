// Package answer helps the decoders of polled sources to read answers: an invalid row harms no other, and what is
// not given stays empty. It also compares answers with the descriptions of their formats.
package answer

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Endpoint is the path of what was asked for, in parts and without its parameters, at least one;
// asked may be a whole address.
func Endpoint(asked string) []string {
	u, err := url.Parse(asked)
	if err != nil {
		return []string{""}
	}
	return strings.Split(strings.Trim(u.Path, "/"), "/")
}

// Rows reads a list whose rows are read one by one: an invalid row harms no other.
func Rows(body []byte) ([]json.RawMessage, error) {
	var rows []json.RawMessage
	if err := json.Unmarshal(body, &rows); err != nil {
		return nil, producers.Unreadable("parsing a list: %w", err)
	}
	return rows, nil
}

// Keys are the members of an object, nil if it is not an object.
func Keys(body []byte) map[string]json.RawMessage {
	var keys map[string]json.RawMessage
	if json.Unmarshal(body, &keys) != nil {
		return nil
	}
	return keys
}

// Has means that an object has all these members.
func Has(keys map[string]json.RawMessage, names ...string) bool {
	for _, name := range names {
		if _, ok := keys[name]; !ok {
			return false
		}
	}
	return true
}

// SomeRow means that one of the rows is an object with all these members.
func SomeRow(rows []json.RawMessage, names ...string) bool {
	return slices.ContainsFunc(rows, func(row json.RawMessage) bool { return Has(Keys(row), names...) })
}

// EachRow reads every row of a list. What read refuses is refused alone.
func EachRow(rows []json.RawMessage, out *poll.Readings, read func(json.RawMessage, *poll.Readings) error) {
	for i, row := range rows {
		Refuse(out, read(row, out), "row %d", i)
	}
}

// Refuse keeps what could not be read, if anything: it is refused alone.
func Refuse(out *poll.Readings, err error, what string, args ...any) {
	if err != nil {
		out.Refused = append(out.Refused, fmt.Errorf("reading %s: %w", fmt.Sprintf(what, args...), err))
	}
}

// Fields reads the fields of one row, and keeps the first that cannot be read.
type Fields struct{ Err error }

// Parse reads a row; false, and Err says why, if it is invalid.
func (f *Fields) Parse(row []byte, v any) bool {
	if err := json.Unmarshal(row, v); err != nil {
		f.Err = producers.Unreadable("parsing: %w", err)
	}
	return f.Err == nil
}

// Time reads RFC 3339; "" is 0, not given.
func (f *Fields) Time(name, s string) int64 {
	return f.Known(name, s, producers.RFC3339(s))
}

// Known passes a time on that could be read from s; Unix nanoseconds.
func (f *Fields) Known(name, s string, ns int64) int64 {
	if ns == producers.BadTime {
		f.Fail(producers.Unreadable("%s: %.40q is no time", name, s))
		return 0
	}
	return ns
}

// Count reads a whole number that is not negative; "" is 0, not given.
func (f *Fields) Count(name string, n producers.Num) uint32 {
	if n == "" {
		return 0
	}
	canonical, err := schemas.CanonicalDecimal(string(n))
	if err != nil {
		f.Fail(fmt.Errorf("%s: %w", name, err))
		return 0
	}
	count, err := strconv.ParseUint(canonical, 10, 32)
	if err != nil {
		f.Fail(fmt.Errorf("%s: %w: %s is no count", name, schemas.Absurd, canonical))
	}
	return uint32(count)
}

// Statistic adds a number under a name, unless none was given.
func (f *Fields) Statistic(to []*eventsv1.Statistic, name string, n producers.Num) []*eventsv1.Statistic {
	if n == "" {
		return to
	}
	value, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		f.Fail(fmt.Errorf("%s: %w: %.40q", name, schemas.NotANumber, string(n)))
		return to
	}
	return append(to, &eventsv1.Statistic{Name: name, Value: value})
}

// Fail keeps the first error.
func (f *Fields) Fail(err error) {
	if f.Err == nil {
		f.Err = err
	}
}

// Links collects addresses, each once. They end in pages of ours: what no browser opens as a page, such as a script,
// is left out.
type Links []*eventsv1.Link

// Add takes addresses of a kind.
func (l *Links) Add(kind string, addresses ...string) {
next:
	for _, address := range addresses {
		address = strings.TrimSpace(address)
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			continue
		}
		for _, known := range *l {
			if known.Url == address {
				continue next
			}
		}
		*l = append(*l, &eventsv1.Link{Kind: kind, Url: address})
	}
}

// ErrorText is the error that an answer with a good status carries, "" if it has none that we know.
func ErrorText(keys map[string]json.RawMessage) string {
	for _, name := range []string{"error", "status"} {
		if text := keys[name]; len(text) > 0 {
			return string(text[:min(len(text), 200)])
		}
	}
	return ""
}
