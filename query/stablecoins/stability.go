package stablecoins

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// maxEpisodes bounds the episodes of an answer; the newest are reported.
const maxEpisodes = 100

// StabilityBody answers GET /api/v1/stablecoins/{symbol}/peg-stability.
type StabilityBody struct {
	Entry
	// These are in the entry too, and are always there here.
	PegTarget    float64             `json:"pegTarget" explain:"peg/{coinId}/target" doc:"USD per unit of the pegged currency"`
	Deviation    float64             `json:"deviation" explain:"peg/{coinId}" doc:"Signed basis points; negative below the peg"`
	Window       string              `json:"window" example:"30d" doc:"Period of the history, as asked for"`
	Granularity  string              `json:"granularity" enum:"5m,1h,1d"`
	History      []Point             `json:"history" doc:"Oldest first; steps without a price are left out"`
	Episodes     []Episode           `json:"episodes" doc:"Periods in the window in which the peg was lost, by minute closes, oldest first"`
	NativeQuotes []Native            `json:"nativeQuotes" doc:"Markets that the last price was computed from"`
	Ambiguous    bool                `json:"ambiguous,omitempty" doc:"The symbol is ambiguous: other coins have it too"`
	Alternatives []views.Alternative `json:"alternatives,omitempty"`
	Meta         Meta                `json:"meta"`
}

// Point is the deviation at the end of a step.
type Point struct {
	Timestamp string  `json:"timestamp" format:"date-time" doc:"Time of the last close in the step"`
	Value     float64 `json:"value" explain:"peg-point/{coinId}/{timestamp}" doc:"Signed basis points"`
	Price     float64 `json:"price" explain:"peg-point/{coinId}/{timestamp}/price" doc:"USD"`
}

// Episode is a time in which a peg was lost: from the close of a minute 50 basis points or more away until one less than 25.
type Episode struct {
	Start           string  `json:"start" format:"date-time" doc:"First minute close at least 50 basis points away from the peg"`
	Trough          string  `json:"trough" format:"date-time" doc:"Time of the largest deviation"`
	TroughBps       float64 `json:"troughBps" explain:"peg-point/{coinId}/{trough}" doc:"Largest deviation, signed basis points"`
	Recovery        string  `json:"recovery,omitempty" format:"date-time" doc:"Absent while it lasts"`
	DurationSeconds int64   `json:"durationSeconds" doc:"Up to now while it lasts"`
	Ongoing         bool    `json:"ongoing" doc:"The peg has not been held again yet"`
}

// Native is what one market reports of a stablecoin.
type Native struct {
	Exchange     string   `json:"exchange" example:"kraken" doc:"Slug of the exchange"`
	VenueSymbol  string   `json:"venueSymbol" doc:"The market, as the exchange spells it"`
	Quote        string   `json:"quote" doc:"Quote asset: symbol of a coin or code of a currency"`
	QuoteCoinID  string   `json:"quoteCoinId,omitempty" doc:"Coin id of the quote asset, if it is a coin"`
	Price        float64  `json:"price" explain:"venue-price/price/{exchange}/{venueSymbol}" doc:"In the quote asset"`
	Native       bool     `json:"native" doc:"Quoted in the currency of the peg, so no exchange rate is applied"`
	DeviationBps *float64 `json:"deviationBps,omitempty" explain:"venue-price/deviationBps/{exchange}/{venueSymbol}" doc:"Signed basis points from the peg; absent if the quote asset could not be converted"`
	Accepted     bool     `json:"accepted" doc:"It was accepted into the price"`
}

func (u *Unit) stability() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/stablecoins/{symbol}/peg-stability", ID: "getPegStability", Tool: "stablecoin_peg_stability", Tag: tag,
		Summary:     "Peg stability of a stablecoin, current and over time",
		Description: "The score is 100 minus 0.5 of the mean, 0.3 of the 95th percentile and 0.2 of the newest absolute deviation in basis points, always over the minutes of 30 days.",
		Params: []query.Param{{Name: "symbol", In: query.Path, Kind: query.Text, Required: true, MaxLength: 128, Example: "USDT",
			Doc: "Symbol or coin id, case-insensitive. A symbol means the largest stablecoin that has it."}, windowParam, asOfParam},
		Body: StabilityBody{}, NotFound: true, Handle: u.getStability,
	}
}

func (u *Unit) getStability(ctx context.Context, r *query.Request) (query.Answer, error) {
	if at, past := r.Time("asOf"); past {
		s, kept, err := u.servedAt(ctx, at)
		if err != nil {
			return query.Answer{}, query.FaultOfPast(err, at)
		}
		return s.stability(ctx, r, func() (views.PegsByCoin, error) { return kept, nil }, func(k *known, back window) (*views.CandlesAsOf, error) {
			return u.madeAt(ctx, k, back, at)
		})
	}
	snapshot := u.catalog.Snapshot()
	if u.priceCache.Now() == 0 && snapshot.Time == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	statistics := func() (views.PegsByCoin, error) { return u.statistics.Current(ctx, r.Now) }
	return u.current(snapshot, r.Now).stability(ctx, r, statistics, func(k *known, _ window) (*views.CandlesAsOf, error) {
		coin, _ := u.priceCache.Coins().ByID(k.id)
		return u.served.Candles.Made(ctx, coin, r.Now)
	})
}

