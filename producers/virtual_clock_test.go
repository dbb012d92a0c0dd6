package producers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestVirtualClockWaitsForEveryProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(-time.Hour)
		c := NewVirtualClock(start, 100)
		c.Join("alpha")
		c.Join("beta")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = c.Run(ctx) }()
		at := func(want time.Duration, when string) {
			t.Helper()
			if got := c.Now().Sub(start); got != want {
				t.Errorf("%s: %s after the start, want %s", when, got, want)
			}
		}
		time.Sleep(time.Minute)
		at(time.Second, "both joined in the second before")
		c.Finished("alpha", start.Add(time.Second))
		time.Sleep(time.Minute)
		at(time.Second, "alpha has finished it")
		c.Finished("beta", start.Add(time.Second))
		time.Sleep(time.Minute)
		at(2*time.Second, "both have finished it")
		c.Finished("alpha", start.Add(time.Hour))
		c.Finished("beta", start.Add(4*time.Second))
		time.Sleep(time.Minute)
		at(5*time.Second, "beta has finished the fourth")
	})
}

func TestVirtualClockKeepsItsSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(-time.Hour)
		c := NewVirtualClock(start, 60)
		c.Finished("alpha", time.Now())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = c.Run(ctx) }()
		early, late := c.After(59*time.Second), c.After(61*time.Second)
		half := c.After(500 * time.Millisecond)
		time.Sleep(time.Second + time.Millisecond)
		if got := c.Now().Sub(start); got != time.Minute {
			t.Errorf("%s passed in a second, want a minute", got)
		}
		select {
		case got := <-early:
			if want := start.Add(59 * time.Second); !got.Equal(want) {
				t.Errorf("fired at %s, want %s", got, want)
			}
		default:
			t.Error("a timer of 59 s has not fired after a minute")
		}
		if got, want := <-half, start.Add(time.Second); !got.Equal(want) {
			t.Errorf("half a second passed at %s, want the first step %s", got, want)
		}
		select {
		case <-late:
			t.Error("a timer of 61 s has fired after a minute")
		default:
		}
	})
}

func TestVirtualClockBecomesTheMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtualClock(time.Now().Add(-10*time.Second), 1000)
		c.Finished("alpha", time.Now().Add(time.Hour))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = c.Run(ctx) }()
		pending := c.After(15 * time.Second)
		began := time.Now()
		time.Sleep(time.Second)
		if !c.Now().Equal(time.Now()) {
			t.Errorf("the clock is at %s, the machine's at %s", c.Now(), time.Now())
		}
		<-pending
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("a timer of 15 s, set 10 s in the past, fired after %s", waited)
		}
		began = time.Now()
		<-c.After(time.Minute)
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("a minute took %s", waited)
		}
	})
}
