package exchanges

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// reader reads an HTTP answer of one endpoint. Query are the parameters that were asked with.
type reader func(query url.Values, body []byte, out *adapter.Out) error

// endpoints are what a venue's HTTP interface answers, by their names. Those that are known and hold no price have no reader; what is
// not in the list is unreadable, unless it is an order book.
type endpoints map[string]reader

// with are these endpoints and more: those that only recordings have answers of.
func (all endpoints) with(more endpoints) endpoints {
	both := maps.Clone(all)
	maps.Copy(both, more)
	return both
}

// decodeREST is what Venue.DecodeREST is.
type decodeREST = func(target string, body []byte, out *adapter.Out) error

// byName is Venue.DecodeREST of a venue whose endpoints are named by the last part of the path.
func (all endpoints) byName() decodeREST { return all.ofVersion("") }

// ofVersion is the same where a part of the path names the version: without it, an answer is of a generation that is retired.
func (all endpoints) ofVersion(part string) decodeREST {
	return all.named(func(path string) (name string, current bool) {
		return path[strings.LastIndexByte(path, '/')+1:], strings.Contains(path, part)
	})
}

// below is Venue.DecodeREST of a venue whose endpoints are named by what follows a part of the path, such as the version; firstBelow is
// that of one where only the next part names them: the rest is a market.
func (all endpoints) below(part string) decodeREST {
	return all.named(func(path string) (name string, current bool) {
		_, name, current = strings.Cut(path, part)
		return name, current
	})
}

func (all endpoints) firstBelow(part string) decodeREST {
	return all.named(func(path string) (name string, current bool) {
		_, after, current := strings.Cut(path, part)
		name, _, _ = strings.Cut(after, "/")
		return name, current
	})
}

// named is Venue.DecodeREST. name identifies an endpoint by the path, and whether it is of the generation that the venue has now.
func (all endpoints) named(name func(path string) (name string, current bool)) decodeREST {
	return func(target string, body []byte, out *adapter.Out) error {
		path, query := endpoint(target)
		endpoint, current := name(path)
		read, known := all[endpoint]
		switch {
		case !known && endpoint != "":
			return unreadAnswer(path)
		case !current:
			return adapter.Retired("answer of %s", path)
		case read == nil:
			return nil
		}
		err := read(query, body, out)
		if errors.Is(err, errRetired) {
			return adapter.Retired("answer of %s", path)
		}
		return err
	}
}

var errRetired = errors.New("retired")

// retired is the reader of an endpoint of a generation that the venue has replaced.
func retired(url.Values, []byte, *adapter.Out) error { return errRetired }

// opener takes the rows out of an answer. e has what the answer says about all of them.
type opener func(body []byte) (rows []byte, e adapter.Event, err error)

// bare opens an answer that is its rows.
func bare(body []byte) ([]byte, adapter.Event, error) { return body, adapter.Event{}, nil }

// envelope says how a venue wraps its answers. Paths are keys with dots between them.
type envelope struct {
	// Code shows by the value OK that the answer is not an error, which Message has then; "" is an envelope without a verdict.
	Code, OK, Message string
	// Rows is the path of what was asked for.
	Rows string
	// Time, in Unix milliseconds, and Symbol are the paths of what all rows share; "" is absent.
	Time, Symbol string
}

// opener compiles the envelope.
func (v envelope) opener() opener {
	shape, places := nested([]string{v.Code, v.Message, v.Rows, v.Time, v.Symbol})
	return func(body []byte) (rows []byte, e adapter.Event, err error) {
		p := reflect.New(shape)
		if err := parse(body, p.Interface()); err != nil {
			return nil, e, err
		}
		value := func(i int) []byte {
			if places[i] == nil {
				return nil
			}
			return p.Elem().FieldByIndex(places[i]).Bytes()
		}
		if code := value(0); v.Code != "" && string(text(code)) != v.OK {
			if code == nil {
				return nil, e, producers.Unreadable("an answer without %s", v.Code)
			}
			return nil, e, producers.Unreadable("error %s: %s", code, text(value(1)))
		}
		if rows = value(2); rows == nil {
			rows = []byte("null")
		}
		e.Time, e.Symbol = producers.Unix(text(value(3)), time.Millisecond), string(text(value(4)))
		return rows, e, nil
	}
}

