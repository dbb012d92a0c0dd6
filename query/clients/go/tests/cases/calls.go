package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"

	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

// make makes the call of a case.
func (c testCase) make(ctx context.Context, client *marketlog.Client) (any, error) {
	parameters, _ := c.With["parameters"].(map[string]any)
	query, _ := c.With["query"].(string)
	switch c.Call {
	case "sql":
		return client.SQL(ctx, query, parameters)
	case "sqlFile":
		return client.SQLFile(ctx, query, parameters, marketlog.FileFormat(c.With["format"].(string)))
	case "stream":
		var options marketlog.StreamOptions
		if left := fill(reflect.ValueOf(&options).Elem(), c.With); len(left) > 0 {
			return nil, fmt.Errorf("the stream has no option for %v", left)
		}
		stream := client.Stream(options)
		if c.Messages {
			return taken(stream.Messages(ctx), c.Take, func(m marketlog.Message) any { return m.JSON })
		}
		return taken(stream.Prices(ctx), c.Take, whole)
	case "pages":
		return c.pages(ctx, client)
	}
	results, err := c.called(ctx, client, strings.ToUpper(c.Call[:1])+c.Call[1:])
	if err != nil {
		return nil, err
	}
	err, _ = results[1].Interface().(error)
	return results[0].Interface(), err
}

// pages makes a call whose rows are iterated over.
func (c testCase) pages(ctx context.Context, client *marketlog.Client) (any, error) {
	results, err := c.called(ctx, client, "Iter"+strings.TrimPrefix(strings.TrimPrefix(c.Of, "list"), "search"))
	if err != nil {
		return nil, err
	}
	var rows []any
	for row, err := range results[0].Seq2() {
		if err, is := err.Interface().(error); is {
			return nil, err
		}
		rows = append(rows, row.Interface())
	}
	return rows, nil
}

// called calls a method: what is not an option of it is its one argument besides.
func (c testCase) called(ctx context.Context, client *marketlog.Client, name string) ([]reflect.Value, error) {
	method := reflect.ValueOf(client).MethodByName(name)
	if !method.IsValid() {
		return nil, fmt.Errorf("the client has no %s", name)
	}
	of := method.Type()
	arguments := []reflect.Value{reflect.ValueOf(ctx)}
	with, options := c.With, reflect.Value{}
	if last := of.In(of.NumIn() - 1); last.Kind() == reflect.Pointer {
		options = reflect.New(last.Elem())
		with = fill(options.Elem(), c.With)
	}
	for _, value := range with {
		arguments = append(arguments, reflect.New(of.In(1)).Elem())
		set(arguments[len(arguments)-1], value)
	}
	if options.IsValid() {
		arguments = append(arguments, options)
	}
	if len(arguments) != of.NumIn() {
		return nil, fmt.Errorf("%s takes %d arguments, and has %d of %v", name, of.NumIn(), len(arguments), c.With)
	}
	return method.Call(arguments), nil
}

// fill sets fields by the names that parameters have in the API, and returns what has no field.
func fill(into reflect.Value, with map[string]any) map[string]any {
	left := map[string]any{}
	for name, value := range with {
		plain := strings.NewReplacer("_", "", "-", "").Replace(name)
		field := into.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, plain) })
		if !field.IsValid() {
			left[name] = value
			continue
		}
		set(field, value)
	}
	return left
}

// set gives a field or an argument a value of JSON; {ago: seconds} and a text may be a time.
func set(into reflect.Value, value any) {
	if _, is := into.Interface().(time.Time); is {
		at, err := time.Parse(time.RFC3339, fmt.Sprint(value))
		if ago, is := value.(map[string]any); is {
			at = time.Now().Add(-time.Duration(ago["ago"].(float64) * float64(time.Second)))
		} else if err != nil {
			at, _ = time.Parse(time.DateOnly, fmt.Sprint(value)) // zero, which is not sent, fails the case
		}
		into.Set(reflect.ValueOf(at))
		return
	}
	text, _ := json.Marshal(value) // it was JSON
	if err := json.Unmarshal(text, into.Addr().Interface()); err != nil {
		panic(err)
	}
}

// taken are so many elements, or those before the end.
func taken[Element any](from iter.Seq2[Element, error], count int, as func(Element) any) (got []any, err error) {
	for one, err := range from {
		if err != nil {
			return nil, err
		}
		if got = append(got, as(one)); len(got) == count {
			break
		}
	}
	return got, nil
}

func whole[Element any](one Element) any { return one }
