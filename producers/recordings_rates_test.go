package producers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
)

// TestRecordedPoolsDecodeAsExpected compares what decode prints of a real answer about pools with what an independent
// reader found in it.
func TestRecordedPoolsDecodeAsExpected(t *testing.T) {
	root, answers := expectedAnswers(t)
	compared := 0
	for _, file := range slices.Sorted(maps.Keys(answers)) {
		if answers[file].Kind != "x_llama_pools" {
			continue
		}
		compared++
		t.Run(file, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			options := decode.Options{Source: "defillama-yields", File: filepath.Join(root, file)}
			if code := decode.Run(context.Background(), options, nil, sources.List(), nil, &stdout, &stderr); code != 0 {
				t.Fatalf("exit %d: %s", code, &stderr)
			}
			comparePools(t, stdout.Bytes(), answers[file].Expect)
		})
	}
	if compared == 0 {
		t.Error("no recording of pools was found")
	}
}

func comparePools(t *testing.T, printed []byte, expect json.RawMessage) {
	var want struct {
		Pools            int
		Chains, Projects []string
		TVL              decimal.Decimal `json:"tvl_sum"`
		WithoutReward    int             `json:"null_apyReward"`
		APY              map[string]decimal.Decimal
	}
	mustParse(t, expect, &want)
	chains, projects := map[string]bool{}, map[string]bool{}
	var tvl, placed decimal.Decimal
	pools, withoutReward := 0, 0
	for scanner := bufio.NewScanner(bytes.NewReader(printed)); scanner.Scan(); pools++ {
		var line struct {
			Kind, Source, Project, Chain, Pool, Category, RawUnit string
			Raw, TVLUSD                                           decimal.Decimal
			APY, RewardAPY                                        *decimal.Decimal
		}
		mustParse(t, scanner.Bytes(), &line)
		expected, ok := want.APY[line.Pool]
		if !ok || line.Kind != "rate" || line.RawUnit != "apy_percent" || line.APY == nil || !line.APY.Equal(expected) || !line.Raw.Equal(expected) {
			t.Errorf("printed %s, want a rate of %s", scanner.Bytes(), expected)
		}
		chains[line.Chain], projects[line.Project] = true, true
		if line.RewardAPY == nil {
			withoutReward++
		}
		tvl = tvl.Add(line.TVLUSD)
		if schemas.IsRateCategory(line.Category) {
			placed = placed.Add(line.TVLUSD)
		}
	}
	equal(t, "pools", pools, want.Pools)
	equal(t, "without a reward", withoutReward, want.WithoutReward)
	equal(t, "chains", spell(slices.Sorted(maps.Keys(chains))), spell(want.Chains))
	equal(t, "projects", spell(slices.Sorted(maps.Keys(projects))), spell(want.Projects))
	equal(t, "TVL", tvl.String(), want.TVL.String())
	if share := placed.Div(tvl); share.LessThan(decimal.RequireFromString("0.9")) {
		t.Errorf("%s of the TVL has a category, want nine tenths at least", share.StringFixed(3))
	}
}
