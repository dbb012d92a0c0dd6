package engine

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// holdRows puts the rows of an INSERT where the engine can read them as a file: inline, binary rows would be cut at
// the first newline. They stay in memory.
func holdRows(rows io.Reader) (path string, free func(), err error) {
	fd, err := unix.MemfdCreate("rows", unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, fmt.Errorf("making room for the rows: %w", err)
	}
	file := os.NewFile(uintptr(fd), "rows")
	if _, err := io.Copy(file, rows); err != nil {
		_ = file.Close()
		return "", nil, fmt.Errorf("reading the rows: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { _ = file.Close() }, nil
}
