//go:build !linux

package chaos

import "syscall"

// dieWithParent has no equal here: a child outlives a test binary that is killed. It leads a group of its own.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
