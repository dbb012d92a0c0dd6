// Package defi publishes each minute what all of DeFi is worth, lends, stakes, owes and pays: it joins what a source reports of
// protocols with the rates that count and the market caps of coins. A summary is written when it changes, and every five
// minutes, so that its age shows whether the fold is alive. A protocol's report is repeated within days
// only: the fold writes all of it once an hour, in parts, so the last hour of defi.v1 is enough to go on.
//
// The formulas are those of schemas, and on the page docs/formulas.md.
package defi

import (
	"bytes"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Name is the consumer group.
const Name = "defi"

// repeatAfter is how long an unchanged summary is not written again.
const repeatAfter = 5 * time.Minute

// Minutes is the declaration of this processor; the caller adds the log.
func Minutes() *processors.Minutes {
	return &processors.Minutes{
		Name: Name, Inputs: []string{schemas.TopicMarkets, schemas.TopicRates, schemas.TopicReferenceRaw}, Output: schemas.TopicDefi, New: New,
	}
}

// New makes the fold.
func New() processors.MinuteFold {
	return &fold{
		protocols: newTable[*eventsv1.DefiProtocol](), chains: newTable[string](), coins: newTable[*eventsv1.DefiCoin](),
		rates: newTable[rate](), caps: map[string]float64{},
	}
}

type fold struct {
	// What the source and others report once in days.
	protocols table[*eventsv1.DefiProtocol]
	chains    table[string] // the chains' own coins
	coins     table[*eventsv1.DefiCoin]
	source    eventsv1.DefiSource
	// sourceLoaded is the minute that source was at when it was read back.
	sourceLoaded int64
	// What other folds repeat each hour.
	rates            table[rate]
	caps             map[string]float64
	totalCap         float64
	capsAt           int64 // when the market caps were summed
	marketsSimulated bool
	// written is the last summary that was, without its time, and writtenAt that.
	written   []byte
	writtenAt int64
	// closed is the last minute that was.
	closed int64
}

// rate is one that counts until it expires.
type rate struct {
	schemas.DefiRate
	received, expires int64
}

// Load takes the states, and which summary was the last.
func (f *fold) Load(rec eventsv1.Marked) {
	r, ok := rec.(*eventsv1.DefiRecord)
	if !ok {
		return
	}
	switch body := r.Body.(type) {
	case *eventsv1.DefiRecord_State:
		s := body.State
		for _, p := range s.Protocols {
			f.protocols.load(s.Minute, p.Slug, p)
		}
		for _, c := range s.Chains {
			f.chains.load(s.Minute, c.Chain, c.CoinId)
		}
		for _, c := range s.Coins {
			f.coins.load(s.Minute, c.CoinId, c)
		}
		if s.Source != nil {
			f.source.Read, f.source.Simulated, f.sourceLoaded = s.Source.Read, s.Source.Simulated, s.Minute
		}
	case *eventsv1.DefiRecord_Summary:
		f.written, f.writtenAt = withoutTime(body.Summary), body.Summary.Time
	}
}

// Take folds what a source reports, a rate, or the market of a coin.
func (f *fold) Take(minute int64, _ processors.Input, rec eventsv1.Marked) {
	switch r := rec.(type) {
	case *eventsv1.ReferenceRecord:
		f.hear(minute, r)
	case *eventsv1.RateRecord:
		if e := r.GetEntry(); e != nil {
			f.takeRate(minute, e)
		}
	case *eventsv1.MarketRecord:
		switch body := r.Body.(type) {
		case *eventsv1.MarketRecord_Market:
			if body.Market.MarketCap == nil {
				delete(f.caps, body.Market.CoinId)
			} else {
				f.caps[body.Market.CoinId] = *body.Market.MarketCap
			}
		case *eventsv1.MarketRecord_Summary:
			f.totalCap, f.capsAt, f.marketsSimulated = body.Summary.TotalMarketCap, body.Summary.Time, body.Summary.Simulated
		}
	}
}

func (f *fold) hear(minute int64, rec *eventsv1.ReferenceRecord) {
	switch body := rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Protocol:
		reported := body.Protocol
		if reported.Source != schemas.DefiTVLSource {
			return
		}
		f.read(minute, reported.IngestTime)
		if p := schemas.NewDefiProtocol(reported); p != nil {
			f.protocols.set(minute, p.Slug, p)
		} else {
			f.protocols.drop(minute, reported.Slug)
		}
	case *eventsv1.ReferenceRecord_ChainTvl:
		reported := body.ChainTvl
		switch {
		case reported.Source != schemas.DefiTVLSource:
		case reported.CoinId == "":
			f.chains.drop(minute, reported.Chain)
		default:
			f.chains.set(minute, reported.Chain, reported.CoinId)
		}
	case *eventsv1.ReferenceRecord_Coin:
		f.categorize(minute, body.Coin)
	case *eventsv1.ReferenceRecord_Fetch:
		reported := body.Fetch
		if reported.Source == schemas.DefiTVLSource && reported.Feed == schemas.DefiProtocolsFeed && reported.Error == "" {
			f.read(minute, reported.Started)
		}
	case *eventsv1.ReferenceRecord_Notice:
		if body.Notice.Source == schemas.DefiTVLSource && minute > f.sourceLoaded {
			f.source.Simulated = body.Notice.Simulated
		}
	}
}

func (f *fold) read(minute, at int64) {
	if minute > f.sourceLoaded {
		f.source.Read = max(f.source.Read, at)
	}
}

