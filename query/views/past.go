package views

import "github.com/marketlog/marketlog/stream/history"

// What history tells, by the names that units use.
type (
	// SummaryOHLC is what a figure of the whole market did in a step.
	SummaryOHLC = history.SummaryOHLC
	// FigurePoint is a figure as it was at the end of a minute.
	FigurePoint = history.FigurePoint
	// GlobalPast is the whole market at a full hour, as far as a source told it afterwards.
	GlobalPast = history.GlobalPast
	// DefiPast is what was locked in all of DeFi, as a source told it afterwards.
	DefiPast = history.DefiPast
	// PegSample is the price of a stablecoin at a moment.
	PegSample = history.PegSample
	// PegStatistic is how well a stablecoin kept its peg.
	PegStatistic = history.PegStatistic
	// SourceHealth is how requests to a source went.
	SourceHealth = history.SourceHealth
	// EarnFilter narrows changes of earn products.
	EarnFilter = history.EarnFilter
	// RateQuery reports which rates are read, and of when.
	RateQuery = history.RateQuery
	// RatePoint is what a rate was, or did in an hour or a day.
	RatePoint = history.RatePoint
	// RateSeries is what a provider's rates of a coin and a category did.
	RateSeries = history.RateSeries
	// RateSeriesPoint is one step of it.
	RateSeriesPoint = history.RateSeriesPoint
)
