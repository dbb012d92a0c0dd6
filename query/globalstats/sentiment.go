package globalstats

import (
	"context"
	"fmt"
	"net/http"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// SentimentBody answers GET /api/v1/global-stats/sentiment.
type SentimentBody struct {
	Data SentimentData `json:"data"`
	Meta Meta          `json:"meta"`
}

// SentimentData holds the segments of the market.
type SentimentData struct {
	Sentiment []Sentiment `json:"sentiment" doc:"Segments by rank"`
	Segments  int         `json:"segments" doc:"Number of segments, without overall"`
	Overall   *Sentiment  `json:"overall,omitempty" doc:"All ranked coins"`
	Timestamp int64       `json:"timestamp" doc:"Unix seconds"`
}

// Sentiment is how many coins of a segment rose and fell within 24 hours.
type Sentiment struct {
	RankRange        string   `json:"rankRange" example:"1-50" doc:"Ranks by market cap that are included; all for every ranked coin"`
	Positive         uint32   `json:"positive" explain:"sentiment/{rankRange}/positive" doc:"Coins that rose"`
	Negative         uint32   `json:"negative" explain:"sentiment/{rankRange}/negative" doc:"Coins that fell"`
	Neutral          uint32   `json:"neutral" explain:"sentiment/{rankRange}/neutral" doc:"Coins whose price did not change"`
	Total            uint32   `json:"total" explain:"sentiment/{rankRange}/total" doc:"Coins with a known change"`
	Moved            uint32   `json:"moved" explain:"sentiment/{rankRange}/moved" doc:"Coins that rose or fell"`
	SentimentRatio   float64  `json:"sentimentRatio" explain:"sentiment/{rankRange}/sentimentRatio" doc:"0 to 1: rising coins as a share of those that rose or fell; 0.5 if none did"`
	Classification   string   `json:"classification" enum:"very bullish,bullish,neutral,bearish,very bearish" doc:"sentimentRatio in words: neutral between 0.45 and 0.55; very up to 0.25 and from 0.75"`
	AverageChange24h *float64 `json:"averageChange24h,omitempty" explain:"sentiment/{rankRange}/averageChange24h" doc:"Percent; absent if no change is known"`
	MedianChange24h  *float64 `json:"medianChange24h,omitempty" explain:"sentiment/{rankRange}/medianChange24h" doc:"Percent; absent if no change is known"`
	Timestamp        int64    `json:"timestamp" doc:"Unix seconds"`
}

// SentimentOfBody answers GET /api/v1/global-stats/sentiment/{rankRange}.
type SentimentOfBody struct {
	Data SentimentOf `json:"data"`
	Meta Meta        `json:"meta"`
}

func (u *Unit) sentiment() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/sentiment", ID: "getSentiment", Tag: tag,
		Summary:     "Number of coins that rose and fell within 24 hours, by rank segment",
		Description: "The segments 1-50, 51-100 and 101-250, and all ranked coins as overall. Coins without a known change are left out; each of the others counts once, whatever its market cap.",
		Params:      []query.Param{asOfParam},
		Body:        SentimentBody{}, NotFound: true, Hot: true, Handle: u.getSentiment,
	}
}

func (u *Unit) getSentiment(ctx context.Context, r *query.Request) (query.Answer, error) {
	return u.answerAt(ctx, r, key{operation: "sentiment"}, 0, func(now current) (any, error) {
		data := sentimentOf(now)
		return SentimentBody{data, now.meta(r, data.Segments)}, nil
	})
}

func (u *Unit) sentimentOf() query.Endpoint {
	ranges := append(rangeNames(), schemas.AllRanks.String())
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/sentiment/{rankRange}", ID: "getSentimentOfRanks", Tag: tag,
		Summary:     "Number of coins that rose and fell within 24 hours, in one rank segment",
		Description: "Coins without a known change are left out; each of the others counts once, whatever its market cap.",
		Params: []query.Param{{Name: "rankRange", In: query.Path, Kind: query.Text, Required: true, Allowed: ranges, Example: "1-50",
			Doc: "Rank segment by market cap; all returns every segment."}, asOfParam},
		Body: SentimentOfBody{}, NotFound: true, Hot: true, Handle: u.getSentimentOf,
	}
}

func (u *Unit) getSentimentOf(ctx context.Context, r *query.Request) (query.Answer, error) {
	name := r.Text("rankRange")
	return u.answerAt(ctx, r, key{operation: "sentimentOf", segment: name}, 0, func(now current) (any, error) {
		all := sentimentOf(now)
		if name == schemas.AllRanks.String() {
			return SentimentOfBody{SentimentOf{all}, now.meta(r, all.Segments)}, nil
		}
		for _, s := range all.Sentiment {
			if s.RankRange == name {
				return SentimentOfBody{SentimentOf{s}, now.meta(r, 1)}, nil
			}
		}
		return nil, fmt.Errorf("the summary of %s has no segment %s", query.FormatTime(now.Summary.Time), name)
	})
}

func sentimentOf(now current) SentimentData {
	data := SentimentData{Sentiment: []Sentiment{}, Timestamp: seconds(now.Summary.Time)}
	for _, s := range now.Summary.Sentiment {
		shown := toSentiment(s, now.Summary.Time)
		if s.Range == schemas.AllRanks.String() {
			data.Overall = &shown
			continue
		}
		data.Sentiment = append(data.Sentiment, shown)
	}
	data.Segments = len(data.Sentiment)
	return data
}

func toSentiment(s *eventsv1.Sentiment, at int64) Sentiment {
	shown := Sentiment{
		RankRange: s.Range, Positive: s.Positive, Negative: s.Negative, Neutral: s.Neutral, Total: s.Total, Moved: s.Positive + s.Negative,
		SentimentRatio: s.Ratio, Classification: s.Classification, Timestamp: seconds(at),
	}
	if s.Total > 0 {
		shown.AverageChange24h, shown.MedianChange24h = &s.AverageChange24H, &s.MedianChange24H
	}
	return shown
}

// rangeNames are the segments that the market is reported in.
func rangeNames() []string {
	var names []string
	for _, r := range schemas.RankRanges {
		names = append(names, r.String())
	}
	return names
}