// stability answers for one stablecoin of a state, with its statistics and what of the candles its past is made of.
func (s *state) stability(ctx context.Context, r *query.Request, statistics func() (views.PegsByCoin, error), made func(*known, window) (*views.CandlesAsOf, error)) (query.Answer, error) {
	k, others, err := s.find(r.Text("symbol"))
	if err != nil {
		return query.Answer{}, err
	}
	deviation := k.deviation()
	if deviation == nil {
		return query.Answer{}, query.NotFound("there is no price of %s in its peg %s", k.id, k.peg)
	}
	back, _ := readWindow(r.Text("window"))
	body := StabilityBody{
		PegTarget: k.target, Deviation: *deviation, Window: strings.ToLower(r.Text("window")), Granularity: back.granularity,
		History: []Point{}, Episodes: []Episode{}, NativeQuotes: s.quotes(k), Ambiguous: len(others) > 0,
		Alternatives: others,
	}
	var kept *eventsv1.ServedPeg
	if k.own {
		pegs, err := statistics()
		if err != nil {
			return query.Answer{}, err
		}
		kept = pegs[k.id]
		of, err := made(k, back)
		if err != nil {
			return query.Answer{}, err
		}
		p, err := s.past(ctx, k.id, back, s.at, of)
		if err != nil {
			return query.Answer{}, query.FaultOfPast(s.served.Candles.Unknown(ctx, err), s.at)
		}
		body.setPast(p, s.at)
	} else {
		body.Meta.Reason = "no_history"
	}
	body.Entry = k.response(kept)
	body.Meta.Count, body.Meta.LastUpdated = len(body.History), query.FormatTime(k.priceTime)
	if k.reported != nil {
		body.Meta.Attributions = attributions(s.snapshot)
	}
	if back.clamped {
		body.Meta.Clamped = map[string]int64{"window": maxDays}
	}
	answer, err := query.Encode(body)
	answer.Simulated = k.simulated
	return answer, err
}

// find turns a name into a stablecoin: an id comes before a symbol, and of several with the symbol the largest counts.
func (s *state) find(name string) (found *known, others []views.Alternative, err error) {
	id, symbol := strings.ToLower(name), strings.ToUpper(name)
	for _, k := range s.all() {
		switch {
		case k.id == id:
			return k, nil, nil
		case k.symbol != symbol:
		case found == nil || k.size() > found.size():
			found = k
		}
	}
	if found != nil {
		same := slices.Clone(s.names.BySymbol(symbol))
		slices.SortStableFunc(same, func(a, b *views.CatalogCoin) int {
			return cmp.Or(cmp.Compare(s.place(a), s.place(b)), strings.Compare(a.ID, b.ID))
		})
		for _, coin := range same {
			if coin.ID != found.id {
				others = append(others, views.Alternative{CoinID: coin.ID, Name: coin.Name, Rank: int(s.row(coin.ID).GetRank())})
			}
		}
		return found, others, nil
	}
	if coin, ok := s.names.Find(name); ok {
		return nil, nil, query.NotFound("%s is not a stablecoin", coin.ID)
	}
	return nil, nil, query.NoCoin(s.names, name)
}

// place orders coins of one symbol by rank, or where they have none by that of our table.
func (s *state) place(coin *views.CatalogCoin) int {
	return cmp.Or(int(s.row(coin.ID).GetRank()), coin.Own.Rank, math.MaxInt)
}

// size is the market cap, 0 where it is not known.
func (k *known) size() float64 {
	if marketCap := k.marketCap(); marketCap != nil {
		return *marketCap
	}
	return 0
}

func (b *StabilityBody) setPast(p *past, now time.Time) {
	for _, s := range p.samples {
		b.History = append(b.History, Point{query.FormatTime(s.Time.UnixNano()), s.DeviationBps, s.Price})
	}
	for _, e := range p.episodes[max(0, len(p.episodes)-maxEpisodes):] {
		episode := Episode{Start: query.FormatTime(e.Start.UnixNano()), Trough: query.FormatTime(e.Trough.UnixNano()), TroughBps: e.TroughBps, Ongoing: e.Recovery.IsZero()}
		end := now
		if !episode.Ongoing {
			end, episode.Recovery = e.Recovery, query.FormatTime(e.Recovery.UnixNano())
		}
		episode.DurationSeconds = int64(end.Sub(e.Start).Seconds())
		b.Episodes = append(b.Episodes, episode)
	}
}

// quotes are the markets that the last price was made from.
func (s *state) quotes(k *known) []Native {
	quotes := []Native{}
	if k.entry == nil {
		return quotes
	}
	for _, in := range k.entry.Latest.Inputs {
		if price := schemas.MarketValue(in); price > 0 {
			quote, quoteCoin := s.priceCache.Quote(in.QuoteId)
			quotes = append(quotes, Native{
				Exchange: in.Provider, VenueSymbol: in.Symbol, Quote: quote, QuoteCoinID: quoteCoin, Price: price, Native: in.QuoteId == k.peg,
				DeviationBps: k.deviationIn(in, price), Accepted: in.Accepted,
			})
		}
	}
	return quotes
}

// deviationIn is that of a market: in the currency of the peg no conversion is needed.
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
