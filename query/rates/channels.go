package rates

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// channelCode is the channel's number in cursors.
const channelCode = 17

// StreamedRate is a rate as the stream sends it: whenever it was reported.
type StreamedRate struct {
	Entry
	Ended bool `json:"ended,omitempty" doc:"It is offered no more: it was not reported for three intervals of its source"`
}

// exampleRate is one, for documents.
var exampleRate = StreamedRate{Entry: Entry{ID: "defillama-yields|lending|aa70268e-4b52-42bf-a116-608b370f9501", Provider: "aave-v3", ProviderName: "Aave V3", Symbol: "ETH",
	Category: schemas.RateLending, Rate: 1.87, CoinID: "ethereum", ProviderSymbol: "WETH", Metadata: &Metadata{Source: "defillama-yields", Chain: "Ethereum"},
	UnitType: unitPercentage, UnitSymbol: "%", LastUpdated: "2026-03-01T09:59:31.000Z"}}

// SpanHistory is where single rates of all coins are kept.
type SpanHistory interface {
	// RatesBetween hands over rates as they were written, by the seconds that schemas.RateSecond gives them: after one and up to
	// another (Unix), of the coins with these ids or of all, oldest second first, at most so many.
	RatesBetween(ctx context.Context, after, until int64, coins []string, most int, visit func(second int64, e *eventsv1.RateEntry)) error
}

// Channels declares the channel of rates, which is read from rates.v1; identity and store are of the log and of the table of
// rates.
func Channels(coins *schemas.CoinTable, history SpanHistory, store query.ChannelStore, identity string) []query.Channel {
	fold := &rateFold{coins: coins}
	return []query.Channel{{
		Name: "rates", Code: channelCode, Event: "rate_update",
		Doc: "Each rate of lending, staking and borrowing whenever it was reported, at least once an hour, as /rates answers it. The reports of a minute come after its end. " +
			"Rates of coins that no venue trades come to clients that chose no coins.",
		Topic: schemas.TopicRates, Step: time.Minute, Element: exampleRate, Identity: identity, Store: store, Read: fold.read,
		Past: func(ctx context.Context, after, until int64, ids []string, most int, visit func(int32, query.ChannelElement)) error {
			var failed error
			err := history.RatesBetween(ctx, after, until, ids, most, func(second int64, e *eventsv1.RateEntry) {
				element, err := fold.element(e)
				if err != nil {
					failed = err
					return
				}
				element.Second = second
				visit(0, element)
			})
			return cmp.Or(err, failed)
		},
	}}
}

// rateFold collects the rates of a minute, which the pulse ends.
type rateFold struct {
	coins *schemas.CoinTable
	open  []query.ChannelElement
}

func (f *rateFold) read(_ int32, record eventsv1.Marked) (read query.ChannelRecord, err error) {
	rec, ok := record.(*eventsv1.RateRecord)
	if !ok {
		return read, nil
	}
	switch body := rec.Body.(type) {
	case *eventsv1.RateRecord_Entry:
		if !streamed(body.Entry) {
			return read, nil
		}
		element, err := f.element(body.Entry)
		f.open = append(f.open, element)
		return read, err
	case *eventsv1.RateRecord_Pulse:
		read.Until = body.Pulse.Now / int64(time.Second)
		slices.SortStableFunc(f.open, func(a, b query.ChannelElement) int { return cmp.Compare(a.Second, b.Second) })
		read.Elements, f.open = f.open, nil
	}
	return read, nil
}

// streamed means that a rate is one that the API serves, or was.
func streamed(e *eventsv1.RateEntry) bool {
	return e.CoinId != "" && e.Unattached == "" && e.Shadowed == "" && slices.Contains(schemas.RateCategories, e.Category)
}

// element is a rate as it is sent. It depends on nothing but the log, so that it is the same from memory and from the store.
func (f *rateFold) element(e *eventsv1.RateEntry) (query.ChannelElement, error) {
	symbol := strings.ToUpper(e.Symbol)
	if coin, known := f.coins.ByID(e.CoinId); known {
		symbol = coin.Symbol
	}
	encoded, err := json.Marshal(StreamedRate{Entry{
		ID: rateID(e.Source, e.Category, e.Pool), Provider: e.Provider, ProviderName: e.ProviderName, Symbol: symbol, Category: e.Category, Rate: e.Apy, CoinID: e.CoinId,
		ProviderSymbol: e.ProviderSymbol, Metadata: metadata(e), UnitType: unitPercentage, UnitSymbol: "%", LastUpdated: query.FormatTime(e.Heard),
	}, e.Ended})
	if err != nil {
		return query.ChannelElement{}, fmt.Errorf("encoding the rate %s of %s: %w", e.Pool, e.Source, err)
	}
	return query.ChannelElement{Second: schemas.RateSecond(e), CoinID: e.CoinId, JSON: encoded}, nil
}
