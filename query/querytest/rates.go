package querytest

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// RateFolded publishes a record of the apy fold, which is in the book and in the store.
func (w *Fixture) RateFolded(rec *eventsv1.RateRecord) {
	offset := w.Offset()
	rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: w.Now.Unix() / 60, Index: uint32(offset)}
	if w.Store != nil {
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicRates, Offset: offset}, rec)
		w.Must(b.Insert(w.T.Context(), w.Store, ""))
	}
	w.Must(w.Yields.Apply(views.TailRecord{Offset: offset, Marked: rec}))
}

// rate publishes what a provider pays or asks, reported by itself in a pool named after its symbol unless the script gives
// otherwise.
func (w *Fixture) rate(words []string) {
	now := w.Now.UnixNano()
	symbol := strings.ToUpper(words[2])
	if coin, ok := w.Prices.Coins().ByID(words[2]); ok {
		symbol = coin.Symbol
	}
	e := &eventsv1.RateEntry{
		Provider: words[0], Source: words[0], Category: words[1], CoinId: words[2], Symbol: symbol, ProviderSymbol: symbol, Apy: w.Number(words[3]), Apr: w.Number(words[3]),
		Time: now, Heard: now, Offset: w.Offset(),
		Said: &eventsv1.Rate{Raw: words[3], RawUnit: "apy_percent", Interval: int64(time.Hour), IngestTime: now},
	}
	for _, word := range words[4:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "source":
			e.Source = value
		case "pool":
			e.Pool = value
		case "symbol":
			e.ProviderSymbol = value
		case "name":
			e.ProviderName = value
		case "chain":
			e.Chain = value
		case "tvl":
			tvl := w.Number(value)
			e.TvlUsd = &tvl
		case "heard":
			e.Heard = w.Time(value).UnixNano()
		case "interval":
			interval, err := time.ParseDuration(value)
			w.Must(err)
			e.Said.Interval = int64(interval)
		case "raw": // value, unit, compounding
			parts := strings.Split(value, ",")
			e.Said.Raw, e.Said.RawUnit, e.Said.Compounding = parts[0], parts[1], parts[2]
			var err error
			e.Apr, e.Apy, err = schemas.Yearly(parts[0], parts[1], parts[2])
			w.Must(err)
		case "apy": // another than raw makes
			e.Apy = w.Number(value)
		case "method":
			e.Method = uint32(w.Number(value))
		case "reward": // of what was reported, and the part of the rate that it became
			reported, made, _ := strings.Cut(value, ",")
			part := w.Number(made)
			e.Said.Reward, e.RewardApy = reported, &part
		case "max":
			e.Said.MaxAmount = value
		case "tier": // from, to, value
			tier := strings.Split(value, ",")
			e.Said.Tiers = append(e.Said.Tiers, &eventsv1.RateTier{From: tier[0], To: tier[1], Raw: tier[2]})
		case "served":
			e.Said.Served = strings.Split(value, ",")
		case "refused":
			e.Said.Refused = strings.Split(value, ",")
		case "shadowed":
			e.Shadowed = value
		case "unattached":
			e.Unattached, e.CoinId = value, ""
		case "ended":
			e.Ended = true
		case "simulated":
			e.Simulated = true
		default:
			w.T.Fatalf("script: unknown setting %q", word)
		}
	}
	if e.Pool == "" {
		e.Pool = strings.ToLower(e.ProviderSymbol)
	}
	w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}})
}

// rollup publishes what a rate did in an hour or a day.
func (w *Fixture) rollup(words []string) {
	r := &eventsv1.RateRollup{
		Provider: words[0], Source: words[0], Category: words[1], CoinId: words[2], Start: w.Time(words[3]).UnixNano(), Interval: uint32(w.Integer(words[4])),
		Open: w.Number(words[5]), High: w.Number(words[6]), Low: w.Number(words[7]), Close: w.Number(words[8]), Mean: w.Number(words[9]), N: uint32(w.Integer(words[10])),
	}
	if coin, ok := w.Prices.Coins().ByID(words[2]); ok {
		r.Symbol, r.ProviderSymbol = coin.Symbol, coin.Symbol
	}
	for _, word := range words[11:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "source":
			r.Source = value
		case "pool":
			r.Pool = value
		case "symbol":
			r.ProviderSymbol = value
		case "tvl":
			tvl := w.Number(value)
			r.TvlUsd = &tvl
		case "simulated":
			r.Simulated = true
		default:
			w.T.Fatalf("script: unknown setting %q", word)
		}
	}
	if r.Pool == "" {
		r.Pool = strings.ToLower(r.ProviderSymbol)
	}
	w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Rollup{Rollup: r}})
}
