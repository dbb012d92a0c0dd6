package schemas_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/marketlog/marketlog/schemas"
)

// The ids are in the log for ever: a change here would let every stored event come again.
// Recompute with: printf '8:coinbase7:BTC-USD5:trade7:matches3:123' | sha256sum
func TestEventIDsNeverChange(t *testing.T) {
	const second = 1_000_000_000
	for _, c := range []struct {
		text string
		got  schemas.EventID
		want string
	}{
		{"8:coinbase7:BTC-USD5:trade7:matches3:123",
			schemas.NumberedTrade("coinbase", "BTC-USD", "matches", "123"), "6b96dabfc8c6f1f4827559cca9f983ff"},
		{"6:kraken7:BTC/USD5:trade5:trade0:19:15000000000000000011:03:1003:0.24:sell",
			schemas.UnnumberedTrade("kraken", "BTC/USD", "trade", 1_500_000_000_000_000_001, 0, "100", "0.2", "sell"), "6e1d228908d76a0bd8fc0f210228334f"},
		{"8:coinbase7:BTC-USD6:ticker6:ticker2:42",
			schemas.NumberedState("coinbase", "BTC-USD", "ticker", "ticker", "42"), "8750d6db9345a3226136b88ed0670b87"},
		{"6:kraken7:BTC/USD6:ticker6:ticker0:10:30000000001:13:1.5",
			schemas.UnnumberedState("kraken", "BTC/USD", "ticker", "ticker", 0, 3*second+7, "1", "1.5"), "37cfd904bc37d623686eb6c7454616a7"},
	} {
		if got := hex.EncodeToString(c.got[:]); got != c.want {
			t.Errorf("id over %q: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestStateIDDistinguishesSecondsButNotInstants(t *testing.T) {
	id := func(event, ingest int64) schemas.EventID {
		return schemas.UnnumberedState("v", "s", "ticker", "c", event, ingest, "1")
	}
	if id(0, 5_000_000_001) != id(0, 5_900_000_000) {
		t.Error("a state repeated within a second got another id")
	}
	if id(0, 5_000_000_001) == id(0, 6_000_000_001) {
		t.Error("a state repeated in a later second got the same id")
	}
	if id(7, 5_000_000_001) != id(7, 6_000_000_001) {
		t.Error("a state with an event time depends on its ingest time")
	}
}

func TestFieldsCannotRunTogether(t *testing.T) {
	if schemas.NumberedTrade("a", "bc", "d", "e") == schemas.NumberedTrade("ab", "c", "d", "e") {
		t.Error("two different trades have one id")
	}
}

func TestCanonicalDecimal(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0.0": "0", "00.10": "0.1", "0.5": "0.5", "1": "1", "10": "10", "100.500": "100.5",
		"9.2E-7": "0.00000092", "1e3": "1000", "1.5e+2": "150", "12.34e1": "123.4", "-1.50": "-1.5",
		".5": "0.5", "5.": "5", "+2": "2", "007": "7", "0e999999999": "0",
		"123456789012345678.123456789012345678": "123456789012345678.123456789012345678",
	} {
		got, err := schemas.CanonicalDecimal(in)
		if err != nil || got != want {
			t.Errorf("CanonicalDecimal(%q): got %q, %v, want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]schemas.Reason{
		"": schemas.NotANumber, ".": schemas.NotANumber, "NaN": schemas.NotANumber, "1,5": schemas.NotANumber,
		"1e": schemas.NotANumber, "e5": schemas.NotANumber, "--1": schemas.NotANumber, "0x10": schemas.NotANumber,
		" 1": schemas.NotANumber, "1.2.3": schemas.NotANumber, "Infinity": schemas.NotANumber,
		"1e400": schemas.Absurd, "1e-400": schemas.Absurd, "1e99999999999999999999": schemas.Absurd,
	} {
		if got, err := schemas.CanonicalDecimal(in); !errors.Is(err, want) {
			t.Errorf("CanonicalDecimal(%q): got %q, %v, want %v", in, got, err, want)
		}
	}
}

func FuzzCanonicalDecimal(f *testing.F) {
	for _, s := range []string{"1.50", "9.2E-7", "-0", "1e400", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := schemas.CanonicalDecimal(s)
		if err != nil {
			return
		}
		if twice, err := schemas.CanonicalDecimal(once); err != nil || twice != once {
			t.Errorf("canonical %q of %q: got %q, %v when read again", once, s, twice, err)
		}
	})
}

func BenchmarkCanonicalDecimal(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = schemas.CanonicalDecimal("60621.5")
	}
}

func TestFlagsPrintInOrder(t *testing.T) {
	if got, want := (schemas.NotSpot | schemas.Crossed).String(), "crossed,not_spot"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
