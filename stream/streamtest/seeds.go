package streamtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Report passes on to whoever keeps what the test shows (make proofs) how often it did something; the counts of one name are added up.
// A name has no blanks.
func Report(t testing.TB, name string, count int) { t.Attr("proof."+name, strconv.Itoa(count)) }

// ReportSeed passes on the seed of a schedule in the same way.
func ReportSeed(t testing.TB, seed uint64) { t.Attr("proof.seed", strconv.FormatUint(seed, 10)) }

// Seeds are what tests of folds draw by: those given and, for who looks for more (make seeds), as many others as
// MARKETLOG_SEEDS sets. A test that fails names its seed, which is given from then on.
func Seeds(t testing.TB, given ...uint64) []uint64 {
	t.Helper()
	text := os.Getenv("MARKETLOG_SEEDS")
	if text == "" {
		return given
	}
	more, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("MARKETLOG_SEEDS=%q, want a number", text)
	}
	for range more {
		given = append(given, rand.Uint64N(1e9))
	}
	Report(t, "seeds", len(given))
	return given
}

// Rand draws by a seed of its own, which a test that fails prints, or by the one in MARKETLOG_SEED.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64N(1e9)
	if text := os.Getenv("MARKETLOG_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("MARKETLOG_SEED=%q, want a number", text)
		}
		seed = given
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("drawn by MARKETLOG_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}
