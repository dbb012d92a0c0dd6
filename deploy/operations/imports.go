package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/deploy/imports"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers/outbox"
)

// importVerbs read files with candles into the log. Cancelled or killed, the work can be taken up.
func importVerbs(in *instance.Instance) []admin.Command {
	run := func(ctx context.Context, raw json.RawMessage, dry bool, emit func(any) error) error {
		var request imports.Request
		if err := json.Unmarshal(raw, &request); err != nil {
			return fmt.Errorf("reading the input of import: %w", err)
		}
		request.DryRun = dry
		if _, err := Migrate(ctx, in); err != nil {
			return err
		}
		store, err := in.History(ctx)
		if err != nil {
			return err
		}
		log, err := outbox.NewImportLog(in.Stream, in.Clock)
		if err != nil {
			return err
		}
		defer log.Close()
		importer := &imports.Importer{
			Log: log, Store: store, Clock: in.Clock, Emit: emit,
			Room: func(ctx context.Context) bool { return in.Disk.Await(ctx, diskguard.Sources) },
		}
		result, err := importer.Run(ctx, request)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err == nil && result.Refused > 0 {
			err = fmt.Errorf("%d of %d files were refused", result.Refused, result.Files)
		}
		return errors.Join(emit(result), err)
	}
	return []admin.Command{
		{Name: "import", Long: true, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			return run(ctx, raw, false, emit)
		}},
		{Name: "import.check", Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			return run(ctx, raw, true, emit)
		}},
		{Name: "import.list", Run: func(ctx context.Context, _ json.RawMessage, emit func(any) error) error {
			if _, err := Migrate(ctx, in); err != nil {
				return err
			}
			store, err := in.History(ctx)
			if err != nil {
				return err
			}
			return imports.List(ctx, store, emit)
		}},
	}
}
