package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// ReplayInput is what the verb replay takes.
type ReplayInput struct {
	View   string    `json:"view"`
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Verify bool      `json:"verify"`
	// Corrected applies corrections over their validity.
	Corrected bool `json:"corrected,omitempty"`
	// Abort removes what an interrupted replay left, and does nothing else.
	Abort bool `json:"abort"`
}

// replayVerb rebuilds a view from the log beside the live one. Cancelled or killed, it can be taken up.
func replayVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "replay", Long: true, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
		var input ReplayInput
		if err := json.Unmarshal(raw, &input); err != nil {
			return fmt.Errorf("reading the input of replay: %w", err)
		}
		r, err := replay(ctx, in, emit)
		if err != nil {
			return err
		}
		if input.Abort {
			return abortReplay(ctx, r, emit)
		}
		if !input.Verify {
			if err := in.RoomFor("a replay"); err != nil {
				return err
			}
		}
		r.View, r.From, r.To, r.Verify, r.Corrected = input.View, input.From, input.To, input.Verify, input.Corrected
		if r.View == schemas.ViewTicks {
			if r.Rejoin, err = rejoin(ctx, in); err != nil {
				return err
			}
		}
		result, err := r.Run(ctx)
		if err != nil {
			return err
		}
		return emit(result)
	}}
}

func replay(ctx context.Context, in *instance.Instance, emit func(any) error) (*processors.Replay, error) {
	if _, err := Migrate(ctx, in); err != nil {
		return nil, err
	}
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	return &processors.Replay{Unit: instance.PricesUnit(), Minutes: instance.MinuteFolds(), Log: in.Stream, History: store, Logger: in.Log, Emit: emit}, nil
}

func abortReplay(ctx context.Context, r *processors.Replay, emit func(any) error) error {
	view, finished, err := r.Abort(ctx)
	if err != nil {
		return err
	}
	note := "there is no unfinished replay"
	switch {
	case finished:
		note = "the replay of view " + view + " had begun to exchange tables: it is finished"
	case view != "":
		note = "the replay of view " + view + " is given up, and what it made is removed"
	}
	return emit(processors.ReplayNote{Note: note})
}

// SettleReplay finishes an exchange of tables in which an earlier process was killed.
func SettleReplay(ctx context.Context, in *instance.Instance) error {
	store, err := in.History(ctx)
	if err != nil {
		return err
	}
	view, err := (&processors.Replay{Log: in.Stream, History: store, Logger: in.Log}).Settle(ctx)
	if view != "" && err == nil {
		in.Log.Info("finished an interrupted replay", "view", view)
	}
	return err
}

// rejoin resolves recorded ticks by the present coin table. Another quote than the recorded one gets its
// rate from what quotes.v1 holds, which is read here.
func rejoin(ctx context.Context, in *instance.Instance) (func(*eventsv1.ResolvedTick, int64) *eventsv1.ResolvedTick, error) {
	starts, ends, err := in.Stream.LogBounds(ctx, schemas.TopicQuotes)
	if err != nil {
		return nil, err
	}
	overrides, err := in.Overrides(ctx)
	if err != nil {
		return nil, err
	}
	past := &resolve.RateHistory{}
	start, end := starts[schemas.TopicQuotes][0], ends[schemas.TopicQuotes][0]
	err = stream.ReadRange(ctx, in.Stream, schemas.TopicQuotes, 0, start, end, func(rec *kgo.Record) error {
		record, err := schemas.DecodeRecord(schemas.TopicQuotes, rec.Value)
		if err != nil {
			return nil // live skipped it too
		}
		if quote, ok := record.(*eventsv1.QuoteRecord); ok {
			past.Apply(rec.Offset, quote)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(recorded *eventsv1.ResolvedTick, now int64) *eventsv1.ResolvedTick {
		return resolve.Reresolve(schemas.Coins(), overrides, past, recorded, now)
	}, nil
}

// ParseTime reads the time that a flag gives; empty is the zero time.
func ParseTime(flag, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return at, fmt.Errorf("--%s %q is not a time; use RFC 3339, 2026-01-31T12:00:00Z", flag, value)
	}
	return at, nil
}

// ReplayLine is any line of a replay; which it is, its fields show.
type ReplayLine struct {
	processors.ReplayProgress
	shadow.Difference
	processors.ReplayChange
	processors.ReplayNote
}
