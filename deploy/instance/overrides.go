package instance

import (
	"context"
	"math"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/read"
)

// ReferenceTail is how far before its end the topic of coins' markets is read for prices to hold venues' symbols against:
// older ones do not count.
const ReferenceTail = time.Hour

// OperatorKey is what the log's records of operators are keyed by, beside those of sources.
const OperatorKey = "operator"

// Overrides are operators' overrides of symbols as far as the view holds it: the topic may not reach back so far.
func (in *Instance) Overrides(ctx context.Context) (*schemas.SymbolOverrides, error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := read.From(store).Overrides(ctx)
	if err != nil {
		return nil, err
	}
	return schemas.NewSymbolOverrides(stored...), nil
}

// OverridesAndTail are Overrides, and a tail of the topic of reference records that goes on where the view ends: for
// FollowOverrides. Prices wait for it, and the topic is as long as its retention.
func (in *Instance) OverridesAndTail(ctx context.Context) (*schemas.SymbolOverrides, *stream.Tail, error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, nil, err
	}
	kept, err := store.Progress(ctx, schemas.TopicReferenceRaw, 0) // before the view, which goes on meanwhile
	if err != nil {
		return nil, nil, err
	}
	ends := map[int32]stream.TailStart{}
	for partition, progress := range kept {
		ends[partition] = stream.TailStart{Offset: progress.Next}
	}
	overrides, err := in.Overrides(ctx)
	if err != nil {
		return nil, nil, err
	}
	return overrides, in.tailFrom(schemas.TopicReferenceRaw, ends), nil
}

// FollowOverrides takes what a tail of reference records reports of symbols.
func FollowOverrides(overrides *schemas.SymbolOverrides) func(stream.TailRecord) error {
	return func(rec stream.TailRecord) error {
		if string(rec.Key) != OperatorKey {
			return nil
		}
		record, err := schemas.DecodeRecord(schemas.TopicReferenceRaw, rec.Value)
		if err != nil {
			return nil // the sink of the topic reports it
		}
		stored, _ := record.(*eventsv1.ReferenceRecord)
		if override := stored.GetOverride(); override != nil {
			overrides.Apply(override)
		}
		return nil
	}
}

// FollowCorrections reads operators' corrections of the log until the context ends. It calls read once, when those are in that the log
// holds now.
func (in *Instance) FollowCorrections(ctx context.Context, corrections *schemas.Corrections, read func()) error {
	known, end, err := processors.ReadCorrections(ctx, in.Stream, math.MaxInt64)
	if err != nil {
		return err
	}
	for _, c := range known.All() {
		corrections.Apply(c.CorrectionRecord)
	}
	read()
	return in.tailFrom(schemas.TopicCorrections, map[int32]stream.TailStart{0: {Offset: end}}).Run(ctx, func(rec stream.TailRecord) error {
		record, err := schemas.DecodeRecord(schemas.TopicCorrections, rec.Value)
		if err != nil {
			return nil // the sink of the topic reports it
		}
		corrections.Apply(record.(*eventsv1.CorrectionRecord))
		return nil
	})
}

// FollowReferences gives the conflict filter the sources' prices of coins.
func FollowReferences(conflicts *resolve.ConflictFilter) func(stream.TailRecord) error {
	return func(rec stream.TailRecord) error {
		record, err := schemas.DecodeRecord(schemas.TopicCoinMarketsRaw, rec.Value)
		if err != nil {
			return nil // the sink of the topic reports it
		}
		stored, _ := record.(*eventsv1.ReferenceRecord)
		if market := stored.GetCoinMarket(); market != nil {
			conflicts.Apply(market)
		}
		return nil
	}
}
