//go:build !linux

package streamtest

import "syscall"

// dieWithParent has no counterpart here: a killed test binary leaves its servers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
