package chaos

import "syscall"

// dieWithParent ends a child when the test binary does, however that ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
