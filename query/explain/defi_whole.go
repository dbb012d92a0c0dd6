package explain

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defiRepeated is within what time a summary of DeFi is written again.
const defiRepeated = 6 * minute

// wholeDefi is all of DeFi at the end of a minute: what the fold wrote, and what its inputs give again.
type wholeDefi struct {
	summary *eventsv1.DefiSummary
	at      Place
	logic   uint32 // the version of the fold that wrote it
	// What sources state of protocols, of the chains' own coins and of the categories of coins.
	protocols []statedThing[*eventsv1.DefiProtocol]
	chains    map[string]statedThing[string]
	coins     map[string]statedThing[*eventsv1.DefiCoin]
	// rates and market are read for the numbers that are made of them, and nil before.
	rates  []countedRate
	market *loggedMarket
	in     schemas.DefiInputs
	again  *eventsv1.DefiSummary // nil where the log has no protocols
}

// statedThing is what counts of a thing, and the record that states it. What is in the state of the end of a minute was stated by then; 0 for none.
type statedThing[T any] struct {
	value T
	state int64
	at    Place
}

// node is a number of the summary.
func (d *wholeDefi) node(number string, value *float64, unit, formula string) *Node {
	n := headline(number, value, unit, d.summary.Time)
	n.Method = &Method{Name: "defi-summary", Version: max(d.logic, 1), Formula: formula}
	n.Records = []Place{d.at}
	return n
}

// compare holds a number of the summary against the one that was made again.
func (d *wholeDefi) compare(n *Node, value func(*eventsv1.DefiSummary) *float64) {
	if d.again == nil {
		n.notReproduced("the log no longer has what protocols state")
		return
	}
	n.compare(value(d.again))
}

// make makes the summary again of the inputs that were read so far.
func (d *wholeDefi) make() { d.again = schemas.NewDefiSummary(d.summary.Time, d.in) }

// wholeDefi reads the summary of the last minute, or of the one that was asked for, and what sources state of its protocols, chains and coins.
func (w *work) wholeDefi(ctx context.Context) (*wholeDefi, error) {
	if w.protocols != nil {
		return w.protocols, nil
	}
	at := w.now.UnixNano()
	if w.past {
		var err error
		if at, err = w.defiServed(ctx); err != nil {
			return nil, err
		}
		if err := w.agedOut(ctx, schemas.TopicDefi, at); err != nil {
			return nil, err
		}
	}
	whole, err := w.defiAt(ctx, at)
	if err != nil {
		return nil, err
	}
	w.protocols = whole
	return whole, nil
}

// defiServed is up to when the log has what was served at the instant asked for: a minute is served some seconds after it is in the log. Where it is not recorded
// which one was, it is all that the log had.
func (w *work) defiServed(ctx context.Context) (int64, error) {
	served, err := w.Defi.At(ctx, w.asOf)
	var aged *views.AgedOutError
	switch {
	case errors.As(err, &aged), err == nil && served == nil:
		return w.asOf.UnixNano(), nil
	case err != nil:
		return 0, query.FaultOfPast(err, w.asOf)
	}
	return served.Time + minute - 1, nil
}

// defiAt reads the last summary that the log has by a time, and what sources state of its protocols, chains and coins.
func (w *work) defiAt(ctx context.Context, at int64) (*wholeDefi, error) {
	whole := &wholeDefi{chains: map[string]statedThing[string]{}, coins: map[string]statedThing[*eventsv1.DefiCoin]{}}
	protocols := map[string]statedThing[*eventsv1.DefiProtocol]{}
	_, err := w.scan(ctx, schemas.TopicDefi, 0, schemas.Minute(at)-int64(stateEvery)-defiRepeated, at, func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicDefi, r.Value)
		rec, ok := record.(*eventsv1.DefiRecord)
		if err != nil || !ok {
			return true
		}
		held, state := place(schemas.TopicDefi, 0, r.Offset), rec.GetState()
		if s := rec.GetSummary(); s != nil {
			whole.summary, whole.at, whole.logic = s, held, rec.Mark.GetLogicVersion()
		}
		for _, p := range state.GetProtocols() {
			protocols[p.Slug] = statedThing[*eventsv1.DefiProtocol]{p, state.Minute, held}
		}
		for _, c := range state.GetChains() {
			whole.chains[c.Chain] = statedThing[string]{c.CoinId, state.Minute, held}
		}
		for _, c := range state.GetCoins() {
			whole.coins[c.CoinId] = statedThing[*eventsv1.DefiCoin]{c, state.Minute, held}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if whole.summary == nil {
		return nil, query.Starting("there is no summary of DeFi yet")
	}
	w.simulated = w.simulated || whole.summary.Simulated
	if err := w.statedSince(ctx, whole, protocols); err != nil {
		return nil, err
	}
	whole.in.ChainCoins = map[string]string{}
	for _, p := range whole.protocols {
		whole.in.Protocols = append(whole.in.Protocols, p.value)
	}
	for chain, c := range whole.chains {
		whole.in.ChainCoins[chain] = c.value
	}
	whole.make()
	return whole, nil
}

// statedSince adds to states what sources stated since each of them, up to the minute of the summary, and keeps the protocols that count by
// slug, as the fold does.
func (w *work) statedSince(ctx context.Context, whole *wholeDefi, protocols map[string]statedThing[*eventsv1.DefiProtocol]) error {
	summary := whole.summary
	err := w.reportsSince(ctx, schemas.TopicReferenceRaw, summary.Time-int64(stateEvery)-defiRepeated, summary.Time, func(end int64, rec *eventsv1.ReferenceRecord, at Place) {
		switch body := rec.Body.(type) {
		case *eventsv1.ReferenceRecord_Protocol:
			if before := protocols[body.Protocol.Slug]; body.Protocol.Source == schemas.DefiTVLSource && end > before.state {
				protocols[body.Protocol.Slug] = statedThing[*eventsv1.DefiProtocol]{schemas.NewDefiProtocol(body.Protocol), before.state, at}
			}
		case *eventsv1.ReferenceRecord_ChainTvl:
			if before := whole.chains[body.ChainTvl.Chain]; body.ChainTvl.Source == schemas.DefiTVLSource && end > before.state {
				whole.chains[body.ChainTvl.Chain] = statedThing[string]{body.ChainTvl.CoinId, before.state, at}
			}
		case *eventsv1.ReferenceRecord_Coin:
			categorize(whole.coins, end, body.Coin, at)
		}
	})
	if err != nil {
		return err
	}
	for _, slug := range slices.Sorted(maps.Keys(protocols)) {
		if p := protocols[slug]; p.value != nil && summary.Read-p.value.Heard <= int64(schemas.DefiForgottenAfter) {
			whole.protocols = append(whole.protocols, p)
		}
	}
	return nil
}

// categorize takes what a source stated of the categories of a coin in a minute, and returns the coin, empty for none.
func categorize(coins map[string]statedThing[*eventsv1.DefiCoin], end int64, reported *eventsv1.Coin, at Place) (id string) {
	id, ok := schemas.CanonicalCoin(reported.Source, reported.SourceId, reported.Symbol, reported.Name)
	if before := coins[id]; ok && end > before.state {
		coins[id] = statedThing[*eventsv1.DefiCoin]{schemas.NewDefiCoin(id, before.value, reported), before.state, at}
		return id
	}
	return ""
}