// nested is the struct that reads the values at some paths, and the place of each in it; that of "" is nil. No path leads through another.
func nested(paths []string) (shape reflect.Type, places [][]int) {
	var keys []string
	below := map[string][]string{}
	for _, path := range paths {
		key, rest, _ := strings.Cut(path, ".")
		if key != "" && below[key] == nil {
			keys = append(keys, key)
		}
		below[key] = append(below[key], rest)
	}
	var fields []reflect.StructField
	inner := map[string][][]int{}
	for i, key := range keys {
		kind := reflect.TypeFor[json.RawMessage]()
		if below[key][0] != "" {
			kind, inner[key] = nested(below[key])
		}
		fields = append(fields, field(i, key, kind))
	}
	for _, path := range paths {
		key, rest, _ := strings.Cut(path, ".")
		var place []int
		if i := slices.Index(keys, key); i >= 0 {
			place = []int{i}
			if rest != "" {
				place = append(place, inner[key][slices.Index(below[key], rest)]...)
			}
		}
		places = append(places, place)
	}
	return reflect.StructOf(fields), places
}

// text is a JSON value as a Num; that of nothing is "".
func text(value []byte) (n producers.Num) {
	if value != nil {
		_ = n.UnmarshalJSON(value) // fails never: value is JSON
	}
	return n
}

// in is the reader of an endpoint that answers a list of such objects.
func (r *objects) in(open opener) reader { return readRows(open, r.list) }

// orOneIn is the reader of an endpoint that answers a list of such objects, or one of them.
func (r *objects) orOneIn(open opener) reader { return readRows(open, r.listOrOne) }

func readRows(open opener, read func([]byte, adapter.Event, *adapter.Out) error) reader {
	return func(_ url.Values, body []byte, out *adapter.Out) error {
		rows, e, err := open(body)
		if err != nil {
			return err
		}
		return read(rows, e, out)
	}
}

// in is the reader of an endpoint that reports candles as lists; interval spells theirs.
func (c candleColumns) in(open opener, interval func(url.Values) string) reader {
	return func(query url.Values, body []byte, out *adapter.Out) error {
		body, e, err := open(body)
		if err != nil {
			return err
		}
		rows, err := list[[]producers.Num](body)
		if err != nil {
			return err
		}
		// The time of the answer is not that of its candles.
		return c.add(rows, adapter.Event{Symbol: e.Symbol, Channel: "rest", Interval: interval(query)}, out)
	}
}

// candlesIn is the reader of an endpoint that reports candles as such objects.
func (r *objects) candlesIn(open opener, interval func(url.Values) string) reader {
	return func(query url.Values, body []byte, out *adapter.Out) error {
		rows, e, err := open(body)
		if err != nil {
			return err
		}
		e.Interval = interval(query)
		return r.list(rows, e, out)
	}
}

// rows is the reader of an endpoint each of whose rows is an event of its own kind.
func rows[T any](open opener, event func(*T) adapter.Event) reader {
	return func(_ url.Values, body []byte, out *adapter.Out) error {
		body, _, err := open(body)
		if err != nil {
			return err
		}
		return parseAll(body, event, out)
	}
}

// list reads a list of rows.
func list[T any](body []byte) (rows []T, err error) { return rows, parse(body, &rows) }

// listOrOne reads a list of rows, or the one row that some messages have instead of a list of one.
func listOrOne[T any](body []byte) (rows []T, err error) {
	if !isObject(body) {
		return list[T](body)
	}
	rows = make([]T, 1)
	return rows, parse(body, &rows[0])
}

// parseAll reads a list of rows and adds what each has.
func parseAll[T any](data []byte, event func(*T) adapter.Event, out *adapter.Out) error {
	all, err := list[T](data)
	if err == nil {
		addAll(all, event, out)
	}
	return err
}

// addAll adds what each row has.
func addAll[T any](rows []T, event func(*T) adapter.Event, out *adapter.Out) {
	for i := range rows {
		out.Add(event(&rows[i]))
	}
}
