package prices

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Explanation is what a price was made from, and whether folding it again gives the same price.
type Explanation struct {
	Symbol             string     `json:"symbol" doc:"Symbol of the coin, upper case"`
	CoinID             string     `json:"coinId"`
	Price              float64    `json:"price" doc:"USD; as published or, with region, recomputed from that country's providers"`
	Median0            float64    `json:"median0" doc:"The first median, against which outliers are measured"`
	Method             string     `json:"method" enum:"median" doc:"The price is the median over the accepted providers"`
	MethodVersion      int        `json:"methodVersion" doc:"Version of the rule that computed this price; may be older than the current version"`
	Confidence         float64    `json:"confidence" doc:"Half width of the confidence interval, USD"`
	ConfidenceInterval [2]float64 `json:"confidenceInterval" doc:"Lower and upper bound, USD: price minus and plus confidence"`
	Score              float64    `json:"score" doc:"0 to 1; lowered by few, rejected or old inputs and by a wide confidence interval"`
	Accepted           []string   `json:"accepted" doc:"Providers with an accepted price"`
	Rejected           []string   `json:"rejected" doc:"Providers without an accepted price"`
	Inputs             []Input    `json:"inputs" doc:"Markets that were received within 120 seconds before, by provider"`
	View               View       `json:"view" doc:"Which version of the logic made the price, and what triggered it"`
	AsOf               string     `json:"asOf" format:"date-time" doc:"The requested point in time of the explain operation, else the same as timestamp"`
	Timestamp          string     `json:"timestamp" format:"date-time" doc:"The evaluated second"`
	Published          string     `json:"published,omitempty" format:"date-time" doc:"When it was written, in log time; absent if it was written by a version that did not record this"`
	Reproduced         bool       `json:"reproduced" doc:"Whether recomputing gave the same price. False means a defect of this service, or a price written by a newer version of it"`
	Recomputed         *float64   `json:"recomputed,omitempty" doc:"The recomputed price, if it differs"`
	Region             string     `json:"region,omitempty" doc:"The recomputation used only the providers available in this country"`
}

// Input is one market as it was.
type Input struct {
	Provider     string   `json:"provider"`
	VenueSymbol  string   `json:"venueSymbol" doc:"As spelled by the exchange"`
	Raw          float64  `json:"raw,omitempty" doc:"What the market contributes, in the quote asset; absent if it has no usable value"`
	Basis        string   `json:"basis,omitempty" doc:"What raw was taken from: last, bid, ask or mid"`
	Bid          float64  `json:"bid,omitempty" doc:"In the quote asset; absent if it was too old to count"`
	Ask          float64  `json:"ask,omitempty" doc:"In the quote asset; absent if it was too old to count"`
	Last         float64  `json:"last,omitempty" doc:"Last trade price, in the quote asset; absent if it was too old to count"`
	Quote        string   `json:"quote" doc:"Quote asset: symbol of a coin or code of a currency"`
	QuoteCoinID  string   `json:"quoteCoinId,omitempty" doc:"Coin id of the quote asset, if it is a coin"`
	RateUsed     float64  `json:"rateUsed,omitempty" doc:"USD per unit of the quote asset"`
	PriceUSD     *float64 `json:"priceUsd,omitempty" doc:"raw in USD; absent if it could not be converted"`
	ObservedAt   string   `json:"observedAt,omitempty" format:"date-time" doc:"Event time, by the venue's clock"`
	ReceivedAt   string   `json:"receivedAt,omitempty" format:"date-time" doc:"When data of the market was last received"`
	AgeMs        int64    `json:"ageMs" doc:"Age when the price was computed"`
	FreshForMs   int64    `json:"freshForMs,omitempty" doc:"How long an input of the market is used after it was received; depends on how often the market updates"`
	Weight       float64  `json:"weight" doc:"1 divided by the number of accepted providers; 0 if rejected"`
	Accepted     bool     `json:"accepted" doc:"Whether it contributed to the price"`
	Reason       string   `json:"reason,omitempty" doc:"Why it was rejected: silent, crossed, wide, no_rate, other_market, outlier or excluded"`
	DeviationPct *float64 `json:"deviationPct,omitempty" doc:"Deviation from the first median, percent; only for the input that represents the provider"`
	Offset       Position `json:"offset" doc:"Position of its newest tick in the log"`
}

// Position is a place in the log.
type Position struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset" doc:"Offset within the partition"`
}

// View reports which version of the logic made the price, and where it lies.
type View struct {
	Version       uint32           `json:"version" doc:"Version of the logic that wrote the price"`
	AppliedOffset map[string]int64 `json:"appliedOffset" doc:"The record of ticks.v1 that triggered the price, by partition"`
}

// ExplainBody answers GET /api/v1/prices/{symbol}/explain.
type ExplainBody struct {
	Data *Explanation `json:"data"`
}

func (u *Unit) explained() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/prices/{symbol}/explain", ID: "explainPrice", Tag: "prices",
		Summary:     "Explain a price, current or past, from its inputs",
		Description: "Recomputes the price from the recorded inputs with the version of the function that published it.",
		Params: []query.Param{symbolParam,
			query.AsOfParam("Point in time. The price served at that time, which may be of an earlier second. Default: the current price.")},
		Body: ExplainBody{}, NotFound: true, Handle: u.getExplanation,
	}
}

