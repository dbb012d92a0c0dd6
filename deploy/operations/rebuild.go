package operations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history/past"
)

// RebuildLine is one line of a rebuild.
type RebuildLine struct {
	// Topic was read again, of which Records had rows.
	Topic   string `json:"topic,omitempty"`
	Records int64  `json:"records,omitempty"`
	// Lost is a damage that is settled: what of it cannot be mended.
	Lost string `json:"lost,omitempty"`
}

// RebuildVerb writes the rows of all views again from what the log has, and settles the log's damages.
func RebuildVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "rebuild", Long: true, Run: func(ctx context.Context, _ json.RawMessage, emit func(any) error) (err error) {
		if err := in.RoomFor("a rebuild"); err != nil {
			return err
		}
		if _, err := Migrate(ctx, in); err != nil {
			return err
		}
		store, err := in.History(ctx)
		if err != nil {
			return err
		}
		// Who gives the command holds rows for lost: until it is over, the instance does not report that it serves everything.
		lacked := in.Lost.Waiting()
		defer func() {
			if err != nil {
				in.Lost.Set(lacked)
			}
		}()
		topics := schemas.SinkTopics()
		for i, topic := range topics {
			in.Lost.Set(fmt.Sprintf("`marketlog rebuild` writes their rows again: %s, topic %d of %d", topic, i+1, len(topics)))
			records, err := (&processors.Refill{Topic: topic, Log: in.Stream, History: store, Logger: in.Log}).Run(ctx)
			if err != nil {
				return err
			}
			if err := emit(RebuildLine{Topic: topic, Records: records}); err != nil {
				return err
			}
		}
		if err := expire(ctx, in, store); err != nil {
			return err
		}
		if err := past.NewFold(store).Mark(ctx); err != nil {
			return err
		}
		in.Lost.Set("")
		broker := in.EmbeddedBroker()
		if broker == nil {
			return nil
		}
		// Before they are forgotten: where nothing is fed, nobody else has reported them.
		if err := in.WriteGaps(ctx, in.DamageGaps()); err != nil {
			return err
		}
		for _, d := range broker.Damages() {
			if err := emit(RebuildLine{Lost: d.String()}); err != nil {
				return err
			}
		}
		return broker.Settle()
	}}
}
