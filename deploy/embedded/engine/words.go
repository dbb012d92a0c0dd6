package engine

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// LastWords is an io.Writer for the standard error of another process. It passes on what is written and keeps what a report of
// the process's death needs: the beginning of the fault, which names it, and the end, since what lies between is long (the
// stacks of all goroutines). Safe for concurrent use. The zero value passes nothing on.
type LastWords struct {
	// To gets everything that is written; nil: nobody.
	To io.Writer

	mu    sync.Mutex
	line  []byte // the beginning of the line that is being written, while no fault has begun
	fault []byte
	last  []byte
	more  bool // the end has lost its beginning
}

// wordsBytes is how much is kept of the beginning of the fault, and how much of the end.
const wordsBytes = 2 << 10

// faults are how a line begins with which the runtime of Go or of C++ names what ends the process.
var faults = [][]byte{
	[]byte("panic: "), []byte("fatal error: "), []byte("SIG"), []byte("unexpected fault address"),
	[]byte("terminate called"), []byte("libc++abi: "),
}

// Write never fails by itself: its error is that of To.
func (w *LastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep(p)
	w.last = append(w.last, p...)
	if over := len(w.last) - wordsBytes; over > 0 {
		w.last, w.more = append(w.last[:0], w.last[over:]...), true
	}
	if w.To == nil {
		return len(p), nil
	}
	return w.To.Write(p)
}

// keep looks for the first line that names a fault, and keeps it with what follows.
func (w *LastWords) keep(p []byte) {
	for line := range bytes.Lines(p) {
		if len(w.fault) > 0 {
			w.fault = append(w.fault, line[:min(len(line), wordsBytes-len(w.fault))]...)
			continue
		}
		w.line = append(w.line, line[:min(len(line), wordsBytes-len(w.line))]...)
		if line[len(line)-1] != '\n' {
			return // the rest of it comes with the next write
		}
		if slices.ContainsFunc(faults, func(fault []byte) bool { return bytes.HasPrefix(w.line, fault) }) {
			w.fault = append(w.fault, w.line...)
		}
		w.line = w.line[:0]
	}
}

// String is the beginning of the fault, where there was one, and the end of what was written, in whole lines.
func (w *LastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.last
	if !w.more {
		return strings.TrimSpace(string(last))
	}
	if _, whole, ok := bytes.Cut(last, []byte("\n")); ok {
		last = whole
	}
	if len(w.fault) == 0 {
		return strings.TrimSpace(string(last))
	}
	return strings.TrimSpace(string(w.fault)) + "\n…\n" + strings.TrimSpace(string(last))
}
