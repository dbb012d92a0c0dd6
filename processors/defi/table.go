package defi

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/processors"
)

// table holds the newest word on each entity of a kind, by key.
type table[T any] struct {
	byKey map[string]*entry[T]
	// list is in the order of the keys, but for those that came since it was sorted; gone entities are in it until then.
	list     []*entry[T]
	unsorted bool
}

type entry[T any] struct {
	key   string
	value T
	// loaded is the minute that the entity was at when it was read back: inputs up to it are in it.
	loaded int64
	// slot is the minute of the hour in which its state is written.
	slot int64
	gone bool
}

func newTable[T any]() table[T] { return table[T]{byKey: map[string]*entry[T]{}} }

// get is the value of an entity, the zero value where there is none.
func (t *table[T]) get(key string) (value T) {
	if held := t.byKey[key]; held != nil {
		return held.value
	}
	return value
}

// set takes the value of a minute.
func (t *table[T]) set(minute int64, key string, value T) {
	if t.loaded(minute, key) {
		return
	}
	t.put(key).value = value
}

// load takes the state of an entity at the end of a minute.
func (t *table[T]) load(minute int64, key string, value T) {
	held := t.put(key)
	held.value, held.loaded = value, minute
}

// drop forgets an entity of which a minute says that it is no more.
func (t *table[T]) drop(minute int64, key string) {
	held := t.byKey[key]
	if held == nil || t.loaded(minute, key) {
		return
	}
	held.gone, t.unsorted = true, true
	delete(t.byKey, key)
}

func (t *table[T]) loaded(minute int64, key string) bool {
	held := t.byKey[key]
	return held != nil && minute <= held.loaded
}

func (t *table[T]) put(key string) *entry[T] {
	held := t.byKey[key]
	if held == nil {
		held = &entry[T]{key: key, slot: slot(key)}
		t.byKey[key] = held
		t.list = append(t.list, held)
		t.unsorted = true
	}
	return held
}

// all are the entities in the order of their keys.
func (t *table[T]) all() []*entry[T] {
	if t.unsorted {
		t.list = slices.DeleteFunc(t.list, func(held *entry[T]) bool { return held.gone })
		slices.SortFunc(t.list, func(a, b *entry[T]) int { return strings.Compare(a.key, b.key) })
		t.unsorted = false
	}
	return t.list
}

// slot spreads the entities over the minutes of an hour, by their keys.
func slot(key string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return int64(h.Sum32() % minutesPerHour)
}

// minutesPerHour is how many parts the states are written in.
const minutesPerHour = uint32(processors.StateEvery / time.Minute)
