package yields

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// pastSeries is a series with what it is sorted by.
type pastSeries struct {
	poll.Series
	rank  int // of its coin
	value float64
}

// byRank are the pools of rates by the rank of their coins; those of none follow by their symbols.
func byRank(records []*eventsv1.ReferenceRecord) []poll.Series {
	return seriesOf(records, func(a, b pastSeries) int { return cmp.Or(a.rank-b.rank, strings.Compare(a.Symbol, b.Symbol)) })
}

// byValue are the pools of rates by what is supplied to them, the largest first; those that are among no coin's rates follow.
func byValue(records []*eventsv1.ReferenceRecord) []poll.Series {
	apart := func(s pastSeries) int {
		if s.Coin == "" {
			return 1
		}
		return 0
	}
	return seriesOf(records, func(a, b pastSeries) int { return cmp.Or(apart(a)-apart(b), cmp.Compare(b.value, a.value)) })
}

// seriesOf are the pools of rates, each once.
func seriesOf(records []*eventsv1.ReferenceRecord, order func(a, b pastSeries) int) []poll.Series {
	seen := map[string]bool{}
	var found []pastSeries
	for _, rec := range records {
		rate := rec.GetRate()
		if rate == nil || seen[rate.Pool] {
			continue
		}
		seen[rate.Pool] = true
		category := schemas.RateCategory(rate, "")
		s := pastSeries{Series: poll.Series{ID: rate.Pool, Symbol: rate.Symbol, Category: category}, rank: len(schemas.Coins().All()) + 1}
		served := category == "" || slices.Contains(schemas.RateCategories, category)
		if coin, ok := schemas.RateCoin(rate, category); ok && served {
			s.Coin, s.rank = coin.ID, cmp.Or(coin.Rank, s.rank)
		}
		s.value, _ = strconv.ParseFloat(rate.TvlUsd, 64) // 0 where it is missing
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(a, b pastSeries) int { return cmp.Or(order(a, b), strings.Compare(a.ID, b.ID)) })
	series := make([]poll.Series, len(found))
	for i, s := range found {
		series[i] = s.Series
	}
	return series
}
