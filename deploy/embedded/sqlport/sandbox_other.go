//go:build !linux

package sqlport

// confine does nothing here: the process is apart, and otherwise as free as its user.
func confine(childOptions) error { return errNoSandbox }
