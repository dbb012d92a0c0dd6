package apy

import (
	"slices"
	"strings"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// declarations are values by name, each of which holds until it is replaced. Each is written when it changes and once
// an hour.
type declarations[T any] struct {
	byName map[string]*declaration[T]
	// list is in the order of names, but for those that came in the open minute.
	list []*declaration[T]
}

type declaration[T any] struct {
	name  string
	value T
	// changed means that value is other than what was written, at the minute written.
	changed bool
	written int64
}

func newDeclarations[T any]() declarations[T] {
	return declarations[T]{byName: map[string]*declaration[T]{}}
}

func (d *declarations[T]) named(name string) *declaration[T] {
	one := d.byName[name]
	if one == nil {
		one = &declaration[T]{name: name, changed: true}
		d.byName[name] = one
		d.list = append(d.list, one)
	}
	return one
}

// value is what holds of a name, the zero value if nothing does.
func (d *declarations[T]) value(name string) (value T) {
	if one := d.byName[name]; one != nil {
		value = one.value
	}
	return value
}

func (d *declarations[T]) load(name string, value T, minute int64) {
	one := d.named(name)
	one.value, one.written, one.changed = value, minute, false
}

// take takes what is declared in a minute, unless what holds equals it or is of a later minute.
func (d *declarations[T]) take(minute int64, name string, value T, equals func(before T) bool) {
	known := d.byName[name] != nil
	one := d.named(name)
	if minute <= one.written || known && equals(one.value) {
		return
	}
	one.value, one.changed = value, true
}

func (d *declarations[T]) close(minute int64, out *processors.Outputs, record func(T) *eventsv1.RateRecord) {
	if out == nil {
		return
	}
	slices.SortFunc(d.list, func(a, b *declaration[T]) int { return strings.Compare(a.name, b.name) })
	for _, one := range d.list {
		if one.changed || minute-one.written >= int64(processors.StateEvery) {
			one.changed, one.written = false, minute
			out.Emit(schemas.TopicRates, 0, one.name, minute, record(one.value))
		}
	}
}
