package query

import "github.com/danielgtaylor/huma/v2"

// commonDescriptions are of fields that mean the same in every answer, by their names in JSON: what a field's own tag `doc` does not say.
var commonDescriptions = map[string]string{
	"_meta":         "Age of the data",
	"alternatives":  "Other coins that the name may mean, the largest first",
	"close":         "Last value of the interval",
	"coinId":        "Id of the coin",
	"count":         "Number of rows in this response",
	"data":          "The answer",
	"dataAge":       "Age of the data, in words; unknown if there is none",
	"explanations":  "How numbers of this response were computed, if requested with explain",
	"granularity":   "Step between points",
	"high":          "Highest value of the interval",
	"imageUrl":      "URL of the coin's logo",
	"isCritical":    "The data is older than two hours, or there is none",
	"isStale":       "The data is older than its source's cadence allows",
	"low":           "Lowest value of the interval",
	"marketCapRank": "Rank by market cap; 1 is the largest",
	"meta":          "About this response: its rows, their age, and limits that were applied",
	"open":          "First value of the interval",
	"partition":     "Partition of the topic",
	"provider":      "Slug of the exchange, protocol or source",
	"providerName":  "Name of the provider",
	"symbol":        "Symbol of the coin",
	"simulated":     "The numbers are invented by the simulator",
	"timeframe":     "The period that was asked for",
	"topic":         "Topic of the log",
}

// describeCommon describes the properties of a schema that mean the same everywhere and have no description of their own.
func describeCommon(s *huma.Schema) {
	for name, property := range s.Properties {
		if property.Description == "" {
			property.Description = commonDescriptions[name]
		}
	}
}
