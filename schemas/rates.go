package schemas

import "slices"

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

// IsRateCategory reports whether a text is a category of rates, of those kept beside the API's too.
func IsRateCategory(s string) bool {
	return slices.Contains(RateCategories, s) || s == RateLiquidity || s == RateVault
}

// RateUnits are the units in which sources state rates: whether compounded within the year (APY) or not (APR), in percent
// or as a fraction, and of an APR the span that it is stated for.
var RateUnits = []string{
	"apy_percent", "apy_fraction",
	"apr_percent", "apr_fraction", "apr_fraction_hourly", "apr_fraction_daily", "apr_percent_daily",
}

// Compoundings are how often in a year an APR is taken to be reinvested, by name. Where nothing is reinvested by itself the
// APY is the APR.
var Compoundings = map[string]float64{
	"none": 0, "yearly": 1, "monthly": 12, "weekly": 52, "epochly": 365.0 / 2, "daily": 365, "hourly": 8760, "secondly": 31_536_000,
}

// What rates by the hour or day are multiplied by: lenders count 365 days.
const (
	HoursOfYear = 8760
	DaysOfYear  = 365
)

// RateVersion is the version of Yearly and RewardAPY. Each version is a rule of its own that never changes once rows were
// made by it, so that they can be made again: RateRuleBy finds it.
const RateVersion = 1

// Yearly turns a rate as a source reports it into percent a year: without compounding (APR), and compounded (APY). Units
// are RateUnits, compounding is a key of Compoundings, and empty beside an APY, which then counts as both: how it was
// compounded is not known. Text that is not a number wraps NotANumber, one out of bounds (-100 to 1e6 percent) Absurd. This is its
// current version, RateVersion.
func Yearly(raw, unit, compounding string) (apr, apy float64, err error) {
	return yearlyV1(raw, unit, compounding)
}

// RewardAPY is the part of a rate's APY that is paid in other tokens, in percent; nil where the source does not report it. This
// is its current version, RateVersion.
func RewardAPY(raw, reward, unit, compounding string) *float64 {
	return rewardAPYV1(raw, reward, unit, compounding)
}

// RateRule is one version of how a rate becomes one by the year, called as Yearly and RewardAPY are.
type RateRule struct {
	Yearly    func(raw, unit, compounding string) (apr, apy float64, err error)
	RewardAPY func(raw, reward, unit, compounding string) *float64
}

// RateRuleBy is the rule by the version that a row says it was made with, 0 for 1; false where this binary does not know the
// version, since a newer one made the row.
func RateRuleBy(version uint32) (RateRule, bool) {
	switch version {
	case 0, 1:
		return RateRule{yearlyV1, rewardAPYV1}, true
	default:
		return RateRule{}, false
	}
}
