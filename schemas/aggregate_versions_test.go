package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

var update = flag.Bool("update", false, "write the vectors of a version that has none; those that exist are never written anew")

// vector is a set of inputs at a time and what one version of the aggregation makes of them. Floats are written so that
// they read back as the same bits.
type vector struct {
	Now    int64
	Inputs []*eventsv1.PriceInput
	Want   schemas.Aggregated
	// Considered are the inputs as the aggregation left them.
	Considered []*eventsv1.PriceInput
}

// Records say by which version they were made, and are explained by it for as long as they are kept: each version gives
// for ever what its vectors hold, to the last bit.
func TestEveryVersionOfTheAggregationGivesItsVectors(t *testing.T) {
	for version := uint32(1); version <= schemas.AggregateVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			file := filepath.Join("testdata", "aggregate", fmt.Sprintf("v%d.json", version))
			content, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) && *update {
				content = makeVectors(t, version)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				err = os.WriteFile(file, content, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			reasons := map[string]int{}
			n := 0
			for line := range bytes.Lines(content) {
				var v vector
				if err := json.Unmarshal(line, &v); err != nil {
					t.Fatal(err)
				}
				got, considered, known := schemas.AggregateBy(version, v.Inputs, v.Now)
				if !known || got != v.Want {
					t.Errorf("vector %d: got %+v, want %+v: a version never changes, make another one", n, got, v.Want)
				}
				if !slices.EqualFunc(considered, v.Considered, func(a, b *eventsv1.PriceInput) bool { return proto.Equal(a, b) }) {
					t.Errorf("vector %d: the inputs differ: got %v, want %v", n, considered, v.Considered)
				}
				for _, in := range considered {
					reasons[in.Reason]++
				}
				reasons[got.Reason+"!"]++
				n++
			}
			wanted := []string{"", schemas.InputOutlier, schemas.InputOtherMarket, schemas.InputNoRate, schemas.InputCrossed, schemas.InputWide,
				"!", schemas.ReasonNoConsensus + "!", schemas.ReasonNoFreshInputs + "!"}
			if version > 1 {
				wanted = append(wanted, schemas.InputSilent)
			}
			for _, reason := range wanted {
				if reasons[reason] == 0 {
					t.Errorf("no vector comes to %q", reason)
				}
			}
		})
	}
	if _, _, known := schemas.AggregateBy(schemas.AggregateVersion+1, nil, 0); known {
		t.Error("a version that is not there is known")
	}
	unnamed, _, _ := schemas.AggregateBy(0, []*eventsv1.PriceInput{traded("a", 1)}, at)
	if first, _ := schemas.AggregateV1([]*eventsv1.PriceInput{traded("a", 1)}, at); unnamed != first {
		t.Error("a record that names no version was not made by the first")
	}
}

func makeVectors(t *testing.T, version uint32) []byte {
	t.Helper()
	var out bytes.Buffer
	for seed := range 60 {
		v := vector{Now: at, Inputs: inputsGen().Example(seed)}
		for i, in := range v.Inputs {
			if version > 1 {
				in.FreshFor = int64(30+(i*17)%91) * int64(time.Second)
			}
		}
		inputs := clone(v.Inputs)
		v.Want, v.Considered, _ = schemas.AggregateBy(version, inputs, v.Now)
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// beating is a market that was last received some time ago, by whose pace it counts for a minute.
func beating(provider string, age time.Duration) *eventsv1.PriceInput {
	in := quoted(provider, 99.99, 100.01)
	in.QuoteHeard, in.FreshFor = ago(age), int64(time.Minute)
	return in
}

// One venue goes on and the others fall silent: the providers that count become fewer, and the trust falls with each
// second, long before two minutes are over.
func TestSilenceIsPublished(t *testing.T) {
	last := 2.0
	for _, test := range []struct {
		silent             time.Duration
		accepted, rejected int
	}{{0, 6, 0}, {10 * time.Second, 6, 0}, {20 * time.Second, 6, 0}, {40 * time.Second, 6, 0}, {60 * time.Second, 6, 0}, {61 * time.Second, 1, 5}, {120 * time.Second, 1, 5}} {
		inputs := []*eventsv1.PriceInput{beating("alive", 0)}
		for _, p := range []string{"b", "c", "d", "e", "f"} {
			inputs = append(inputs, beating(p, test.silent))
		}
		got, considered := schemas.Aggregate(inputs, at)
		if got.Accepted != test.accepted || got.Rejected != test.rejected || len(considered) != 6 {
			t.Errorf("after %s: %d accepted, %d rejected of %d, want %d and %d of 6", test.silent, got.Accepted, got.Rejected, len(considered), test.accepted, test.rejected)
		}
		if test.silent > 15*time.Second && test.silent < 120*time.Second && got.Score >= last {
			t.Errorf("after %s the score is %g, and was %g", test.silent, got.Score, last)
		}
		last = got.Score
		for _, in := range considered {
			if silent := in.Reason == schemas.InputSilent; silent != (in.Provider != "alive" && test.silent > time.Minute) || silent == in.Accepted {
				t.Errorf("after %s %s is accepted: %v, for %q", test.silent, in.Provider, in.Accepted, in.Reason)
			}
		}
	}
	if got, _ := schemas.Aggregate([]*eventsv1.PriceInput{beating("a", 61*time.Second)}, at); got.Reason != schemas.ReasonNoFreshInputs || got.Rejected != 1 {
		t.Errorf("with all silent: %+v, want the reason %s", got, schemas.ReasonNoFreshInputs)
	}
}
