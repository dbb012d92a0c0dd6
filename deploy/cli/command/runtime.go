// Package command is what all commands share: the streams and environment of one call, the way to the instance that it is
// about, and the output as text or JSON.
package command

import (
	"errors"
	"io"
	"slices"
	"strings"
)

// ErrReported ends a command that has printed all there is to print; the exit code is 1.
var ErrReported = errors.New("reported")

// Runtime is what one call of the program runs with. It is used by one goroutine.
type Runtime struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string

	// Args are the arguments of the call under way.
	Args []string
}

// Variable returns the value of an environment variable; empty where it is not set.
func (rt *Runtime) Variable(name string) string {
	for _, set := range slices.Backward(rt.Env) {
		if value, ok := strings.CutPrefix(set, name+"="); ok {
			return value
		}
	}
	return ""
}
