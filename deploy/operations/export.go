package operations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers/sources"
)

// exportVerb writes a dataset into files. Cancelled or killed, it can be taken up.
func exportVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "export", Long: true, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
		var request export.Request
		if err := json.Unmarshal(raw, &request); err != nil {
			return fmt.Errorf("reading the input of export: %w", err)
		}
		if _, err := Migrate(ctx, in); err != nil {
			return err
		}
		store, err := in.History(ctx)
		if err != nil {
			return err
		}
		done, err := in.Exports.Person(ctx)
		if err != nil {
			return err
		}
		defer done()
		exporter := &export.Exporter{Store: store, Disk: in.Disk, Now: in.Clock.Now, Sources: sources.List(), Emit: emit}
		result, err := exporter.Run(ctx, request)
		if err != nil {
			return err
		}
		return emit(result)
	}}
}

// lakeVerb reports how the datasets of the lake fare; nothing where this process exports none.
func lakeVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "lake", Run: func(_ context.Context, _ json.RawMessage, emit func(any) error) error {
		lake := in.Lake.Load()
		if lake == nil {
			return nil
		}
		for _, status := range lake.Status() {
			if err := emit(status); err != nil {
				return err
			}
		}
		return nil
	}}
}
