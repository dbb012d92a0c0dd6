package producers_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
)

// TestRecordedPoolsAreAttached finds the coin and the category of the pools of a real answer: of at least nine tenths of the
// TVL both are known. The others are listed with the reason.
func TestRecordedPoolsAreAttached(t *testing.T) {
	root, answers := expectedAnswers(t)
	i := slices.IndexFunc(sources.List(), func(s poll.Source) bool { return s.Slug == "defillama-yields" })
	source := sources.List()[i]
	whole, attached := 0.0, 0.0
	for _, file := range slices.Sorted(maps.Keys(answers)) {
		if answers[file].Kind != "x_llama_pools" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		var recording struct{ Body string }
		mustParse(t, text, &recording)
		var out poll.Readings
		if err := source.Decode("/pools", []byte(recording.Body), &out); err != nil || len(out.Refused) > 0 {
			t.Fatal(err, out.Refused)
		}
		for _, rec := range out.Records {
			rate := rec.GetRate()
			tvl, err := strconv.ParseFloat(rate.TvlUsd, 64)
			if err != nil {
				t.Errorf("%s %s has no TVL", rate.Project, rate.Symbol)
			}
			whole += tvl
			category := schemas.RateCategory(rate, "")
			coin, known := schemas.RateCoin(rate, category)
			switch {
			case !known:
				t.Logf("%s: %s %s on %s, %.0f USD", schemas.RateCoinUnknown, rate.Project, rate.Symbol, rate.Chain, tvl)
			case category == "":
				t.Logf("%s: %s %s on %s, %.0f USD", schemas.RateCategoryUnknown, rate.Project, rate.Symbol, rate.Chain, tvl)
			default:
				t.Logf("%s %s: %s %s", coin.ID, category, rate.Project, rate.Symbol)
				attached += tvl
			}
		}
	}
	if share := attached / whole; !(share >= 0.9) {
		t.Errorf("%.3f of the TVL has a coin and a category, want nine tenths", share)
	} else {
		t.Logf("%.3f of the TVL has a coin and a category", share)
	}
}
