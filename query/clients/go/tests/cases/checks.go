package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

// kinds are the types of errors, by their names in cases.json.
var kinds = map[string]func(error) (any, bool){
	"GapError": as[*marketlog.GapError], "InvalidRequest": as[*marketlog.InvalidRequest], "NotAuthenticated": as[*marketlog.NotAuthenticated],
	"NotFound": as[*marketlog.NotFound], "PlanRequired": as[*marketlog.PlanRequired], "SQLError": as[*marketlog.SQLError],
}

func as[Kind error](err error) (any, bool) { return errors.AsType[Kind](err) }

// check returns what does not hold of an answer.
func (c testCase) check(answer any, err error) (found []string) {
	if c.Fails != nil {
		return c.checkFailure(answer, err)
	}
	if err != nil {
		return []string{err.Error()}
	}
	bytes, isFile := answer.([]byte)
	if rows, is := answer.(*marketlog.Rows); is {
		answer = map[string]any{"columns": rows.Columns, "types": rows.Types, "rows": rows.Rows}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return []string{err.Error()}
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return []string{err.Error()}
	}
	for place, want := range c.Holds {
		got := at(plain, place)
		if isFile {
			got = hex.EncodeToString(bytes)
		}
		if !holds(got, want) {
			found = append(found, fmt.Sprintf("%q of the answer is %.200s, want %v", place, fmt.Sprint(got), want))
		}
	}
	if c.Distinct != "" {
		seen := map[any]bool{}
		for _, row := range plain.([]any) {
			if name := at(row, c.Distinct); seen[name] {
				found = append(found, fmt.Sprintf("%s comes twice: %v", c.Distinct, name))
			} else {
				seen[name] = true
			}
		}
	}
	return found
}

// checkFailure returns what does not hold of an error.
func (c testCase) checkFailure(answer any, err error) (found []string) {
	kind := c.Fails["kind"].(string)
	is, known := kinds[kind]
	if !known {
		return []string{"no error is " + kind}
	}
	failure, ok := is(err)
	if !ok {
		return []string{fmt.Sprintf("got %.200s, %v; want %s", fmt.Sprint(answer), err, kind)}
	}
	for name, want := range c.Fails {
		if name == "kind" {
			continue
		}
		field := reflect.ValueOf(failure).Elem().FieldByName(strings.ToUpper(name[:1]) + name[1:])
		if !field.IsValid() || fmt.Sprint(field.Interface()) != fmt.Sprint(want) {
			found = append(found, fmt.Sprintf("%s of %v is not %v", name, failure, want))
		}
	}
	return found
}

// at is what is at a place of an answer; nil where there is nothing.
func at(answer any, place string) any {
	if place == "" {
		return answer
	}
	for step := range strings.SplitSeq(place, ".") {
		switch within := answer.(type) {
		case map[string]any:
			answer = within[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(within) {
				return nil
			}
			answer = within[i]
		default:
			return nil
		}
	}
	return answer
}

func holds(got, want any) bool {
	rule, is := want.(map[string]any)
	if !is {
		return got == want
	}
	if above, is := rule["above"]; is {
		number, is := got.(float64)
		return is && number > above.(float64)
	}
	if least, is := rule["atLeast"]; is {
		of := reflect.ValueOf(got)
		return got != nil && (of.Kind() == reflect.Slice || of.Kind() == reflect.String) && of.Len() >= int(least.(float64))
	}
	text, is := got.(string)
	begins, isText := rule["begins"].(string)
	return is && isText && strings.HasPrefix(text, begins)
}
