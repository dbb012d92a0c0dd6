package diskbudget

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var midnight = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// lateEnough is a time at which all units of the tests can be of.
func lateEnough() time.Time { return midnight.Add(100 * time.Hour) }

// hour makes a unit whose newest is of so many hours after midnight.
func hour(kind Kind, hours int, bytes int64) Unit {
	return Unit{Kind: kind, Until: midnight.Add(time.Duration(hours) * time.Hour), Bytes: bytes, Of: fmt.Sprint(kind, " ", hours)}
}

func names(units []Unit) (names []string) {
	for _, u := range units {
		names = append(names, u.Of.(string))
	}
	return names
}

func TestWhatIsDroppedFirst(t *testing.T) {
	// Five hours of ticks and prices, four days of what is kept.
	var units []Unit
	for i := range 5 {
		units = append(units, hour(Prices, 20+i, 10), hour(Ticks, 20+i, 10))
	}
	for i := range 4 {
		units = append(units, hour(Kept, 24*(i-3)+24, 10))
	}
	for _, test := range []struct {
		what          string
		excess, limit int64
		drop          []string
		lacking       int64
	}{
		{"nothing", 0, 100, nil, 0},
		{"the oldest ticks", 1, 100, []string{"0 20"}, 0},
		{"ticks to their share", 30, 200, []string{"0 20", "0 21", "0 22"}, 0},
		{"then prices to theirs", 35, 120, []string{"0 20", "0 21", "0 22", "1 20"}, 0},
		{"then what is kept", 65, 120, []string{"0 20", "0 21", "0 22", "1 20", "1 21", "2 -48", "2 -24"}, 0},
		{"what is below the share, at last", 95, 160, []string{"0 20", "0 21", "0 22", "1 20", "2 -48", "2 -24", "1 21", "1 22"}, 15},
		{"all but the newest", 1000, 400, []string{"0 20", "2 -48", "2 -24", "0 21", "0 22", "1 20", "1 21", "1 22"}, 920},
	} {
		drop, lacking := plan(slices.Clone(units), test.excess, test.limit, lateEnough())
		if got := names(drop); !slices.Equal(got, test.drop) || lacking != test.lacking {
			t.Errorf("%s: got %v, lacking %d, want %v, lacking %d", test.what, got, lacking, test.drop, test.lacking)
		}
	}
}

// A row of the far future makes nothing old, and stays.
func TestWhatIsOfTheFutureMakesNothingOld(t *testing.T) {
	now := midnight.Add(30 * time.Hour)
	for _, kind := range []Kind{Ticks, Prices, Kept} {
		units := []Unit{hour(kind, 24*365*40, 1), hour(kind, 31, 10), hour(kind, 30, 10), hour(kind, 5, 10)}
		drop, lacking := plan(units, 1000, 1000, now)
		if got, want := names(drop), []string{fmt.Sprint(kind, " ", 5)}; !slices.Equal(got, want) || lacking != 990 {
			t.Errorf("of %v: dropped %v, lacking %d, want %v, lacking 990", names(units), got, lacking, want)
		}
	}
}

// Whatever there is: nothing is dropped before what is older of its kind, no kind loses its newest, nothing is dropped in vain, and what is kept
// goes only when ticks and prices have no more than their shares.
func TestPlansOfAnything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var units []Unit
		var all int64
		for i := range random.IntN(60) {
			u := Unit{Kind: Kind(random.IntN(3)), Until: midnight.Add(time.Duration(random.IntN(100)) * time.Hour), Bytes: random.Int64N(50), Of: fmt.Sprint(i)}
			units = append(units, u)
			all += u.Bytes
		}
		now := midnight.Add(time.Duration(random.IntN(100)) * time.Hour)
		limit, excess := 1+random.Int64N(2000), random.Int64N(all+10)
		drop, lacking := plan(slices.Clone(units), excess, limit, now)
		gone := map[any]bool{}
		var freed int64
		for _, u := range drop {
			gone[u.Of] = true
			freed += u.Bytes
		}
		if len(gone) != len(drop) || lacking != max(0, excess-freed) {
			t.Fatalf("of %v, excess %d: dropped %v, lacking %d", units, excess, drop, lacking)
		}
		if n := len(drop); n > 0 && freed-drop[n-1].Bytes >= excess {
			t.Fatalf("of %v, excess %d: dropped more than needed: %v", units, excess, drop)
		}
		left, newest := map[Kind]int64{}, map[Kind]time.Time{}
		for _, u := range units {
			if u.Until.After(newest[u.Kind]) && !u.Until.After(now.Add(u.Kind.recent())) {
				newest[u.Kind] = u.Until
			}
			if !gone[u.Of] {
				left[u.Kind] += u.Bytes
			}
		}
		for _, u := range drop {
			if !u.Until.Before(newest[u.Kind].Add(-u.Kind.recent())) {
				t.Fatalf("of %v: dropped %v, the newest of its kind is of %s", units, u, newest[u.Kind])
			}
			for _, other := range units {
				if other.Kind == u.Kind && other.Until.Before(u.Until) && !gone[other.Of] {
					t.Fatalf("of %v: dropped %v, and not %v", units, u, other)
				}
			}
		}
		for _, u := range drop {
			if u.Kind != Kept {
				continue
			}
			for _, kind := range []Kind{Ticks, Prices} {
				for _, other := range units {
					old := other.Until.Before(newest[kind].Add(-kind.recent()))
					if other.Kind == kind && old && !gone[other.Of] && left[kind]-other.Bytes >= limit/map[Kind]int64{Ticks: ticksShare, Prices: pricesShare}[kind] {
						first := !slices.ContainsFunc(units, func(o Unit) bool {
							return o.Kind == kind && !gone[o.Of] && (o.Until.Before(other.Until) || o.Until.Equal(other.Until) && o.Of != other.Of)
						})
						if first {
							t.Fatalf("of %v, limit %d: dropped %v, and not %v", units, limit, u, other)
						}
					}
				}
			}
		}
	}
}
