package sqlport

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneClientHasHalfOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4)
		for range 2 {
			if _, err := s.take(t.Context(), "a", func() {}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.take(t.Context(), "a", func() {}); !errors.Is(err, errBusy) {
			t.Errorf("a third of one client: got %v, want %v", err, errBusy)
		}
		if _, err := s.take(t.Context(), "b", func() {}); err != nil {
			t.Errorf("the first of another: got %v", err)
		}
	})
}

func TestAFreePlaceGoesToWhoHasTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2)
		first, _ := s.take(t.Context(), "a", func() {})
		if _, err := s.take(t.Context(), "b", func() {}); err != nil {
			t.Fatal(err)
		}
		var order []string
		got := make(chan string, 3)
		for _, client := range []string{"b", "a", "c"} {
			go func() {
				if place, err := s.take(t.Context(), client, func() {}); err == nil {
					got <- client
					time.Sleep(time.Second)
					place.give()
				}
			}()
			synctest.Wait()
		}
		first.give()
		for range 2 {
			order = append(order, <-got)
		}
		time.Sleep(time.Minute) // those who got a place give it back
		if order[0] != "a" || order[1] != "c" {
			t.Errorf("got %v, want a and c: b has one still", order)
		}
	})
}

// Whoever takes nothing of his answer keeps his place only as long as nobody waits for it.
func TestStalledReadersLoseTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8)
		var evicted atomic.Int32
		for i := range 8 {
			var place *slot
			place, err := s.take(t.Context(), strconv.Itoa(i%2), func() { evicted.Add(1); place.give() })
			if err != nil {
				t.Fatal(err)
			}
			place.waits()
		}
		time.Sleep(time.Minute)
		if n := evicted.Load(); n != 0 {
			t.Errorf("nobody waited: got %d ended, want 0", n)
		}
		for i := range 8 {
			began := time.Now()
			place, err := s.take(t.Context(), "c"+strconv.Itoa(i), func() {})
			if err != nil || time.Since(began) > s.stall+time.Second {
				t.Fatalf("client %d: got %v after %v, want a place within %v", i, err, time.Since(began), s.stall)
			}
			defer place.give()
		}
	})
}

func TestWaitingEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		if _, err := s.take(t.Context(), "a", func() {}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.take(ctx, "b", func() {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the request's own end", err)
		}
		if len(s.waiting) != 0 {
			t.Errorf("%d still wait", len(s.waiting))
		}
	})
}
