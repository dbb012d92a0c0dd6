package schemas

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Categories of rates. The first three are what the API calls so; the others are kept beside them.
const (
	RateLending   = "lending"
	RateBorrowing = "borrowing"
	RateStaking   = "staking"
	// RateLiquidity is what the liquidity of a market of several coins earns, whose value moves with all of them.
	RateLiquidity = "liquidity"
	// RateVault is what a strategy earns that others run with the deposit.
	RateVault = "vault"
)

// RateCategories lists the categories of rates that the API serves, in its order.
var RateCategories = []string{RateLending, RateStaking, RateBorrowing}

// IsRateCategory says whether a text is a category of rates, of those kept beside the API's too.
func IsRateCategory(s string) bool {
	return slices.Contains(RateCategories, s) || s == RateLiquidity || s == RateVault
}

// RateUnits are the units in which sources tell rates: whether compounded within the year (APY) or not (APR), in percent
// or as a fraction, and of an APR the span that it is told for.
var RateUnits = []string{
	"apy_percent", "apy_fraction",
	"apr_percent", "apr_fraction", "apr_fraction_hourly", "apr_fraction_daily", "apr_percent_daily",
}

// Compoundings are how often in a year an APR is taken to be reinvested, by name. Where nothing is reinvested by itself the
// APY is the APR.
var Compoundings = map[string]float64{
	"none": 0, "yearly": 1, "monthly": 12, "weekly": 52, "epochly": 365.0 / 2, "daily": 365, "hourly": 8760, "secondly": 31_536_000,
}

// Bounds of an APY in percent: nothing can be lost more than wholly, and no rate beyond the upper one is meant.
const (
	minAPY = -100
	maxAPY = 1e6
)

// Yearly turns a rate as a source says it into percent a year: without compounding (APR), and compounded (APY). Units
// are RateUnits, compounding is a key of Compoundings, and empty beside an APY, which then stands for both: how it was
// compounded is not known. With n periods in a year APY = (1 + APR/n)^n - 1. A number that is none wraps NotANumber, one
// out of bounds Absurd.
func Yearly(raw, unit, compounding string) (apr, apy float64, err error) {
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
		apy = compounded(apr, periods)
	}
	if math.IsNaN(apy) || apy < minAPY || apy > maxAPY {
		return 0, 0, fmt.Errorf("%w: %.40s %s makes %g %% a year", Absurd, raw, unit, apy)
	}
	return apr, apy, nil
}

// RewardAPY is the part of a rate's APY that is paid in other tokens, in percent; nil where the source does not tell it. Of
// an APR it is what the APY would be less without it.
func RewardAPY(raw, reward, unit, compounding string) *float64 {
	if reward == "" {
		return nil
	}
	part, apy, err := Yearly(reward, unit, compounding)
	if err != nil {
		return nil
	}
	if strings.HasPrefix(unit, "apr_") {
		apr, whole, err := Yearly(raw, unit, compounding)
		if err != nil {
			return nil
		}
		apy = whole - compounded(apr-part, Compoundings[compounding])
	}
	return &apy
}

// What rates told for an hour or a day are multiplied by: lenders count 365 days.
const (
	HoursOfYear = 8760
	DaysOfYear  = 365
)

// compounded is an APR of percent that is reinvested so often in a year. By logarithms, since 1 + APR/n of an APR by the
// second has few digits left.
func compounded(apr, periods float64) float64 {
	if periods == 0 || apr <= -100*periods {
		return apr
	}
	return float64(math.Expm1(float64(periods*math.Log1p(apr/100/periods))) * 100)
}
