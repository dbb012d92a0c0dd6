package ws

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestCursorsEncodeEveryPositionInAFewCharacters(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 2_000 {
		id := identityOf(string(rune(rng.IntN(1000))))
		at := make(position, 8)
		newest := 1 + rng.Int64N(1<<32)
		for i := range at {
			at[i] = max(1, newest-rng.Int64N(1+rng.Int64N(maxLag-1)))
		}
		at[rng.IntN(8)] = newest
		text := cursorOf(id, at)
		if len(text) > cursorMax || strings.ContainsAny(text, `"\ +/=&`) {
			t.Fatalf("seed %d: %v gives %q of %d characters", seed, at, text, len(text))
		}
		of, got, err := parseCursor(text, 8)
		if err != nil || of != id || !slices.Equal(got, at) {
			t.Fatalf("seed %d: %v came back as %v, %v", seed, at, got, err)
		}
		if _, _, err := parseCursor(text, 7); err == nil {
			t.Fatalf("seed %d: the cursor of 8 partitions is one of 7", seed)
		}
	}
	at := position{5, 5, 5, 5, 0, 5, 5, 5}
	if text := cursorOf(identityOf(""), at); text != "" {
		t.Errorf("a position with an unknown partition has the cursor %q, want none", text)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cursorOf(identityOf("a"), position{1795423320, 1795423319, 1, 2, 3, 4, 5, 6}))
	f.Add("1")
	f.Add("1AAAAAAAA_____________________")
	f.Fuzz(func(t *testing.T, text string) {
		id, at, err := parseCursor(text, 8)
		if err != nil {
			return
		}
		again, same, err := parseCursor(cursorOf(id, at), 8)
		if !at.whole() || err != nil || again != id || !slices.Equal(same, at) {
			t.Errorf("%q is %v, which comes back as %v, %v", text, at, same, err)
		}
	})
}

func TestCursorsOfSeveralChannelsAreExact(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	partitions := func(code byte) int { return []int{8, 8, 1, 0, 3}[code%5] }
	for range 2_000 {
		var spots []spot
		want := map[byte]position{}
		var id identity
		for code := range byte(12) {
			at := make(position, partitions(code))
			if len(at) == 0 || rng.IntN(2) == 0 {
				continue
			}
			newest := 1 + rng.Int64N(1<<32)
			for i := range at {
				at[i] = max(1, newest-rng.Int64N(1+rng.Int64N(200)))
			}
			at[rng.IntN(len(at))] = newest
			s := spot{code, identityOf(string(rune(rng.IntN(1000)))), at}
			id.join(s.id)
			spots, want[code] = append(spots, s), at
		}
		if len(spots) == 0 {
			continue
		}
		text := cursorOfAll(spots)
		if len(text) > mixedMax || strings.ContainsAny(text, `"\ +/=&`) {
			t.Fatalf("seed %d: %v gives %q of %d characters", seed, spots, text, len(text))
		}
		of, got, err := parseCursors(text, partitions)
		if err != nil || of != id || !maps.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("seed %d: %v came back as %v, %v", seed, want, got, err)
		}
		if _, _, err := parseCursors(text[:len(text)-2], partitions); err == nil {
			t.Fatalf("seed %d: a cursor that was cut off is one", seed)
		}
		if _, _, err := parseCursors(text, func(byte) int { return 0 }); err == nil {
			t.Fatalf("seed %d: a cursor of no channel is one", seed)
		}
	}
}
