package query

import "github.com/marketlog/marketlog/stream/history"

// What history tells, by the names that units use.
type (
	// SummaryOHLC is what a figure of the whole market did in a step.
	SummaryOHLC = history.SummaryOHLC
	// PegSample is the price of a stablecoin at a moment.
	PegSample = history.PegSample
	// PegStatistic is how well a stablecoin kept its peg.
	PegStatistic = history.PegStatistic
	// SourceHealth is how requests to a source went.
	SourceHealth = history.SourceHealth
	// CoinFirst is when a coin was first heard of.
	CoinFirst = history.CoinFirst
)
