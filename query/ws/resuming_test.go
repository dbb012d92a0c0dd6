package ws

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
)

// resuming is a client of a channel that is cut off again and again, and goes on with its cursor.
type resuming struct {
	asks string // without a cursor
	cuts int
	// beyond are more minutes than memory holds; between two cuts there are fewer than minutes and than messages.
	beyond, minutes, messages int
	// pass lets minutes pass, take takes what a message holds.
	pass func(minutes int)
	take func(data []byte)
}

// resume plays a client to its end. It was far behind once and a minute behind once, whatever is drawn, so that it is served from the
// store and from memory.
func (w *fixture) resume(rng *rand.Rand, r resuming) {
	w.t.Helper()
	c := w.open(dialing{query: r.asks})
	cursor, sources := "", map[string]int{}
	read := func() (ended bool) {
		text, err := c.next()
		if err != nil {
			w.t.Fatal(err)
		}
		var m struct {
			Type, Cursor, Source string
			Data                 json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
		sources[m.Source]++
		cursor = cmp.Or(m.Cursor, cursor)
		if len(m.Data) > 0 {
			r.take(m.Data)
		}
		return m.Type == "live"
	}
	for cursor == "" {
		read()
	}
	for cut := range r.cuts + 1 {
		c.CloseNow()
		messages := rng.IntN(r.messages)
		switch {
		case cut == 0:
			r.pass(r.beyond)
			messages = math.MaxInt
		case cut == 1:
			r.pass(1)
			messages = math.MaxInt
		case cut == r.cuts:
			messages = math.MaxInt
		default:
			r.pass(rng.IntN(r.minutes))
		}
		c = w.open(dialing{query: r.asks + "&cursor=" + cursor})
		for n := 0; n < messages && !read(); n++ {
		}
	}
	if sources["memory"] == 0 || sources["store"] == 0 {
		w.t.Errorf("resumed from %v, want from memory and from the store", sources)
	}
}
