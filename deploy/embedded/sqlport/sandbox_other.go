//go:build !linux

package sqlport

import "golang.org/x/sys/unix"

// confine only lets the server go first where the processors are busy: the process is apart, and otherwise as free as its user.
func confine(childOptions) error {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	return errNoSandbox
}
