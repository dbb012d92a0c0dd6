package views

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// Rates reports what government currencies cost: the blend of what the sources published last. Whatever answer holds or uses a
// rate of a currency takes it from here, so that no two of them differ. Safe for concurrent use.
type Rates struct {
	coins   *schemas.CoinTable
	catalog *Catalog
	held    atomic.Pointer[blendedRates]
}

// blendedRates are those of a minute, since rates grow stale.
type blendedRates struct {
	snapshot *Snapshot
	minute   time.Time
	rates    []schemas.FiatRate
}

// NewFiatRates makes the rates of the currencies that a coin table names.
func NewFiatRates(coins *schemas.CoinTable, catalog *Catalog) *Rates {
	return &Rates{coins: coins, catalog: catalog}
}

// All returns the rates by the query's clock, in the order of the codes and without the US dollar. They must not be changed.
func (f *Rates) All(now time.Time) []schemas.FiatRate { return f.Of(f.catalog.Snapshot(), now) }

// Of is All by a snapshot.
func (f *Rates) Of(snapshot *Snapshot, now time.Time) []schemas.FiatRate {
	minute := now.UTC().Truncate(time.Minute)
	if held := f.held.Load(); held != nil && held.snapshot == snapshot && held.minute.Equal(minute) {
		return held.rates
	}
	rates := f.blend(snapshot, minute)
	f.held.Store(&blendedRates{snapshot, minute, rates})
	return rates
}

// Past is Of, by a snapshot of the past, which is not held.
func (f *Rates) Past(snapshot *Snapshot, asOf time.Time) []schemas.FiatRate {
	return f.blend(snapshot, asOf.UTC().Truncate(time.Minute))
}

func (f *Rates) blend(snapshot *Snapshot, minute time.Time) []schemas.FiatRate {
	fixings := make([]*eventsv1.Fixing, 0, len(snapshot.Fixings))
	received := map[string]schemas.FiatReading{}
	for id, fixing := range snapshot.Fixings {
		fixings = append(fixings, fixing)
		received[id.Source] = schemas.FiatReading{Read: snapshot.Read[id.Source], Interval: snapshot.Notices[id.Source].GetInterval()}
	}
	return slices.DeleteFunc(schemas.BlendFiat(fixings, received, minute.UnixNano()), func(rate schemas.FiatRate) bool {
		_, named := f.coins.Fiat(rate.Code)
		return !named
	})
}

// Conversion expresses values in USD in another currency.
type Conversion struct {
	// Vs is the currency or coin in small letters, USD what one unit of it costs.
	Vs  string
	USD float64
	// At is the time of the rate in Unix nanoseconds, 0 for the US dollar.
	At    int64
	Stale bool
	// perUSD is how many units one US dollar buys, 0 where only the price is known.
	perUSD float64
}

// From converts a value in USD.
func (c Conversion) From(usd float64) float64 {
	if c.perUSD > 0 {
		return usd * c.perUSD
	}
	return usd / c.USD
}

// Converter finds conversions: to currencies by the rates that the fiat endpoints answer, to coins by their prices. Safe for
// concurrent use.
type Converter struct {
	priceCache *PriceCache
	fiat       *Rates
	past       *PastCurrencies
}

// NewConverter makes one over the coins of a price cache and the rates in a catalog, and those of the past.
func NewConverter(priceCache *PriceCache, catalog *Catalog, past *PastCurrencies) *Converter {
	return &Converter{priceCache: priceCache, fiat: NewFiatRates(priceCache.Coins(), catalog), past: past}
}

// quoteCoins are the coins that prices can be reported in.
var quoteCoins = map[string]string{"btc": "bitcoin", "eth": "ethereum"}

// Check reports what is wrong with the name of what is converted to, empty for nothing, in any letter case.
func (c *Converter) Check(vs string) string {
	if _, ok := quoteCoins[strings.ToLower(vs)]; ok {
		return ""
	}
	if _, ok := c.priceCache.Coins().Fiat(vs); ok {
		return ""
	}
	return "must be a fiat currency that is known, btc or eth"
}

// To finds the conversion to what Check accepts, by the query's clock; false where no rate is known.
func (c *Converter) To(vs string, now time.Time) (Conversion, bool) {
	vs = strings.ToLower(vs)
	if coin, ok := c.Coin(vs); ok {
		return c.ByPrice(vs, c.priceCache.Entry(coin), now)
	}
	code := strings.ToUpper(vs)
	if code == schemas.USD {
		return Conversion{Vs: vs, USD: 1, perUSD: 1}, true
	}
	return byRate(vs, c.fiat.All(now))
}

