package schemas_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// changed are rows that changed so within 24 hours, by rank; each trades the volume.
func changed(volume float64, changes ...float64) []*eventsv1.Market {
	rows := make([]*eventsv1.Market, len(changes))
	for i, c := range changes {
		marketCap := float64(1000 - i)
		rows[i] = &eventsv1.Market{CoinId: fmt.Sprint("coin-", i+1), Rank: uint32(i + 1), Change24H: &c, Volume24H: &volume, MarketCap: &marketCap}
	}
	return rows
}

func standings(rows []*eventsv1.Market) []schemas.Standing {
	var list []schemas.Standing
	for _, row := range rows {
		list = append(list, schemas.NewStanding(row, nil))
	}
	return list
}

func TestSentimentCountsWhoRoseAmongThoseWhoMoved(t *testing.T) {
	unknown := changed(0, 1, -1, 0)
	unknown[2].Change24H = nil
	for _, test := range []struct {
		rows []*eventsv1.Market
		want string
	}{
		{nil, "all +0 -0 =0 of 0, 0.5 neutral, mean 0 median 0"},
		{changed(0, 0, 0), "all +0 -0 =2 of 2, 0.5 neutral, mean 0 median 0"},
		{changed(0, 1, 2, 3, -2), "all +3 -1 =0 of 4, 0.75 very bullish, mean 1 median 1.5"},
		{changed(0, -1, -2, -3, 2, 0), "all +1 -3 =1 of 5, 0.25 very bearish, mean -0.8 median -1"},
		{unknown, "all +1 -1 =0 of 2, 0.5 neutral, mean 0 median 0"},
	} {
		s := schemas.NewSentiment(standings(test.rows), schemas.AllRanks)
		got := fmt.Sprintf("%s +%d -%d =%d of %d, %v %s, mean %v median %v", s.Range, s.Positive, s.Negative, s.Neutral, s.Total, s.Ratio, s.Classification, s.AverageChange24H, s.MedianChange24H)
		if got != test.want {
			t.Errorf("%d rows: got %s, want %s", len(test.rows), got, test.want)
		}
	}
	rows := changed(0, make([]float64, 300)...)
	for segment, want := range map[schemas.RankRange]uint32{{From: 1, To: 50}: 50, {From: 51, To: 100}: 50, {From: 101, To: 250}: 150, schemas.AllRanks: 300} {
		if got := schemas.NewSentiment(standings(rows), segment).Total; got != want {
			t.Errorf("of 300 ranks %s has %d, want %d", segment, got, want)
		}
	}
}

func TestSentimentClassesMeetWhereTheyShould(t *testing.T) {
	for ratio, want := range map[float64]string{
		1: "very bullish", 0.75: "very bullish", 0.7499: "bullish", 0.55: "bullish", 0.5499: "neutral", 0.4501: "neutral", 0.45: "bearish", 0.2501: "bearish", 0.25: "very bearish", 0: "very bearish",
	} {
		if got := schemas.SentimentClass(ratio); got != want {
			t.Errorf("%v: got %s, want %s", ratio, got, want)
		}
	}
	for value, want := range map[uint32]string{0: "Extreme Fear", 25: "Extreme Fear", 26: "Fear", 46: "Fear", 47: "Neutral", 54: "Neutral", 55: "Greed", 75: "Greed", 76: "Extreme Greed", 100: "Extreme Greed"} {
		if got := schemas.FearGreedClass(value); got != want {
			t.Errorf("%d: got %s, want %s", value, got, want)
		}
	}
}

func TestMoversAreTheStrongestThatTrade(t *testing.T) {
	rows := changed(schemas.MoversMinVolume, 3, -4, 9, -1, 0, 9)
	quiet := changed(schemas.MoversMinVolume-1, 99)[0]
	quiet.Rank = 7
	unranked := changed(schemas.MoversMinVolume, -99)[0]
	unranked.Rank = 0
	rows = append(rows, quiet, unranked)
	ranks := func(rows []*eventsv1.Market) string {
		var s []string
		for _, r := range rows {
			s = append(s, fmt.Sprint(r.Rank))
		}
		return strings.Join(s, " ")
	}
	for _, test := range []struct {
		segment         schemas.RankRange
		limit           int
		minVolume       float64
		gainers, losers string
	}{
		{schemas.AllRanks, 10, schemas.MoversMinVolume, "3 6 1", "2 4"},
		{schemas.AllRanks, 1, schemas.MoversMinVolume, "3", "2"},
		{schemas.AllRanks, 10, 0, "7 3 6 1", "2 4"},
		{schemas.RankRange{From: 2, To: 3}, 10, 0, "3", "2"},
	} {
		gainers, losers := schemas.Movers(rows, test.segment, test.limit, test.minVolume)
		if ranks(gainers) != test.gainers || ranks(losers) != test.losers {
			t.Errorf("%s, %d each, volume %v: got ranks %s and %s, want %s and %s", test.segment, test.limit, test.minVolume, ranks(gainers), ranks(losers), test.gainers, test.losers)
		}
	}
}

func TestRankRangesAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]string{"all": "all", "ALL": "all", "top50": "1-50", "top100": "1-100", "Top250": "1-250", "1-50": "1-50", "51-100": "51-100", "101-250": "101-250", "1-250": "1-250", "1-100": "1-100"} {
		if got, ok := schemas.ParseRankRange(text); !ok || got.String() != want {
			t.Errorf("%q: got %s, %t, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "50", "2-50", "1-51", "top", "0-0", "-"} {
		if got, ok := schemas.ParseRankRange(text); ok {
			t.Errorf("%q: got %s, want none", text, got)
		}
	}
}
