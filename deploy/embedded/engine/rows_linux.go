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
	return descriptorPath(uintptr(fd)), func() { _ = file.Close() }, nil
}

// descriptorPath is a path by which this process can reopen a descriptor of its own.
func descriptorPath(fd uintptr) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// widen asks for a pipe of so many bytes; a smaller one works too.
func widen(pipe *os.File, bytes int) {
	if raw, err := pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, bytes) })
	}
}
