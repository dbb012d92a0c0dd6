//go:build !linux

package chaos

import "syscall"

// dieWithParent has no equal here: a child outlives a test binary that is killed.
func dieWithParent() *syscall.SysProcAttr { return nil }