// categorize notes what a source reports of the categories of a coin that it names in a way we know.
func (f *fold) categorize(minute int64, reported *eventsv1.Coin) {
	id, ok := schemas.CanonicalCoin(reported.Source, reported.SourceId, reported.Symbol, reported.Name)
	if !ok {
		return
	}
	if next := schemas.NewDefiCoin(id, f.coins.get(id), reported); next != nil {
		f.coins.set(minute, id, next)
	} else {
		f.coins.drop(minute, id)
	}
}

func (f *fold) takeRate(minute int64, e *eventsv1.RateEntry) {
	key := e.Source + "\x00" + e.Category + "\x00" + e.Pool
	if counted, ok := schemas.NewDefiRate(e); ok {
		f.rates.set(minute, key, rate{counted, e.Heard, schemas.DefiRateUntil(e)})
	} else {
		f.rates.drop(minute, key)
	}
}

// Close writes the summary if it changed or is due, and the states that are due.
func (f *fold) Close(minute int64, out *processors.Outputs) {
	for _, p := range f.protocols.all() {
		if f.source.Read-p.value.Heard > int64(schemas.DefiForgottenAfter) {
			f.protocols.drop(minute, p.key)
		}
	}
	if out != nil {
		f.summarize(minute, out)
		f.remember(minute, out)
		out.Emit(schemas.TopicDefi, 0, "pulse", minute, &eventsv1.DefiRecord{Body: &eventsv1.DefiRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute},
		}})
	}
	f.closed = minute
}

func (f *fold) summarize(minute int64, out *processors.Outputs) {
	in := schemas.DefiInputs{ChainCoins: map[string]string{}, Caps: f.caps, TotalMarketCap: f.totalCap}
	simulated := f.source.Simulated || f.marketsSimulated
	oldest := f.source.Read
	for _, p := range f.protocols.all() {
		in.Protocols = append(in.Protocols, p.value)
	}
	for _, r := range f.rates.all() {
		if minute <= r.value.expires {
			in.Rates = append(in.Rates, r.value.DefiRate)
			simulated, oldest = simulated || r.value.Simulated, min(oldest, r.value.received)
		}
	}
	for _, c := range f.chains.all() {
		in.ChainCoins[c.key] = c.value
	}
	for _, c := range f.coins.all() {
		if schemas.DefiCoinCounts(c.value) {
			in.Coins = append(in.Coins, c.key)
		}
	}
	s := schemas.NewDefiSummary(minute, in)
	if s == nil {
		return
	}
	if s.DefiMarketCap != nil && f.capsAt > 0 {
		oldest = min(oldest, f.capsAt)
	}
	s.Read, s.Oldest, s.Simulated = f.source.Read, oldest, simulated
	next := withoutTime(s)
	if bytes.Equal(next, f.written) && minute-f.writtenAt < int64(repeatAfter) {
		return
	}
	f.written, f.writtenAt = next, minute
	out.Emit(schemas.TopicDefi, 0, "summary", minute, &eventsv1.DefiRecord{Body: &eventsv1.DefiRecord_Summary{Summary: s}})
}

// withoutTime is what a summary holds, to be compared.
func withoutTime(s *eventsv1.DefiSummary) []byte {
	at := s.Time
	s.Time = 0
	value, err := s.MarshalVT()
	s.Time = at
	if err != nil {
		panic(err) // the only error is a buffer of the wrong size
	}
	return value
}

// maxState bounds the bytes of a part of the state, far below what the broker takes: after hours in which nobody wrote,
// all of it is due in one minute.
const maxState = 400_000

// remember writes the states that are due.
func (f *fold) remember(minute int64, out *processors.Outputs) {
	part, size := &eventsv1.DefiState{Minute: minute}, 0
	write := func() {
		if size > 0 {
			out.Emit(schemas.TopicDefi, 0, "state", minute, &eventsv1.DefiRecord{Body: &eventsv1.DefiRecord_State{State: part}})
		}
		part, size = &eventsv1.DefiState{Minute: minute}, 0
	}
	grow := func(n int) {
		if size += n; size > maxState {
			write()
		}
	}
	if f.due(minute, 0) {
		part.Source = &eventsv1.DefiSource{Read: f.source.Read, Simulated: f.source.Simulated}
		grow(1 + part.Source.SizeVT())
	}
	for _, p := range f.protocols.all() {
		if f.due(minute, p.slot) {
			part.Protocols = append(part.Protocols, p.value)
			grow(p.value.SizeVT())
		}
	}
	for _, c := range f.chains.all() {
		if f.due(minute, c.slot) {
			chain := &eventsv1.DefiChain{Chain: c.key, CoinId: c.value}
			part.Chains = append(part.Chains, chain)
			grow(chain.SizeVT())
		}
	}
	for _, c := range f.coins.all() {
		if f.due(minute, c.slot) {
			part.Coins = append(part.Coins, c.value)
			grow(c.value.SizeVT())
		}
	}
	write()
}

// due reports whether a minute of the hour lies after the last minute that was closed and not after this one. Minutes of
// silence are never closed.
func (f *fold) due(minute, slot int64) bool {
	const length, hour = int64(time.Minute), int64(minutesPerHour)
	now, before := minute/length, f.closed/length
	if f.closed == 0 {
		before = now - 1
	}
	return now-before >= hour || (now-slot)/hour > (before-slot)/hour
}
