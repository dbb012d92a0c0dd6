package globalstats

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	defaultMovers = 10
	maxMovers     = 50
	// maxMoversOffset is beyond any catalog.
	maxMoversOffset = 100_000
	// toolSegment is what the tool view answers unless it is asked for another segment.
	toolSegment = "top100"
	// flatRange is the segment whose gainers and losers are reported in one list.
	flatRange = "1-250"
	// maxMinVolume is beyond any day's volume of a coin, in USD.
	maxMinVolume = 1_000_000_000_000_000
)

// MoversBody answers GET /api/v1/global-stats/movers.
type MoversBody struct {
	Data MoversData `json:"data"`
	Meta Meta       `json:"meta"`
}

// MoversData holds segments of the market.
type MoversData struct {
	Movers    []Segment `json:"movers" doc:"Segments by rank, each with its gainers and losers"`
	Segments  int       `json:"segments" doc:"Number of segments"`
	Timestamp int64     `json:"timestamp" doc:"Unix seconds"`
}

// MoversToolBody is the tool's form, of one segment.
type MoversToolBody struct {
	RankRange string  `json:"rankRange" doc:"Ranks by market cap that are included; all for every ranked coin"`
	Gainers   []Mover `json:"gainers" doc:"Largest gain first"`
	Losers    []Mover `json:"losers" doc:"Largest loss first"`
	MoversTotals
	Timestamp int64 `json:"timestamp" doc:"Unix seconds"`
	Meta      Meta  `json:"meta"`
}

// MoversTotals are how many coins there are to page through. They depend on the least volume that was asked for, which names them.
type MoversTotals struct {
	TotalGainers int   `json:"totalGainers" explain:"movers/{rankRange}/{minVolume}/totalGainers" doc:"Number of rising coins in the segment with the minimum volume"`
	TotalLosers  int   `json:"totalLosers" explain:"movers/{rankRange}/{minVolume}/totalLosers" doc:"Number of falling coins in the segment with the minimum volume"`
	MinVolume    int64 `json:"minVolume" doc:"Minimum volume of 24 hours, USD, as asked for"`
}

// Segment is what moved most of a segment of ranks.
type Segment struct {
	RankRange string  `json:"rankRange" example:"1-50" doc:"Ranks by market cap that are included; all for every ranked coin"`
	Gainers   []Mover `json:"gainers" doc:"Largest gain first"`
	Losers    []Mover `json:"losers" doc:"Largest loss first"`
	MoversTotals
	Timestamp int64 `json:"timestamp" doc:"Unix seconds"`
}

// FlatSegment is what moved most of the 250 largest coins, gainers first.
type FlatSegment struct {
	RankRange string      `json:"rankRange" doc:"Ranks by market cap that are included: always 1-250"`
	Movers    []FlatMover `json:"movers" doc:"Gainers, largest gain first, then losers, largest loss first"`
	MoversTotals
	Timestamp int64 `json:"timestamp" doc:"Unix seconds"`
}

// FlatMover is a mover of either side.
type FlatMover struct {
	Mover
	IsGainer bool `json:"isGainer" doc:"Whether the coin rose; false if it fell"`
}

// Mover is a coin that rose or fell within 24 hours.
type Mover struct {
	RankInSegment  int      `json:"rankInSegment" doc:"Among the gainers, or the losers, of the segment; 1 is the largest change"`
	ID             string   `json:"id" example:"bitcoin" doc:"Id of the coin"`
	Slug           string   `json:"slug" doc:"Equal to id"`
	Symbol         string   `json:"symbol" example:"btc" doc:"Symbol of the coin, in lower case"`
	Name           string   `json:"name" doc:"Name of the coin"`
	Logo           string   `json:"logo,omitempty" doc:"URL of the coin's logo; absent if none is known"`
	Price          float64  `json:"price" explain:"market/{id}/price" doc:"USD"`
	PriceChange24h float64  `json:"priceChange24h" explain:"market/{id}/change24h" doc:"Percent"`
	MarketCap      *float64 `json:"marketCap,omitempty" explain:"market/{id}/marketCap" doc:"USD"`
	MarketCapRank  uint32   `json:"marketCapRank" explain:"market/{id}/rank"`
	Rank           uint32   `json:"rank" explain:"market/{id}/rank" doc:"Equal to marketCapRank"`
	Volume24h      *float64 `json:"volume24h,omitempty" explain:"market/{id}/volume24h" doc:"USD"`
	LastUpdated    string   `json:"lastUpdated,omitempty" format:"date-time" doc:"Time of the price"`
}

