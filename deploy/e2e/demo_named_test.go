package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/querytest"
)

// What needs no explanation, by rule: schemas that describe an answer, explain it or show a record; those that are about the service itself; those that repeat
// what a source reports, one by one; and integers that count what is listed, number it, bound it as the request does, or are a time or a version.
var (
	describing = regexp.MustCompile(`Meta$|View$|Position$|^Explain|^(ErrorDetail|PricesExplanation|PricesInput|RatesInput)$`)
	operating  = regexp.MustCompile(`^(System|Usage|Records|Restatements|Corrections|ViewsProvider)|^(CoinsStats|FiatStats|FiatStatus)$`)
	repeating  = regexp.MustCompile(`^(CoinsMarket|FiatInput|PricesRow|RatesTier)$`)
	counting   = regexp.MustCompile(`^(count|intervals|segments|timestamp|timeUntilUpdate|durationSeconds|revision|samples|n|rankInSegment|minVolume|trendRank|totalPoints|methodologyVersion)$|^\w+Count$`)
)

// unnamed are the numbers that have no name yet, by schema; docs/explain.md says the same of them.
var unnamed = map[string]string{}

// Every numeric field of the document names its number, needs no explanation by a rule, or is listed as one that has none yet: a new field cannot be forgotten, and
// neither can one that was listed once and has a name now.
func TestDemoNamesEveryNumber(t *testing.T) {
	document := querytest.ReadDocument(t, runningDemo(t).base)
	named, listed := 0, map[string]bool{}
	for name, schema := range document.Components.Schemas {
		for field, property := range schema.Value.Properties {
			number, integer := numeric(property.Value)
			if !number {
				continue
			}
			_, isNamed := property.Value.Extensions[query.ExplainExtension]
			if members := property.Value.AdditionalProperties.Schema; members != nil && !isNamed {
				_, isNamed = members.Value.Extensions[query.ExplainExtension]
			}
			isListed := slices.Contains(strings.Fields(unnamed[name]), field)
			needsNone := describing.MatchString(name) || operating.MatchString(name) || repeating.MatchString(name) || integer && counting.MatchString(field)
			switch {
			case isNamed && isListed:
				t.Errorf("%s.%s names its number, and is listed as one that has no name", name, field)
			case isListed && needsNone:
				t.Errorf("%s.%s is listed, and needs no explanation by a rule", name, field)
			case isNamed:
				named++
			case isListed:
				listed[name+"."+field] = true
			case !needsNone:
				t.Errorf("%s.%s is a number that names none: give it the tag explain, or list it in unnamed and in docs/explain.md", name, field)
			}
		}
	}
	for name, fields := range unnamed {
		for _, field := range strings.Fields(fields) {
			if !listed[name+"."+field] {
				t.Errorf("%s.%s is listed, and is no numeric field without a name", name, field)
			}
		}
	}
	if named < 340 {
		t.Errorf("%d fields name their numbers, want at least 340", named)
	}
	t.Logf("%d fields name their numbers, %d have none yet", named, len(listed))
}

// numeric reports whether a field is a number, or has numbers as its items or members; integer if all of them are integers.
func numeric(s *openapi3.Schema) (number, integer bool) {
	for _, of := range s.AnyOf {
		if number, integer = numeric(of.Value); number {
			return number, integer
		}
	}
	switch {
	case s.Type.Includes("number"):
		return true, false
	case s.Type.Includes("integer"):
		return true, true
	case s.Items != nil && s.Items.Ref == "":
		return numeric(s.Items.Value)
	case s.AdditionalProperties.Schema != nil && s.AdditionalProperties.Schema.Ref == "":
		return numeric(s.AdditionalProperties.Schema.Value)
	}
	return false, false
}
