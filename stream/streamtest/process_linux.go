package streamtest

import "syscall"

// dieWithParent makes the kernel kill the child when this process ends in whatever way.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
