package stablecoins

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// channelCode is the channel's number in cursors.
const channelCode = 18

// examplePeg is a stablecoin as the stream sends it, for documents.
var examplePeg = Entry{Symbol: "USDT", Name: "Tether", ID: "tether", CoinID: "tether", PegDeviation: new(float64), Price: &exampleTarget, PriceSource: priceSource,
	PegTarget: &exampleTarget, PegCurrency: schemas.USD, LastUpdated: "2026-03-01T10:00:01.000Z"}

var exampleTarget = 1.0

// PriceHistory is where published prices are kept.
type PriceHistory interface {
	// PegPrices hands over published prices of seconds after one and up to another (Unix), of the coins with these ids, oldest
	// second first, at most so many, with the partition of prices.v1 of each.
	PegPrices(ctx context.Context, after, until int64, coins []string, most int, visit func(partition int32, coinID string, second int64, price float64)) error
}

// Channels declares the channel of pegs, which is read from prices.v1: a peg moves when the price of its coin does. Identity and
// store are of the log and of the table of prices.
func (u *Unit) Channels(history PriceHistory, store query.ChannelStore, identity string) []query.Channel {
	return []query.Channel{{
		Name: "peg", Code: channelCode, Event: "peg_update",
		Doc: "Each stablecoin that venues trade, whenever its price was published: at most once a second, and at least every 20 s. An element is an entry of /stablecoins/index " +
			"without what is of 30 days or of other sources. Pegs to other currencies than the dollar are measured by the reference rate that is known when an element is sent.",
		Topic: schemas.TopicPrices, Step: time.Second, Element: examplePeg, Identity: identity, Store: store, Read: u.readPeg,
		Past: func(ctx context.Context, after, until int64, ids []string, most int, visit func(int32, query.ChannelElement)) error {
			var pegged []string
			for _, coin := range u.priceCache.Coins().All() {
				if coin.Peg != "" && (ids == nil || slices.Contains(ids, coin.ID)) {
					pegged = append(pegged, coin.ID)
				}
			}
			if len(pegged) == 0 {
				return nil
			}
			snapshot := u.catalog.Snapshot()
			var failed error
			err := history.PegPrices(ctx, after, until, pegged, most, func(partition int32, coinID string, second int64, price float64) {
				coin, _ := u.priceCache.Coins().ByID(coinID)
				element, err := u.pegElement(snapshot, coin, second, price)
				if err != nil {
					failed = err
					return
				}
				visit(partition, element)
			})
			return cmp.Or(err, failed)
		},
	}}
}

func (u *Unit) readPeg(_ int32, record eventsv1.Marked) (read query.ChannelRecord, err error) {
	rec, ok := record.(*eventsv1.PriceRecord)
	if !ok {
		return read, nil
	}
	if pulse := rec.GetPulse(); pulse != nil {
		read.Until = pulse.Now / int64(time.Second)
	}
	p := rec.GetPrice()
	if p == nil || p.Reason != "" {
		return read, nil
	}
	coin, known := u.priceCache.Coins().ByID(p.CoinId)
	if !known || coin.Peg == "" {
		return read, nil
	}
	element, err := u.pegElement(u.catalog.Snapshot(), coin, p.Time/int64(time.Second), p.Price)
	if err != nil {
		return read, err
	}
	read.Elements = []query.ChannelElement{element}
	return read, nil
}

// pegElement is a published price of a stablecoin against its peg, by the rule of the index.
func (u *Unit) pegElement(snapshot *views.Snapshot, coin schemas.Coin, second int64, price float64) (query.ChannelElement, error) {
	at := time.Unix(second, 0)
	k := &known{id: coin.ID, symbol: coin.Symbol, name: coin.Name, peg: coin.Peg, price: price, priceSource: priceSource, priceTime: at.UnixNano(),
		target: u.rates.PegTarget(snapshot, coin.Peg, at).USD}
	encoded, err := json.Marshal(k.response(nil))
	if err != nil {
		return query.ChannelElement{}, fmt.Errorf("encoding the peg of %s: %w", coin.ID, err)
	}
	return query.ChannelElement{Second: second, CoinID: coin.ID, JSON: encoded}, nil
}