// MoversOfBody answers GET /api/v1/global-stats/movers/{rankRange}.
type MoversOfBody struct {
	Data MoversOf `json:"data"`
	Meta Meta     `json:"meta"`
}

var (
	limitParam = query.Param{Name: "limit", Kind: query.Integer, Default: strconv.Itoa(defaultMovers), Min: 1,
		Max: maxMovers, Doc: "Maximum number of gainers and of losers per segment."}
	offsetParam = query.Param{Name: "offset", Kind: query.Integer, Default: "0", Min: 0, Max: maxMoversOffset,
		Doc: "Gainers and losers to skip per segment."}
	floorParam = query.Param{Name: "min_volume", Kind: query.Integer, Default: strconv.Itoa(schemas.MoversMinVolume), Min: 0,
		Max: maxMinVolume,
		Doc: "Minimum 24-hour volume in USD; prices of illiquid coins are noise."}
)

func (u *Unit) movers() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/movers", ID: "getMovers", Tool: "top_movers", Tag: tag,
		Summary:     "Largest gainers and losers within 24 hours",
		Description: "The largest change first; each segment is paged by itself.",
		Params: []query.Param{{Name: "segment", Kind: query.Text, Example: "1-50",
			Allowed: append([]string{"top50", "top100", "top250", "all", "1-100", flatRange}, rangeNames()...),
			Doc:     "Rank segment by market cap. Default: in the tool view " + toolSegment + ", in the reference view all three segments."},
			limitParam, offsetParam, floorParam, asOfParam},
		Body: MoversBody{}, ToolBody: MoversToolBody{}, NotFound: true, Hot: true, Handle: u.getMovers,
	}
}

func (u *Unit) getMovers(ctx context.Context, r *query.Request) (query.Answer, error) {
	name := r.Text("segment")
	return u.answerAt(ctx, r, moversKey("movers", name, r), partCoins, func(now current) (any, error) {
		if r.View == query.Tool {
			if name == "" {
				name = toolSegment
			}
			s := now.segment(rangeNamed(name), r)
			return MoversToolBody{s.RankRange, s.Gainers, s.Losers, s.MoversTotals, s.Timestamp, now.meta(r, len(s.Gainers)+len(s.Losers))}, nil
		}
		ranges := schemas.RankRanges
		if name != "" {
			ranges = []schemas.RankRange{rangeNamed(name)}
		}
		data := now.segments(ranges, r)
		return MoversBody{data, now.meta(r, data.Segments)}, nil
	})
}

func (u *Unit) moversOf() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/movers/{rankRange}", ID: "getMoversOfRanks", Tag: tag,
		Summary:     "Largest gainers and losers within 24 hours in one rank segment",
		Description: "Ranked coins with a known change and the minimum volume, the largest change first. Limit and offset apply to gainers and to losers separately; 1-250 has both in one list, gainers first.",
		Params: []query.Param{{Name: "rankRange", In: query.Path, Kind: query.Text, Required: true, Example: "1-50",
			Allowed: append(rangeNames(), flatRange, schemas.AllRanks.String()),
			Doc:     "Ranks by market cap; " + flatRange + " answers one list of both sides, all every segment."},
			limitParam, offsetParam, floorParam, asOfParam},
		Body: MoversOfBody{}, NotFound: true, Hot: true, Handle: u.getMoversOf,
	}
}

