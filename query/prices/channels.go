package prices

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// channelCode is the channel's number in cursors.
	channelCode = 20
	// channelCoins is how many coins one may be sent the inputs of: a price of a large coin takes 10 kB.
	channelCoins = 10
	// channelPage bounds what is read of the past at a time.
	channelPage = 512
	// inputBytes is about what memory holds for an input of a price.
	inputBytes = 250
)

// exampleInputs are those of a price, for documents.
var exampleInputs = Explanation{Symbol: "BTC", CoinID: "bitcoin", Price: 101, Median0: 101, Method: "median", MethodVersion: 2, Confidence: 0.5, ConfidenceInterval: [2]float64{100.5, 101.5},
	Score: 0.9, Accepted: []string{"kraken"}, Rejected: []string{}, Inputs: []Input{{Provider: "kraken", VenueSymbol: "BTC/USD", Raw: 101, Basis: schemas.BasisMid, Bid: 100.9, Ask: 101.1,
		Quote: schemas.USD, RateUsed: 1, ReceivedAt: "2026-03-01T10:00:00.500Z", AgeMs: 500, Weight: 1, Accepted: true, Offset: Position{schemas.TopicTicksRaw, 2, 95854}}},
	View: View{2, map[string]int64{"2": 90121}}, AsOf: "2026-03-01T10:00:01.000Z", Timestamp: "2026-03-01T10:00:01.000Z", Reproduced: true}

// InputsHistory is where published prices are kept with their inputs.
type InputsHistory interface {
	// PricesWithInputs hands over published prices of seconds after one and up to another (Unix), of the coins with these ids,
	// oldest second first, at most so many, with their marks.
	PricesWithInputs(ctx context.Context, after, until int64, coins []string, most int, visit func(*eventsv1.PriceRecord)) error
}

// Channels declares the channel of what prices were made from, which is read from prices.v1; identity and store are of the log and
// of the table of prices.
func (u *Unit) Channels(history InputsHistory, store query.ChannelStore, identity string, log *slog.Logger) []query.Channel {
	element := func(rec *eventsv1.PriceRecord) query.ChannelElement {
		p := rec.GetPrice()
		coin, _ := u.priceCache.Coins().ByID(p.CoinId)
		return query.ChannelElement{Second: p.Time / int64(time.Second), CoinID: p.CoinId, Size: inputBytes * (2 + len(p.Inputs)), Encode: func() []byte {
			x := u.explain(coin, p, "")
			x.View, x.AsOf = view(rec.Mark), x.Timestamp
			encoded, err := json.Marshal(x)
			if err != nil {
				log.Error("the inputs of a price cannot be sent", "coin", p.CoinId, "second", p.Time, "error", err)
			}
			return encoded
		}}
	}
	return []query.Channel{{
		Name: "inputs", Code: channelCode, Event: "price_inputs", Needs: limits.FeatureDetails, Coins: channelCoins, Page: channelPage,
		Doc: "What each published price was made from, and whether folding it again gives the same price, as /prices/{symbol}/explain answers it: at most once a second a coin. " +
			"At most 10 coins, which must be named; plan growth or above.",
		Topic: schemas.TopicPrices, Step: time.Second, Element: exampleInputs, Identity: identity, Store: store,
		Read: func(_ int32, record eventsv1.Marked) (read query.ChannelRecord, err error) {
			rec, ok := record.(*eventsv1.PriceRecord)
			if !ok {
				return read, nil
			}
			if pulse := rec.GetPulse(); pulse != nil {
				read.Until = pulse.Now / int64(time.Second)
			}
			if p := rec.GetPrice(); p != nil && p.Reason == "" {
				read.Elements = []query.ChannelElement{element(rec)}
			}
			return read, nil
		},
		Past: func(ctx context.Context, after, until int64, coins []string, most int, visit func(int32, query.ChannelElement)) error {
			return history.PricesWithInputs(ctx, after, until, coins, most, func(rec *eventsv1.PriceRecord) {
				visit(rec.Mark.GetPartition(), element(rec))
			})
		},
	}}
}
