package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPausesGrowToTheLongest(t *testing.T) {
	const first, longest = 200 * time.Millisecond, 5 * time.Second
	b := New(first, longest)
	for range 2 {
		length := float64(first)
		for i := range 30 {
			if pause := float64(b.Next()); pause < length/2-1 || pause > length*1.5+1 {
				t.Fatalf("pause %d is %s, want half to one and a half times %s", i, time.Duration(pause), time.Duration(length))
			}
			length = min(length*1.5, float64(longest))
		}
		b.Reset()
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Wait(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("waited %s, %v, want a minute", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := Wait(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("waited %s, %v, want a second", time.Since(began), err)
		}
	})
}
