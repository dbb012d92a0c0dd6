//go:build !linux

package sqlport

import "golang.org/x/sys/unix"

// confine does nothing here: the process is apart, and otherwise as free as its user.
func confine(childOptions) error { return errNoSandbox }

// yield makes this process nicer.
func yield() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness) }
