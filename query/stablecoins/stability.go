package stablecoins

import (
	"context"
	"net/http"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// maxEpisodes bounds the episodes of an answer; the newest are told.
const maxEpisodes = 100

// StabilityBody answers GET /api/v1/stablecoins/{symbol}/peg-stability.
type StabilityBody struct {
	Entry
	// These stand in the entry too, and are always there here.
	PegTarget    float64             `json:"pegTarget" doc:"What one unit of the peg costs in USD"`
	Deviation    float64             `json:"deviation" doc:"Signed basis points, below the peg negative"`
	Window       string              `json:"window" example:"30d"`
	Granularity  string              `json:"granularity" enum:"5m,1h,1d"`
	History      []Point             `json:"history" doc:"Oldest first; a step without a price is left out"`
	Episodes     []Episode           `json:"episodes" doc:"Times in the window in which the peg was lost, by the closes of minutes, oldest first"`
	NativeQuotes []Native            `json:"nativeQuotes" doc:"What each market says, as the last price was made from them"`
	Ambiguous    bool                `json:"ambiguous,omitempty" doc:"Other coins have this symbol too"`
	Alternatives []views.Alternative `json:"alternatives,omitempty"`
	Meta         Meta                `json:"meta"`
}

// Point is the deviation at the end of a step.
type Point struct {
	Timestamp string  `json:"timestamp" format:"date-time"`
	Value     float64 `json:"value" doc:"Signed basis points"`
	Price     float64 `json:"price" doc:"USD"`
}

// Episode is a time in which a peg was lost: from the close of a minute 50 basis points or more away until one less than 25.
type Episode struct {
	Start           string  `json:"start" format:"date-time"`
	Trough          string  `json:"trough" format:"date-time" doc:"When it was furthest away"`
	TroughBps       float64 `json:"troughBps" doc:"How far, in signed basis points"`
	Recovery        string  `json:"recovery,omitempty" format:"date-time" doc:"Left out while it lasts"`
	DurationSeconds int64   `json:"durationSeconds" doc:"Up to now while it lasts"`
	Ongoing         bool    `json:"ongoing"`
}

// Native is what one market says of a stablecoin.
type Native struct {
	Exchange     string   `json:"exchange" example:"kraken"`
	VenueSymbol  string   `json:"venueSymbol"`
	Quote        string   `json:"quote" doc:"What it is told in: symbol of a coin or code of a currency"`
	QuoteCoinID  string   `json:"quoteCoinId,omitempty" doc:"Where the quote is a coin"`
	Price        float64  `json:"price" doc:"In the quote"`
	Native       bool     `json:"native" doc:"It is quoted in the currency of the peg, so no rate stands between"`
	DeviationBps *float64 `json:"deviationBps,omitempty" doc:"Signed basis points from the peg; left out where the quote could not be converted"`
	Accepted     bool     `json:"accepted" doc:"It counted in the price"`
}

func (u *Unit) stability() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/stablecoins/{symbol}/peg-stability", ID: "getPegStability", Tool: "stablecoin_peg_stability", Tag: tag,
		Summary:     "How well a stablecoin keeps its peg, now and over time",
		Description: "The score is 100 less half the mean, 0.3 of the 95th percentile and 0.2 of the newest absolute deviation in basis points, over the minutes of 30 days whatever the window.",
		Params: []query.Param{{Name: "symbol", In: query.Path, Kind: query.Text, Required: true, MaxLength: 128, Example: "USDT",
			Doc: "Symbol or coin id, in any letter case. A symbol means the largest stablecoin that has it."}, windowParam},
		Body: StabilityBody{}, NotFound: true, Handle: u.getStability,
	}
}

func (u *Unit) getStability(ctx context.Context, r *query.Request) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	if u.board.Now() == 0 && snapshot.Time == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	k, others, err := u.find(snapshot, r)
	if err != nil {
		return query.Answer{}, err
	}
	deviation := k.deviation()
	if deviation == nil {
		return query.Answer{}, query.NotFound("no price of %s in its peg %s is known", k.id, k.peg)
	}
	back, _ := readWindow(r.Text("window"))
	body := StabilityBody{
		PegTarget: k.target, Deviation: *deviation, Window: strings.ToLower(r.Text("window")), Granularity: back.granularity,
		History: []Point{}, Episodes: []Episode{}, NativeQuotes: u.quotes(k), Ambiguous: len(others) > 0,
		Alternatives: others,
	}
	var kept views.PegStatistic
	if k.own {
		if kept, err = u.keptOf(ctx, k, r); err != nil {
			return query.Answer{}, err
		}
		p, err := u.past(ctx, k.id, back, r.Now)
		if err != nil {
			return query.Answer{}, err
		}
		body.tellPast(p, r)
	} else {
		body.Meta.Reason = "no_history"
	}
	body.Entry = k.response(kept)
	body.Meta.Count, body.Meta.LastUpdated = len(body.History), query.FormatTime(k.priceTime)
	if k.said != nil {
		body.Meta.Attributions = attributions(snapshot)
	}
	if back.clamped {
		body.Meta.Clamped = map[string]int64{"window": maxDays}
	}
	answer, err := query.Encode(body)
	answer.Simulated = k.simulated
	return answer, err
}

