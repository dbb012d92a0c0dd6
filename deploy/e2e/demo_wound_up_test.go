package e2e

import "testing"

// The demo ends when it is told to, with everything written. It is the last of its tests: they share one demo.
func TestDemoEndsCleanly(t *testing.T) {
	if err := runningDemo(t).end(); err != nil {
		t.Error(err)
	}
}
