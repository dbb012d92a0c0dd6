package schemas

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strings"
	"sync"
)

// The table follows the categories of https://api.llama.fi/protocols of September 2026: Lending, CDP, RWA
// Lending and Uncollateralized Lending lend; Liquid Staking, Liquid Restaking, Restaking, Staking Pool, Collateral Markets
// and the two of staked bitcoin stake; Dexs, Derivatives and bridges keep the liquidity of markets; and in Yield, Yield
// Aggregator, Risk Curators, Onchain Capital Allocator, Basis Trading, CeDeFi, Leveraged Farming and RWA others run what
// is deposited.
//
//go:embed rate_projects.csv
var rateProjectsCSV string

const rateProjectsHeader = "project,category"

var embeddedRateProjects = sync.OnceValue(func() map[string]string {
	projects, err := parseRateProjects(rateProjectsCSV)
	if err != nil {
		panic("the embedded table of projects is broken, which a test forbids: " + err.Error())
	}
	return projects
})

// RateProjectCategory is what the rates of a project are of, going by DefiLlama's slug of it: one of the categories of
// rates, or "" of a project that the table does not have. What a project's borrowers pay is borrowing all the same.
func RateProjectCategory(project string) string { return embeddedRateProjects()[project] }

// parseRateProjects reads the table, whose rows are sorted by project.
func parseRateProjects(text string) (map[string]string, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("parsing the table of projects: %w", err)
	}
	if len(rows) == 0 || strings.Join(rows[0], ",") != rateProjectsHeader {
		return nil, fmt.Errorf("parsing the table of projects: its first row is not %s", rateProjectsHeader)
	}
	projects, last := make(map[string]string, len(rows)), ""
	for _, row := range rows[1:] {
		project, category := row[0], row[1]
		if project <= last {
			return nil, fmt.Errorf("parsing the table of projects: %q comes after %q", project, last)
		}
		if !IsRateCategory(category) || category == RateBorrowing {
			return nil, fmt.Errorf("parsing the table of projects: the category of %q is %q", project, category)
		}
		projects[project], last = category, project
	}
	return projects, nil
}
