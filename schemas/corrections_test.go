package schemas_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func exclusion(id string, time int64, venue, symbol string, from, to int64) *eventsv1.CorrectionRecord {
	return &eventsv1.CorrectionRecord{Id: id, Time: time, Kind: schemas.CorrectionExclude, Venue: venue, Symbol: symbol, From: from, To: to}
}

func withdrawal(id string, time int64, of string) *eventsv1.CorrectionRecord {
	return &eventsv1.CorrectionRecord{Id: id, Time: time, Kind: schemas.CorrectionWithdraw, Withdraws: of}
}

func TestExclusionsHoldFromTheirLogTimeAndOverTheirValidity(t *testing.T) {
	c := schemas.NewCorrections(
		exclusion("a", 100, "okx", "", 50, 200), withdrawal("b", 150, "a"), withdrawal("later", 160, "a"),
		exclusion("c", 120, "kraken", "XBT/USD", 90, 0), exclusion("c", 1, "gate", "", 0, 0), withdrawal("d", 5, "nothing"))
	for _, test := range []struct {
		venue, symbol       string
		received, at        int64
		excluded, corrected bool
		by                  string
	}{
		{"okx", "X", 99, 99, false, false, "b"}, // not known yet
		{"okx", "X", 50, 100, true, false, "b"},
		{"okx", "X", 49, 100, false, false, ""},
		{"okx", "X", 199, 149, true, false, "b"},
		{"okx", "X", 200, 149, false, false, ""},
		{"okx", "X", 140, 150, false, false, "b"},
		{"kraken", "xbt/usd", 90, 120, true, true, "c"},
		{"kraken", "XBT/USD", 1 << 60, 1 << 61, true, true, "c"},
		{"kraken", "XBT/USD", 95, 119, false, true, "c"},
		{"kraken", "XBT/EUR", 95, 130, false, false, ""},
		{"gate", "X", 95, 130, false, false, ""}, // of one id the first counts
	} {
		excluded := c.Excluded(test.venue, test.symbol, test.received, test.at)
		corrected, by := c.Corrected(test.venue, test.symbol, test.received)
		if excluded != test.excluded || corrected != test.corrected || by != test.by {
			t.Errorf("%+v: got %t, and %t by %q over the validity", test, excluded, corrected, by)
		}
	}
	var none *schemas.Corrections
	if by, id := none.Corrected("okx", "X", 1); none.Excluded("okx", "X", 1, 1) || by || id != "" || len(none.All()) > 0 {
		t.Error("no corrections exclude something")
	}
	if all := c.All(); len(all) != 5 || all[0].Id != "d" || all[1].Id != "a" || all[1].Withdrawn.GetId() != "b" {
		t.Errorf("got %v", all)
	}
}

// In whatever order and however often records are read, they exclude the same.
func TestCorrectionsDoNotDependOnTheOrderOfReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []*eventsv1.CorrectionRecord
		small := rapid.Int64Range(1, 6)
		id := func(n int64) string { return string(rune('a' + n)) }
		for i := range int64(rapid.IntRange(1, 8).Draw(t, "records")) {
			if rapid.Bool().Draw(t, "withdraws") {
				records = append(records, withdrawal(id(i), small.Draw(t, "time"), id(small.Draw(t, "of"))))
				continue
			}
			records = append(records, exclusion(id(i), small.Draw(t, "time"), "okx", rapid.SampledFrom([]string{"", "X"}).Draw(t, "symbol"), small.Draw(t, "from"), small.Draw(t, "to")))
		}
		a, b := schemas.NewCorrections(records...), schemas.NewCorrections(append(rapid.Permutation(records).Draw(t, "order"), records...)...)
		for received := range int64(8) {
			for at := range int64(8) {
				if a.Excluded("okx", "x", received, at) != b.Excluded("okx", "x", received, at) {
					t.Fatalf("received %d at %d: got another answer", received, at)
				}
			}
			excludedA, byA := a.Corrected("okx", "x", received)
			excludedB, byB := b.Corrected("okx", "x", received)
			if excludedA != excludedB || byA != byB || excludedA != a.Excluded("okx", "x", received, 1<<60) {
				t.Fatalf("received %d: got %t by %s, and %t by %s", received, excludedA, byA, excludedB, byB)
			}
		}
		same := func(x, y schemas.Correction) bool {
			return x.Id == y.Id && x.Withdrawn.GetId() == y.Withdrawn.GetId()
		}
		if !slices.EqualFunc(a.All(), b.All(), same) {
			t.Fatal("got another list")
		}
	})
}
