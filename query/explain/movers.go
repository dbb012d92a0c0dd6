package explain

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Numbers of coins that rose and fell, with a least volume; those of sentiment count coins of any volume.
const (
	totalGainers = "totalGainers"
	totalLosers  = "totalLosers"
)

func moversFieldNames() []string { return []string{totalGainers, totalLosers} }

// moverRanges are the segments of ranks that movers are counted in.
var moverRanges = []string{"1-50", "51-100", "101-250", "1-100", "1-250", schemas.AllRanks.String()}

// movers explains how many coins of a segment of ranks rose or fell: movers/{ranks}/{minimum volume}/{field}.
func (w *work) movers(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	least, err := strconv.ParseFloat(parts[2], 64)
	switch {
	case !slices.Contains(moverRanges, parts[1]):
		return nil, w.nearField(name, parts, 1, moverRanges)
	case err != nil || !(least >= 0) || least != math.Trunc(least) || math.IsInf(least, 0):
		return nil, unknown(name, "movers/"+parts[1]+"/"+strconv.Itoa(schemas.MoversMinVolume)+"/"+parts[3])
	case !slices.Contains(moversFieldNames(), parts[3]):
		return nil, w.nearField(name, parts, 3, moversFieldNames())
	case !w.past && w.snapshot.Summary.GetTotalMarketCap() <= 0:
		return nil, query.Starting("no minute in which a coin had a market cap was folded yet")
	}
	segment, _ := schemas.ParseRankRange(parts[1])
	snapshot, err := w.coinsServed(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := w.servedRows(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	var served, again []*eventsv1.Market
	for _, coin := range snapshot.Coins {
		if coin.Market == nil || !segment.Holds(coin.Market.Rank) {
			continue
		}
		served = append(served, coin.Market)
		if row, err := w.rowAgain(ctx, rows, coin); err != nil {
			return nil, err
		} else if row != nil {
			again = append(again, row)
		}
	}
	counted := func(rows []*eventsv1.Market) []*eventsv1.Market {
		gainers, losers := schemas.Movers(rows, segment, len(rows), least)
		if parts[3] == totalGainers {
			return gainers
		}
		return losers
	}
	count := func(rows []*eventsv1.Market) *float64 {
		number := float64(len(counted(rows)))
		return &number
	}
	n := headline("movers/"+parts[1]+"/"+strconv.FormatFloat(least, 'f', -1, 64)+"/"+parts[3], count(served), "", snapshot.Time)
	n.Method = &Method{Name: "movers", Version: 1, Formula: "number of coins of these ranks that " + map[string]string{totalGainers: "rose", totalLosers: "fell"}[parts[3]] +
		" within 24 hours, of those with at least the minimum volume24h"}
	w.simulated = w.simulated || snapshot.Simulated
	if rows.lacks > 0 {
		rows.notReproduced(n)
	} else {
		n.compare(count(again))
	}
	change, _ := marketFieldNamed("change24h")
	for _, row := range counted(served) {
		n.Inputs = append(n.Inputs, rowInput(snapshot.ByID(row.CoinId), change))
	}
	n.fewer(false)
	return n, w.traceRows(ctx, rows, n.Inputs, depth-1)
}
