//go:build !linux

package engine

import (
	"fmt"
	"io"
	"os"
)

// holdRows puts the rows of an INSERT where the engine can read them as a file: inline, binary rows would be cut at
// the first newline.
func holdRows(rows io.Reader) (path string, free func(), err error) {
	file, err := os.CreateTemp("", "marketlog-rows-")
	if err != nil {
		return "", nil, fmt.Errorf("making room for the rows: %w", err)
	}
	free = func() {
		file.Close()
		os.Remove(file.Name())
	}
	if _, err := io.Copy(file, rows); err != nil {
		free()
		return "", nil, fmt.Errorf("reading the rows: %w", err)
	}
	return file.Name(), free, nil
}

// descriptorPath is a path by which this process can reopen a descriptor of its own.
func descriptorPath(fd uintptr) string { return fmt.Sprintf("/dev/fd/%d", fd) }

// widen does nothing: the size of pipes cannot be chosen here.
func widen(*os.File, int) {}
