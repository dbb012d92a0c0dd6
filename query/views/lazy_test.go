package views

import "testing"

func TestLazyValueIsMadeOnceForAll(t *testing.T) {
	var l Lazy[int]
	version := 1
	made := 0
	current := func(v *int) bool { return *v == version }
	build := func() *int {
		made++
		v := version
		return &v
	}
	for range 2 {
		if got := *l.Get(current, build); got != 1 || made != 1 {
			t.Errorf("got %d, made %d times", got, made)
		}
	}
	version = 2
	got := l.Get(current, func() *int {
		if before := *l.Get(current, build); before != 1 { // another reader meanwhile
			t.Errorf("while the next is made: got %d, want the one before", before)
		}
		return build()
	})
	if *got != 2 || made != 2 {
		t.Errorf("got %d, made %d times, want the second", *got, made)
	}
	if got := *l.Settle(current, build); got != 2 || made != 2 {
		t.Errorf("settled on %d, made %d times", got, made)
	}
	version = 3
	if got := *l.Settle(current, build); got != 3 {
		t.Errorf("settled on %d, want 3", got)
	}
}
