package chaos

import (
	"slices"
	"testing"
)

// The gate makes fewer kills than there are kinds. Which ones is decided by the seed, so that its runs come to all of them alike, and to
// the same ones again with the same seed.
func TestScheduleComesToEveryKind(t *testing.T) {
	const seeds = 600
	for _, form := range []struct {
		name  string
		kinds int
		of    func(seed uint64, kills int) (names []string)
	}{
		{"one process", len(steps), func(seed uint64, kills int) (names []string) {
			for _, s := range scheduleSteps(seed, kills) {
				names = append(names, s.name)
			}
			return names
		}},
		{"split", len(disturbances), func(seed uint64, kills int) (names []string) {
			for _, d := range scheduleDisturbances(seed, kills) {
				names = append(names, d.name)
			}
			return names
		}},
	} {
		for _, kills := range []int{3, 10, shortDisturbances} {
			drawn := map[string]int{}
			for seed := range uint64(seeds) {
				names := form.of(seed, kills)
				if again := form.of(seed, kills); !slices.Equal(names, again) {
					t.Fatalf("%s, seed %d: got %v, and again %v", form.name, seed, names, again)
				}
				kinds := slices.Clone(names)
				slices.Sort(kinds)
				if n := len(slices.Compact(kinds)); n != kills {
					t.Fatalf("%s, seed %d: got %v, want %d kinds", form.name, seed, names, kills)
				}
				for _, name := range names {
					drawn[name]++
				}
			}
			// The seeds are fixed, so that this is no question of chance: of an even draw none lies outside.
			fair := seeds * kills / form.kinds
			for name, n := range drawn {
				if n < fair*2/3 || n > fair*3/2 {
					t.Errorf("%s, %d kills: %s is in %d of %d schedules, want about %d", form.name, kills, name, n, seeds, fair)
				}
			}
			if len(drawn) != form.kinds {
				t.Errorf("%s, %d kills: %d kinds in %d schedules, want all %d: %v", form.name, kills, len(drawn), seeds, form.kinds, drawn)
			}
		}
		names := form.of(7, form.kinds*2)
		kinds := slices.Clone(names)
		slices.Sort(kinds)
		if n := len(slices.Compact(kinds)); len(names) != form.kinds*2 || n != form.kinds {
			t.Errorf("%s, twice as many kills as kinds: got %d of %d kinds", form.name, len(names), n)
		}
	}
	for seed := range uint64(seeds) {
		schedule := scheduleSteps(seed, len(steps)*2)
		if schedule[0].name != "migrate.step" || schedule[1].name != "migrate.view" {
			t.Fatalf("seed %d begins with %v, want the migrations, which a directory comes to once", seed, schedule[:2])
		}
		for _, s := range schedule[onlyOnce:] {
			if s.name == "migrate.step" || s.name == "migrate.view" {
				t.Fatalf("seed %d comes to %s a second time", seed, s.name)
			}
		}
	}
}
