package chaos

import "syscall"

// dieWithParent ends a child when the test binary does, however that ends. The child leads a group of its own.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