// RatesAsOf are the rates of currencies that were known at an instant. It fails as PastCurrencies does.
func (c *Converter) RatesAsOf(ctx context.Context, asOf time.Time) ([]schemas.FiatRate, error) {
	snapshot, err := c.past.At(ctx, asOf)
	if err != nil {
		return nil, err
	}
	return c.fiat.Past(snapshot, asOf), nil
}

// ByRate is the conversion to a currency by its rate, in the order of the codes; false where it has none.
func (c *Converter) ByRate(vs string, rates []schemas.FiatRate) (Conversion, bool) {
	return byRate(strings.ToLower(vs), rates)
}

// byRate is the conversion to a currency by its rate; false where it has none.
func byRate(vs string, rates []schemas.FiatRate) (Conversion, bool) {
	code := strings.ToUpper(vs)
	i, found := slices.BinarySearchFunc(rates, code, func(rate schemas.FiatRate, code string) int { return strings.Compare(rate.Code, code) })
	if !found {
		return Conversion{}, false
	}
	return Conversion{Vs: strings.Clone(vs), USD: 1 / rates[i].Rate, At: rates[i].Time, Stale: rates[i].Stale, perUSD: rates[i].Rate}, true
}

// Coin returns the coin that prices are converted to; false for a currency.
func (c *Converter) Coin(vs string) (schemas.Coin, bool) {
	id, ok := quoteCoins[strings.ToLower(vs)]
	if !ok {
		return schemas.Coin{}, false
	}
	return c.priceCache.Coins().ByID(id)
}

// ByPrice is the conversion to a coin by its price, at a time of the query's clock; false where it has none.
func (c *Converter) ByPrice(vs string, e *Entry, now time.Time) (Conversion, bool) {
	if e == nil || e.Price.Price <= 0 {
		return Conversion{}, false
	}
	return Conversion{Vs: strings.Clone(vs), USD: e.Price.Price, At: e.Price.Time, Stale: c.priceCache.Freshness(e, now).Stale}, true
}

// rateFor is how long a rate holds after its last record: each is repeated every 10 s while its
// inputs are fresh.
const rateFor = 60 * time.Second

// FXRates holds what one unit of each quote asset costs in USD, as the tail of quotes.v1 delivers it. Safe
// for concurrent use.
type FXRates struct {
	mu    sync.RWMutex
	now   int64
	rates map[string]receivedRate
}

type receivedRate struct {
	*eventsv1.QuoteRate
	received int64
}

// NewFXRates makes an empty set.
func NewFXRates() *FXRates { return &FXRates{rates: map[string]receivedRate{}} }

// Apply takes one record of quotes.v1 from its tail.
func (r *FXRates) Apply(rec stream.TailRecord) error {
	record, ok := rec.Marked.(*eventsv1.QuoteRecord)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rate := record.GetRate(); rate != nil {
		r.now = max(r.now, rate.Time)
		r.rates[rate.QuoteId] = receivedRate{rate, r.now}
	}
	if pulse := record.GetPulse(); pulse != nil {
		r.now = max(r.now, pulse.Now)
	}
	return nil
}

// USD returns what one unit of a quote asset (coin id or currency code) costs in USD, and the time of
// the rate's newest input in Unix nanoseconds; false where no rate is held or it is too old. One US
// dollar costs one.
func (r *FXRates) USD(id string) (rate float64, at int64, ok bool) {
	rate, stated, ok := r.Rate(id)
	switch {
	case !ok:
		return 0, 0, false
	case stated == nil:
		r.mu.RLock()
		defer r.mu.RUnlock()
		return rate, r.now, true
	}
	return rate, stated.Time, true
}

// Rate is what USD returns with the rate that states it, which is shared and nil for USD itself.
func (r *FXRates) Rate(id string) (rate float64, stated *eventsv1.QuoteRate, ok bool) {
	if id == schemas.USD {
		return 1, nil, true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	known, ok := r.rates[id]
	if !ok || known.Rate <= 0 || r.now-known.received > int64(rateFor) {
		return 0, nil, false
	}
	return known.Rate, known.QuoteRate, true
}
