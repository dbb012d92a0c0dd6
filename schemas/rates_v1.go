package schemas

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// This file is frozen: rows state that they were made by version 1, and testdata/rates/v1.json holds what it gives to the last
// bit. A rule that is to change becomes another version.

// Bounds of an APY in percent: nothing can be lost more than wholly, and no rate beyond the upper one is meant.
const (
	minAPY = -100
	maxAPY = 1e6
)

// yearlyV1 is version 1 of Yearly: with n periods in a year APY = (1 + APR/n)^n - 1.
func yearlyV1(raw, unit, compounding string) (apr, apy float64, err error) {
	n, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, 0, fmt.Errorf("%w: the rate %.40q", NotANumber, raw)
	}
	kind, rest, _ := strings.Cut(unit, "_")
	if !slices.Contains(RateUnits, unit) {
		return 0, 0, fmt.Errorf("%w: rates in %.40q", Undecodable, unit)
	}
	if strings.HasPrefix(rest, "fraction") {
		n = float64(n * 100)
	}
	switch {
	case strings.HasSuffix(rest, "_hourly"):
		n = float64(n * HoursOfYear)
	case strings.HasSuffix(rest, "_daily"):
		n = float64(n * DaysOfYear)
	}
	apr, apy = n, n
	if kind == "apr" {
		periods, known := Compoundings[compounding]
		if !known {
			return 0, 0, fmt.Errorf("%w: an APR compounded %.40q", Undecodable, compounding)
		}
		apy = compoundedV1(apr, periods)
	}
	if math.IsNaN(apy) || apy < minAPY || apy > maxAPY {
		return 0, 0, fmt.Errorf("%w: %.40s %s makes %g %% a year", Absurd, raw, unit, apy)
	}
	return apr, apy, nil
}

// rewardAPYV1 is version 1 of RewardAPY: of an APR it is what the APY would be less without the reward.
func rewardAPYV1(raw, reward, unit, compounding string) *float64 {
	if reward == "" {
		return nil
	}
	part, apy, err := yearlyV1(reward, unit, compounding)
	if err != nil {
		return nil
	}
	if strings.HasPrefix(unit, "apr_") {
		apr, whole, err := yearlyV1(raw, unit, compounding)
		if err != nil {
			return nil
		}
		apy = whole - compoundedV1(apr-part, Compoundings[compounding])
	}
	return &apy
}

// compoundedV1 is an APR of percent that is reinvested so often in a year. By logarithms, since 1 + APR/n of an APR by the
// second has few digits left.
func compoundedV1(apr, periods float64) float64 {
	if periods == 0 || apr <= -100*periods {
		return apr
	}
	return float64(math.Expm1(float64(periods*math.Log1p(apr/100/periods))) * 100)
}
