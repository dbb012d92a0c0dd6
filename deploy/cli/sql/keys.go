package sql

import (
	"io"
	"slices"
	"strings"
	"sync"
)

const ctrlC = 3 // what a raw terminal sends for it

// keys reads a terminal at all times, so that Ctrl-C is seen while a statement runs; what else is typed then is read later.
type keys struct {
	typed chan []byte
	end   error // why typed was closed
	rest  []byte

	mu        sync.Mutex
	interrupt func() // nil where Ctrl-C is like other keys
}

func newKeys(from io.Reader) *keys {
	k := &keys{typed: make(chan []byte, 64)}
	go func() { // until the input ends: a read of a terminal cannot be ended otherwise
		defer close(k.typed)
		for {
			piece := make([]byte, 4096)
			n, err := from.Read(piece)
			if piece = piece[:n]; !k.interrupted(piece) && n > 0 {
				k.typed <- piece
			}
			if err != nil {
				k.end = err
				return
			}
		}
	}()
	return k
}

func (k *keys) interrupted(piece []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.interrupt == nil || !slices.Contains(piece, ctrlC) {
		return false
	}
	k.interrupt()
	return true
}

// onInterrupt has Ctrl-C call a function until the returned one is called.
func (k *keys) onInterrupt(do func()) (end func()) {
	set := func(f func()) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.interrupt = f
	}
	set(do)
	return func() { set(nil) }
}

// Read implements io.Reader.
func (k *keys) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		piece, ok := <-k.typed
		if !ok {
			return 0, k.end
		}
		k.rest = piece
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// complete completes the word before a position as far as the words that begin so agree.
func complete(words []string, line string, pos int) (string, int) {
	begin := pos
	for begin > 0 && isName(line[begin-1]) {
		begin--
	}
	word, common, found := line[begin:pos], "", false
	for _, w := range words {
		switch {
		case word == "" || !strings.HasPrefix(w, word):
		case !found:
			common, found = w, true
		default:
			n := 0
			for n < min(len(common), len(w)) && common[n] == w[n] {
				n++
			}
			common = common[:n]
		}
	}
	if !found {
		return line, pos
	}
	return line[:begin] + common + line[pos:], begin + len(common)
}

func isName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