func (u *Unit) getExplanation(ctx context.Context, r *query.Request) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	named, err := u.find(snapshot, r.Text("symbol"))
	if err != nil {
		return query.Answer{}, err
	}
	coin := named.Own
	if coin.Rank == 0 {
		return query.Answer{}, query.NotFound("none of our venues trades %s, and only prices computed from venues can be explained", named.ID)
	}
	asOf, past := r.Time("asOf")
	if !past {
		spot, ok := u.priceCache.Spot(snapshot, named.CatalogCoin, r.Now)
		switch {
		case !ok:
			return query.Answer{}, query.NotFound("%s has no price", coin.ID)
		case spot.Entry == nil:
			return query.Answer{}, query.NotFound("the price of %s is that of the reference source %s, and only prices computed from venues can be explained", coin.ID, spot.Source)
		}
		return explanation(u.explainEntry(spot.Entry, ""), spot.Simulated)
	}
	e, err := u.entryAsOf(ctx, coin, asOf)
	switch {
	case err != nil:
		return query.Answer{}, err
	case e == nil:
		return query.Answer{}, query.NotFound("no price of %s as of %s is stored", coin.ID, query.FormatTime(asOf.UnixNano()))
	}
	x := u.explainEntry(e, "")
	x.AsOf = query.FormatTime(asOf.UnixNano())
	return explanation(x, e.Price.Simulated)
}

func explanation(x *Explanation, simulated bool) (query.Answer, error) {
	answer, err := query.Encode(ExplainBody{x})
	answer.Simulated = simulated
	return answer, err
}

func view(mark *eventsv1.Mark) View {
	return View{mark.GetLogicVersion(), map[string]int64{strconv.Itoa(int(mark.GetPartition())): mark.GetOffset()}}
}

func (u *Unit) explainEntry(e *views.Entry, region string) *Explanation {
	x := u.explain(e.Coin, e.Price, region)
	x.View = view(e.Mark)
	x.AsOf = x.Timestamp
	return x
}

// explain folds the inputs of a published price again, by the version of the rule that published it.
func (u *Unit) explain(coin schemas.Coin, p *eventsv1.Price, region string) *Explanation {
	result, inputs, known := schemas.AggregateBy(p.Method, u.available(p.Inputs, region), p.Time)
	x := &Explanation{
		Symbol: coin.Symbol, CoinID: coin.ID, Price: result.Price, Median0: result.Median0, Method: "median", MethodVersion: max(int(p.Method), 1),
		Confidence: result.Confidence, ConfidenceInterval: [2]float64{result.Price - result.Confidence, result.Price + result.Confidence},
		Score: result.Score, Accepted: []string{}, Rejected: []string{}, Inputs: make([]Input, len(inputs)),
		Timestamp: query.FormatTime(p.Time), Published: query.FormatTime(p.Published), Reproduced: true, Region: region,
	}
	switch {
	case !known: // the inputs are as a newer version recorded them
		x.Reproduced = false
	case region == "":
		// The answer shows what was published; what was recomputed only where it differs.
		if x.Reproduced = result.Equals(p); !x.Reproduced {
			x.Recomputed = &result.Price
		}
	}
	if !known || region == "" {
		x.Price, x.Median0, x.Confidence, x.Score = p.Price, p.Median0, p.Confidence, p.Score
		x.ConfidenceInterval = [2]float64{p.Price - p.Confidence, p.Price + p.Confidence}
		result.Accepted = int(p.Accepted)
	}
	for i, in := range inputs {
		x.Inputs[i] = u.input(in, p.Method, p.Time, result.Accepted)
	}
	for i := 0; i < len(inputs); {
		j, accepted := i, false
		for ; j < len(inputs) && inputs[j].Provider == inputs[i].Provider; j++ {
			accepted = accepted || inputs[j].Accepted
		}
		if accepted {
			x.Accepted = append(x.Accepted, inputs[i].Provider)
		} else {
			x.Rejected = append(x.Rejected, inputs[i].Provider)
		}
		i = j
	}
	return x
}

func (u *Unit) input(in *eventsv1.PriceInput, method uint32, made int64, accepted int) Input {
	quote, quoteCoin := u.priceCache.Quote(in.QuoteId)
	out := Input{
		Provider: in.Provider, VenueSymbol: in.Symbol, Raw: in.Value, Basis: in.Basis, Bid: in.Bid, Ask: in.Ask, Last: in.Last,
		Quote: quote, QuoteCoinID: quoteCoin, RateUsed: in.Rate, ObservedAt: query.FormatTime(in.EventTime), ReceivedAt: query.FormatTime(received(in)),
		AgeMs: (made - received(in)) / int64(time.Millisecond), Accepted: in.Accepted, Reason: in.Reason, DeviationPct: deviation(in),
		FreshForMs: in.FreshFor / int64(time.Millisecond),
		Offset:     Position{schemas.TopicTicksRaw, in.Partition, in.Offset},
	}
	if in.PriceUsd > 0 {
		out.PriceUSD = &in.PriceUsd
		// What was too old to count is left out, so that the value follows from what is shown.
		if schemas.QuoteAged(method, in, made) {
			out.Bid, out.Ask = 0, 0
		}
		if in.Basis == schemas.BasisMid {
			out.Last = 0
		}
	}
	if in.Accepted {
		out.Weight = 1 / float64(accepted)
	}
	return out
}