func (u *Unit) keptOf(ctx context.Context, k *known, r *query.Request) (views.PegStatistic, error) {
	kept, err := u.kept(ctx, r.Now)
	return kept[k.id], err
}

// find turns a name into a stablecoin: an id comes before a symbol, and of several with the symbol the largest counts.
func (u *Unit) find(snapshot *views.Snapshot, r *query.Request) (found *known, others []views.Alternative, err error) {
	name := r.Text("symbol")
	id, symbol := strings.ToLower(name), strings.ToUpper(name)
	for _, k := range u.all(snapshot, r.Now) {
		switch {
		case k.id == id:
			return k, nil, nil
		case k.symbol != symbol:
		case found == nil || k.size() > found.size():
			found = k
		}
	}
	if found != nil {
		for _, coin := range snapshot.BySymbol(symbol) {
			if coin.ID != found.id {
				others = append(others, views.Alternative{CoinID: coin.ID, Name: coin.Name, Rank: coin.Rank})
			}
		}
		return found, others, nil
	}
	if coin, ok := snapshot.Find(name); ok {
		return nil, nil, query.NotFound("%s is no stablecoin", coin.ID)
	}
	return nil, nil, query.NotFound("no coin has the symbol or id %q", strings.ToValidUTF8(name, "�"))
}

// size is the market cap, 0 where it is not known.
func (k *known) size() float64 {
	if marketCap := k.marketCap(); marketCap != nil {
		return *marketCap
	}
	return 0
}

func (b *StabilityBody) tellPast(p *past, r *query.Request) {
	for _, s := range p.samples {
		b.History = append(b.History, Point{query.FormatTime(s.Time.UnixNano()), s.DeviationBps, s.Price})
	}
	for _, e := range p.episodes[max(0, len(p.episodes)-maxEpisodes):] {
		told := Episode{Start: query.FormatTime(e.Start.UnixNano()), Trough: query.FormatTime(e.Trough.UnixNano()), TroughBps: e.TroughBps, Ongoing: e.Recovery.IsZero()}
		end := r.Now
		if !told.Ongoing {
			end, told.Recovery = e.Recovery, query.FormatTime(e.Recovery.UnixNano())
		}
		told.DurationSeconds = int64(end.Sub(e.Start).Seconds())
		b.Episodes = append(b.Episodes, told)
	}
}

// quotes are the markets that the last price was made from.
func (u *Unit) quotes(k *known) []Native {
	quotes := []Native{}
	if k.entry == nil {
		return quotes
	}
	for _, in := range k.entry.Latest.Inputs {
		if price := told(in); price > 0 {
			quote, quoteCoin := u.board.Quote(in.QuoteId)
			quotes = append(quotes, Native{
				Exchange: in.Provider, VenueSymbol: in.Symbol, Quote: quote, QuoteCoinID: quoteCoin, Price: price, Native: in.QuoteId == k.peg,
				DeviationBps: k.deviationIn(in, price), Accepted: in.Accepted,
			})
		}
	}
	return quotes
}

// told is a market's value in its quote; one that did not come to have a value tells what it traded at last, or its mid.
func told(in *eventsv1.PriceInput) float64 {
	switch {
	case in.Value > 0:
		return in.Value
	case in.Last > 0:
		return in.Last
	case in.Bid > 0 && in.Ask > 0:
		return (in.Bid + in.Ask) / 2
	}
	return 0
}

// deviationIn is that of a market: in the currency of the peg no rate stands between.
func (k *known) deviationIn(in *eventsv1.PriceInput, price float64) *float64 {
	var bps float64
	switch {
	case in.QuoteId == k.peg:
		bps = schemas.PegDeviationBps(price, 1)
	case in.Rate > 0 && !in.Unpriced:
		bps = schemas.PegDeviationBps(price*in.Rate, k.target)
	default:
		return nil
	}
	return &bps
}
