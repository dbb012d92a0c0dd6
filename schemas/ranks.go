package schemas

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// RankRange is a segment of the market: the coins whose ranks by market cap are From to To, both included. To is 0
// where it has no end.
type RankRange struct{ From, To int }

// RankRanges are the segments that the market is published in.
var RankRanges = []RankRange{{1, 50}, {51, 100}, {101, 250}}

// AllRanks are all coins that have a rank.
var AllRanks = RankRange{From: 1}

// String is 1-50, or all.
func (r RankRange) String() string {
	if r == AllRanks {
		return "all"
	}
	return strconv.Itoa(r.From) + "-" + strconv.Itoa(r.To)
}

// Holds reports whether a rank lies in the segment; 0 is not a rank.
func (r RankRange) Holds(rank uint32) bool {
	return rank > 0 && int(rank) >= r.From && (r.To == 0 || int(rank) <= r.To)
}

// of is the part of the coins from rank 1 on that lies in the segment.
func (r RankRange) of(ranked []Standing) []Standing {
	to := len(ranked)
	if r.To != 0 {
		to = min(to, r.To)
	}
	return ranked[min(r.From-1, to):to]
}

// ParseRankRange reads all, top50, top100, top250, 1-50, 51-100, 101-250, 1-100 and 1-250, in any letter case.
func ParseRankRange(s string) (RankRange, bool) {
	switch strings.ToLower(s) {
	case "all":
		return AllRanks, true
	case "top50", "1-50":
		return RankRange{1, 50}, true
	case "51-100":
		return RankRange{51, 100}, true
	case "top100", "1-100":
		return RankRange{1, 100}, true
	case "101-250":
		return RankRange{101, 250}, true
	case "top250", "1-250":
		return RankRange{1, 250}, true
	}
	return RankRange{}, false
}

// MoversMinVolume is the volume of 24 hours, in USD, that a mover has at least unless it is asked for otherwise: what
// hardly trades moves by noise.
const MoversMinVolume = 50_000

// Movers are the coins of a segment that rose and fell most within 24 hours, the strongest first, at most limit of
// each. Coins of equal change are listed by rank, then by id. Rows may come in any order.
func Movers(rows []*eventsv1.Market, segment RankRange, limit int, minVolume float64) (gainers, losers []*eventsv1.Market) {
	for _, row := range rows {
		if !segment.Holds(row.Rank) || row.Change24H == nil || row.GetVolume24H() < minVolume {
			continue
		}
		switch {
		case *row.Change24H > 0:
			gainers = append(gainers, row)
		case *row.Change24H < 0:
			losers = append(losers, row)
		}
	}
	slices.SortFunc(gainers, func(a, b *eventsv1.Market) int {
		return cmp.Or(cmp.Compare(*b.Change24H, *a.Change24H), cmp.Compare(a.Rank, b.Rank), strings.Compare(a.CoinId, b.CoinId))
	})
	slices.SortFunc(losers, func(a, b *eventsv1.Market) int {
		return cmp.Or(cmp.Compare(*a.Change24H, *b.Change24H), cmp.Compare(a.Rank, b.Rank), strings.Compare(a.CoinId, b.CoinId))
	})
	return gainers[:min(len(gainers), limit)], losers[:min(len(losers), limit)]
}