func (u *Unit) getMoversOf(ctx context.Context, r *query.Request) (query.Answer, error) {
	name := r.Text("rankRange")
	return u.answerAt(ctx, r, moversKey("moversOf", name, r), partCoins, func(now current) (any, error) {
		if name == schemas.AllRanks.String() {
			data := now.segments(schemas.RankRanges, r)
			return MoversOfBody{MoversOf{data}, now.meta(r, data.Segments)}, nil
		}
		s := now.segment(rangeNamed(name), r)
		count := len(s.Gainers) + len(s.Losers)
		if name != flatRange {
			return MoversOfBody{MoversOf{s}, now.meta(r, count)}, nil
		}
		flat := FlatSegment{RankRange: s.RankRange, Movers: make([]FlatMover, 0, count), MoversTotals: s.MoversTotals,
			Timestamp: s.Timestamp}
		for _, m := range s.Gainers {
			flat.Movers = append(flat.Movers, FlatMover{m, true})
		}
		for _, m := range s.Losers {
			flat.Movers = append(flat.Movers, FlatMover{m, false})
		}
		return MoversOfBody{MoversOf{flat}, now.meta(r, count)}, nil
	})
}

func moversKey(operation, segment string, r *query.Request) key {
	return key{operation: operation, segment: segment, limit: r.Integer("limit"), offset: r.Integer("offset"),
		minVolume: r.Integer("min_volume")}
}

// rangeNamed reads a segment that the declaration allows.
func rangeNamed(name string) schemas.RankRange {
	ranks, ok := schemas.ParseRankRange(name)
	if !ok {
		panic("no segment is called " + name + ", which a declaration allows")
	}
	return ranks
}

func (c current) segments(ranges []schemas.RankRange, r *query.Request) MoversData {
	data := MoversData{Movers: []Segment{}, Segments: len(ranges), Timestamp: seconds(c.Summary.Time)}
	for _, ranks := range ranges {
		data.Movers = append(data.Movers, c.segment(ranks, r))
	}
	return data
}

func (c current) segment(ranks schemas.RankRange, r *query.Request) Segment {
	return c.moversIn(ranks, int(r.Integer("limit")), int(r.Integer("offset")), r.Integer("min_volume"))
}

func (c current) moversIn(ranks schemas.RankRange, limit, offset int, minVolume int64) Segment {
	var rows []*eventsv1.Market
	for _, coin := range c.Coins { // by rank, those without one last
		if coin.Rank == 0 || ranks.To > 0 && coin.Rank > ranks.To {
			break
		}
		rows = append(rows, coin.Market)
	}
	gainers, losers := schemas.Movers(rows, ranks, len(rows), float64(minVolume))
	return Segment{
		RankRange: ranks.String(), Gainers: c.page(gainers, limit, offset), Losers: c.page(losers, limit, offset),
		MoversTotals: MoversTotals{len(gainers), len(losers), minVolume}, Timestamp: seconds(c.Summary.Time),
	}
}

// page is a page of the movers of a side.
func (c current) page(rows []*eventsv1.Market, limit, offset int) []Mover {
	page := rows[min(len(rows), offset):]
	page = page[:min(len(page), limit)]
	movers := make([]Mover, len(page))
	for i, row := range page {
		movers[i] = Mover{
			RankInSegment: offset + i + 1, ID: row.CoinId, Slug: row.CoinId, Symbol: strings.ToLower(row.Symbol),
			Name: row.Name, Price: row.Price,
			PriceChange24h: row.GetChange24H(), MarketCap: row.MarketCap, MarketCapRank: row.Rank, Rank: row.Rank, Volume24h: row.Volume24H,
			LastUpdated: query.FormatTime(row.PriceTime),
		}
		if coin := c.ByID(row.CoinId); coin != nil {
			movers[i].Logo = coin.ImageURL
		}
	}
	return movers
}
