package exchanges

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// reader reads an HTTP answer of one endpoint. Query are the parameters that were asked with.
type reader func(query url.Values, body []byte, out *adapter.Out) error

// endpoints are what a venue's HTTP interface answers, by the last part of the path. Those that are known and hold no price have
// no reader; what is not in the list is unreadable, unless it is an order book.
type endpoints map[string]reader

// read is Venue.DecodeREST.
func (all endpoints) read(target string, body []byte, out *adapter.Out) error {
	path, query := endpoint(target)
	return all.answer(path[strings.LastIndexByte(path, '/')+1:], path, query, body, out)
}

// with are these endpoints and more: those that only recordings have answers of.
func (all endpoints) with(more endpoints) endpoints {
	both := maps.Clone(all)
	maps.Copy(both, more)
	return both
}

// below is Venue.DecodeREST of a venue whose paths all hold a part, such as its version, and whose endpoints are named by what
// follows it. An answer of another path is of a generation that is retired.
func (all endpoints) below(part string) func(string, []byte, *adapter.Out) error {
	return func(target string, body []byte, out *adapter.Out) error {
		path, query := endpoint(target)
		_, name, found := strings.Cut(path, part)
		if !found {
			return adapter.Retired("answer of %s", path)
		}
		return all.answer(name, path, query, body, out)
	}
}

// ofVersion is Venue.DecodeREST of a venue whose endpoints are named by the last part of the path: an answer of a path without the part
// that names the version is of a generation that is retired.
func (all endpoints) ofVersion(part string) func(string, []byte, *adapter.Out) error {
	return func(target string, body []byte, out *adapter.Out) error {
		if path, _ := endpoint(target); !strings.Contains(path, part) {
			return adapter.Retired("answer of %s", path)
		}
		return all.read(target, body, out)
	}
}

func (all endpoints) answer(name, path string, query url.Values, body []byte, out *adapter.Out) error {
	read, known := all[name]
	switch {
	case !known:
		return unreadAnswer(path)
	case read == nil:
		return nil
	}
	err := read(query, body, out)
	if errors.Is(err, errRetired) {
		return adapter.Retired("answer of %s", path)
	}
	return err
}

var errRetired = errors.New("retired")

// retired is the reader of an endpoint of a generation that the venue has replaced.
func retired(url.Values, []byte, *adapter.Out) error { return errRetired }

// opener takes the rows out of an answer: parse, parseRows or what opens a venue's envelope.
type opener[T any] func(body []byte) ([]T, error)

// list opens an answer that is a list of rows.
func list[T any](body []byte) (rows []T, err error) { return rows, parse(body, &rows) }

// listOrOne opens an answer that is a list of rows, or one of them.
func listOrOne[T any](body []byte) (rows []T, err error) { return rows, parseRows(body, &rows) }

// rows is the reader of an endpoint each of whose rows is an event.
func rows[T any](open opener[T], event func(*T) adapter.Event) reader {
	return func(_ url.Values, body []byte, out *adapter.Out) error {
		all, err := open(body)
		if err != nil {
			return err
		}
		addAll(all, event, out)
		return nil
	}
}

// addAll adds what each row says.
func addAll[T any](rows []T, event func(*T) adapter.Event, out *adapter.Out) {
	for i := range rows {
		out.Add(event(&rows[i]))
	}
}

// parseAll reads a list of rows and adds what each says.
func parseAll[T any](data json.RawMessage, event func(*T) adapter.Event, out *adapter.Out) error {
	all, err := list[T](data)
	if err == nil {
		addAll(all, event, out)
	}
	return err
}

// candleRows is the reader of an endpoint that tells candles as lists; interval spells theirs.
func candleRows(open opener[[]producers.Num], columns candleColumns, interval func(url.Values) string) reader {
	return func(query url.Values, body []byte, out *adapter.Out) error {
		all, err := open(body)
		if err != nil {
			return err
		}
		return columns.add(all, adapter.Event{Channel: "rest", Interval: interval(query)}, out)
	}
}

// markets is Venue.Instruments of a list of rows: those of which market says that they are spot and trade now.
func markets[T any](open opener[T], market func(*T) (adapter.Instrument, bool)) func(string, []byte) ([]adapter.Instrument, error) {
	return func(_ string, body []byte) ([]adapter.Instrument, error) {
		all, err := open(body)
		if err != nil {
			return nil, err
		}
		var trading []adapter.Instrument
		for i := range all {
			if in, ok := market(&all[i]); ok {
				trading = append(trading, in)
			}
		}
		return trading, nil
	}
}
