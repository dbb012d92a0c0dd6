package schemas

import "testing"

func TestProjectsHaveACategory(t *testing.T) {
	for project, want := range map[string]string{
		"aave-v3": RateLending, "sky-lending": RateLending, "usd-ai": RateLending, "maple": RateLending,
		"lido": RateStaking, "kelp": RateStaking, "ssv-network": RateStaking, "babylon-protocol": RateStaking, "ether.fi-stake": RateStaking,
		"uniswap-v3": RateLiquidity, "gmx-v2-perps": RateLiquidity, "pendle-v2": RateVault, "steakhouse-financial": RateVault, "ethena-usde": RateVault,
		"a-project-of-tomorrow": "", "": "",
	} {
		if got := RateProjectCategory(project); got != want {
			t.Errorf("RateProjectCategory(%q) = %q, want %q", project, got, want)
		}
	}
}

func TestBrokenTablesOfProjectsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "another header": "slug,category\naave-v3,lending\n", "a cell too many": "project,category\naave-v3,lending,3\n",
		"twice": "project,category\nlido,staking\nlido,staking\n", "unsorted": "project,category\nlido,staking\naave-v3,lending\n",
		"no project": "project,category\n,staking\n", "no such category": "project,category\nlido,Liquid Staking\n",
		"a rate, not a project": "project,category\naave-v3,borrowing\n",
	} {
		if got, err := parseRateProjects(text); err == nil {
			t.Errorf("%s: parsed as %v", name, got)
		}
	}
}
