//go:build !linux

package streamtest

import "syscall"

// dieWithParent has no counterpart here: a killed test binary leaves its servers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }

// awaitStopped has no counterpart here: a stopped child may go on for a moment.
func awaitStopped(int) error { return nil }
