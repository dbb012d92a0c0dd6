package globalstats

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// channelCode is the channel's number in cursors.
const channelCode = 16

// SummaryHistory is where the summaries of past minutes are kept.
type SummaryHistory interface {
	// Summaries reads those in (from, to], oldest first: of each step the last.
	Summaries(ctx context.Context, from, to time.Time, step time.Duration) ([]*eventsv1.Summary, error)
}

// exampleMetrics are those of a minute, for documents.
var exampleMetrics = Metrics{TotalMarketCap: 2.5e12, TotalVolume24h: 8e10, BTCDominance: 60, ETHDominance: 12, Dominance: map[string]float64{"BTC": 60, "ETH": 12},
	ActiveCoins: 2, ActiveMarkets: 31, StablecoinMarketCap: 2e11, StablecoinDominance: 8, Timestamp: 1772359200,
	Age: query.AgeMeta{DataAge: "less than a minute", LastUpdate: "2026-03-01T10:00:00.000Z"}}

// Channels declares the channel of the whole market, which is read from markets.v1; identity and store are of the log and of the
// table of summaries.
func Channels(history SummaryHistory, store query.ChannelStore, identity string) []query.Channel {
	return []query.Channel{{
		Name: "global", Code: channelCode, Event: "global_update",
		Doc:   "The totals and shares of the whole market, as /global-stats/metrics answers them: those of each minute, and first those of the last one.",
		Topic: schemas.TopicMarkets, Step: time.Minute, Element: exampleMetrics, Identity: identity, Store: store, FromLast: true,
		Read: readSummary,
		Past: func(ctx context.Context, after, until int64, _ []string, _ int, visit func(int32, query.ChannelElement)) error {
			summaries, err := history.Summaries(ctx, time.Unix(after, 0).UTC(), time.Unix(until, 0).UTC(), time.Minute)
			if err != nil {
				return err
			}
			for _, s := range summaries {
				element, err := summaryElement(s)
				if err != nil {
					return err
				}
				visit(0, element)
			}
			return nil
		},
	}}
}

// readSummary finds the summaries of minutes.
func readSummary(_ int32, record eventsv1.Marked) (read query.ChannelRecord, err error) {
	rec, ok := record.(*eventsv1.MarketRecord)
	if !ok {
		return read, nil
	}
	if pulse := rec.GetPulse(); pulse != nil {
		read.Until = pulse.Now / int64(time.Second)
	}
	if s := rec.GetSummary(); s.GetTotalMarketCap() > 0 { // those before any source has reported a supply sum up to nothing
		element, err := summaryElement(s)
		if err != nil {
			return read, err
		}
		read.Elements = []query.ChannelElement{element}
	}
	return read, nil
}

// summaryElement is a summary as it was answered at the end of its minute.
func summaryElement(s *eventsv1.Summary) (query.ChannelElement, error) {
	age := query.AgeOf(s.Time, time.Unix(0, s.Time), views.StatisticsStaleAfter)
	encoded, err := json.Marshal(metricsOf(s, age))
	if err != nil {
		return query.ChannelElement{}, fmt.Errorf("encoding the whole market: %w", err)
	}
	return query.ChannelElement{Second: s.Time / int64(time.Second), JSON: encoded}, nil
}
