package marketlog

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// call is what an operation is asked with. The first fault of it is kept until it is sent.
type call struct {
	method, path string
	query        url.Values
	body         map[string]any
	fault        error
}

// at fills a place of the path. A slash within the value is escaped.
func (c *call) at(name string, value any) {
	text, err := textOf(value)
	if err == nil && (text == "" || text == "." || text == "..") { // another path, once a proxy has normalised it
		err = fmt.Errorf("it is %q, which names nothing", text)
	}
	c.failed(name, err)
	c.path = strings.ReplaceAll(c.path, "{"+name+"}", url.PathEscape(text))
}

// with adds a parameter, unless it is zero.
func (c *call) with(name string, value any) {
	if reflect.ValueOf(value).IsZero() {
		return
	}
	if c.query == nil {
		c.query = url.Values{}
	}
	text, err := textOf(value)
	c.failed(name, err)
	c.query.Set(name, text)
}

// post adds a value of the body, unless it is zero.
func (c *call) post(name string, value any) {
	if of := reflect.ValueOf(value); !of.IsValid() || of.IsZero() {
		return
	}
	if c.body == nil {
		c.body = map[string]any{}
	}
	c.body[name] = value
}

func (c *call) failed(name string, err error) {
	if err != nil && c.fault == nil {
		c.fault = fmt.Errorf("%s: %w", name, err)
	}
}

// textOf is a value as an address has it.
func textOf(value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case []string:
		return strings.Join(value, ","), nil
	case bool:
		return strconv.FormatBool(value), nil
	case *bool:
		return strconv.FormatBool(*value), nil
	case int64:
		return strconv.FormatInt(value, 10), nil
	case *int64:
		return strconv.FormatInt(*value, 10), nil
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), nil
	case time.Time:
		return value.UTC().Format("2006-01-02T15:04:05.000Z"), nil
	default: // an object
		text, err := json.Marshal(value)
		return string(text), err
	}
}

// given is what a pointer points at, none being zero.
func given[T any](at *T) (value T) {
	if at != nil {
		value = *at
	}
	return value
}

// ask makes a call whose answer is JSON.
func ask[Answer any](ctx context.Context, c *Client, asked call) (*Answer, error) {
	if asked.fault != nil {
		return nil, asked.fault
	}
	if len(asked.query) > 0 {
		asked.path += "?" + asked.query.Encode()
	}
	var body any
	if asked.body != nil {
		body = asked.body
	}
	text, err := c.send(ctx, asked.method, asked.path, body)
	if err != nil {
		return nil, err
	}
	answer := new(Answer)
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", asked.path, err)
	}
	return answer, nil
}

// pages gives the rows of all pages. size is how long a page is, most at most; place is where to begin, least at least: the number of a page
// where that is 1, else how many rows were before.
func pages[Row any](size, most, place, least int64, ask func(size, place int64) ([]Row, error)) iter.Seq2[Row, error] {
	if size == 0 || size > most {
		size = most
	}
	return func(yield func(Row, error) bool) {
		for at := max(place, least); ; {
			rows, err := ask(size, at)
			if err != nil {
				yield(*new(Row), err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if int64(len(rows)) < size {
				return // the last page is one that is not full
			}
			if least == 1 {
				at++
			} else {
				at += int64(len(rows))
			}
		}
	}
}
