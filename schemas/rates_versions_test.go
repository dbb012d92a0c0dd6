package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/marketlog/marketlog/schemas"
)

// rateVector is a rate as a source reports it, and what one version of the rule makes of it: floats to the last bit.
type rateVector struct {
	Raw, Reward, Unit, Compounding string
	APR, APY                       float64
	RewardAPY                      *float64 `json:",omitempty"`
	// Refused is why it is not a rate, empty where it is one.
	Refused string `json:",omitempty"`
}

func (v rateVector) by(rule schemas.RateRule) rateVector {
	apr, apy, err := rule.Yearly(v.Raw, v.Unit, v.Compounding)
	v.APR, v.APY, v.RewardAPY, v.Refused = apr, apy, rule.RewardAPY(v.Raw, v.Reward, v.Unit, v.Compounding), ""
	for _, reason := range []schemas.Reason{schemas.NotANumber, schemas.Undecodable, schemas.Absurd} {
		if errors.Is(err, reason) {
			v.Refused = string(reason)
		}
	}
	return v
}

// Rows say by which version of the rule they were made, and are explained by it for as long as they are kept: each version
// gives for ever what its vectors hold.
func TestEveryVersionOfTheRuleOfRatesGivesItsVectors(t *testing.T) {
	for version := uint32(1); version <= schemas.RateVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			rule, known := schemas.RateRuleBy(version)
			if !known {
				t.Fatal("the version is not known")
			}
			file := filepath.Join("testdata", "rates", fmt.Sprintf("v%d.json", version))
			content, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) && *update {
				content = makeRateVectors(t, rule)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				err = os.WriteFile(file, content, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for line := range bytes.Lines(content) {
				var want rateVector
				if err := json.Unmarshal(line, &want); err != nil {
					t.Fatal(err)
				}
				again, err := json.Marshal(want.by(rule))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(append(again, '\n'), line) {
					t.Errorf("got %s, want %s: a version never changes, make another one", again, line)
				}
				seen[want.Unit]++
				seen[want.Compounding]++
				seen["refused: "+want.Refused]++
				if want.RewardAPY != nil {
					seen["reward"]++
				}
			}
			for _, kind := range slices.Concat(schemas.RateUnits, []string{"none", "yearly", "monthly", "weekly", "epochly", "daily", "hourly", "secondly",
				"reward", "refused: ", "refused: not_a_number", "refused: undecodable", "refused: absurd"}) {
				if seen[kind] == 0 {
					t.Errorf("no vector has %q", kind)
				}
			}
		})
	}
	if _, known := schemas.RateRuleBy(schemas.RateVersion + 1); known {
		t.Error("a version that is not there is known")
	}
	unnamed, known := schemas.RateRuleBy(0)
	if apr, apy, err := unnamed.Yearly("0.05", "apr_fraction", "daily"); !known || err != nil || apr != 5 || apy <= 5 {
		t.Errorf("a row that names no version: got %g, %g, %v", apr, apy, err)
	}
}

func makeRateVectors(t *testing.T, rule schemas.RateRule) []byte {
	t.Helper()
	var out bytes.Buffer
	add := func(v rateVector) {
		line, err := json.Marshal(v.by(rule))
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	chance := rand.New(rand.NewPCG(1, 2))
	raws := []string{"0", "0.05", "-0.0125", "3.75", "12", "-40", "1e-9", "0.000002853881278538813", "250", "99999", "-250",
		"none", "NaN", "1e300"}
	for _, unit := range append([]string{"percents"}, schemas.RateUnits...) {
		for _, compounding := range []string{"", "none", "yearly", "monthly", "weekly", "epochly", "daily", "hourly", "secondly", "often"} {
			for i, raw := range raws {
				if (i+len(unit)+len(compounding))%3 > 0 && i > 4 {
					continue
				}
				v := rateVector{Raw: raw, Unit: unit, Compounding: compounding}
				if i%2 == 1 {
					v.Reward = strconv.FormatFloat(chance.Float64()/1000, 'g', 6, 64)
				}
				add(v)
			}
		}
	}
	return out.Bytes()
}
