package instance

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/deploy/diskbudget"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/history"
)

// openBudget makes the disk budget of what is embedded in this process; none where nothing is, or it is unbounded.
func (in *Instance) openBudget() {
	limit := in.Config.DiskBudget()
	if limit == 0 {
		return
	}
	in.Budget = &diskbudget.Budget{Limit: limit, Now: in.Clock.Now, Log: in.Log, Room: func() (int64, error) { return in.Disk.Room(in.Dir.Path()) }}
	if len(in.Config.Kafka.Brokers) == 0 {
		in.Budget.Parts = append(in.Budget.Parts, diskbudget.Part{Name: "log", Used: sizeOf(in.Dir.Path("log"))})
	}
	if in.Config.ArchiveInBudget() {
		in.Budget.Parts = append(in.Budget.Parts, diskbudget.Part{
			Name: "archive", Used: sizeOf(in.Config.ArchiveDir()), Held: in.archivedUnits, Drop: in.dropArchived,
		})
	}
	if len(in.Config.ClickHouse.Addr) == 0 {
		in.Budget.Parts = append(in.Budget.Parts, diskbudget.Part{Name: "tables", Used: in.tablesSize, Held: in.tableUnits, Drop: in.dropFromTables})
	}
	in.Metrics.MustRegister(in.Budget)
}

// sizeOf measures a directory.
func sizeOf(dir string) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) { return diskbudget.Size(dir) }
}

// tablesSize is what the embedded engine has on the disk, without the tables that replays are building: they are there for a while.
func (in *Instance) tablesSize(ctx context.Context) (int64, error) {
	store, err := in.History(ctx)
	if err != nil {
		return 0, err
	}
	replays, err := store.ReplayBytes(ctx)
	if err != nil {
		return 0, err
	}
	size, err := diskbudget.Size(in.Dir.Path("clickhouse"))
	return max(0, size-replays), err
}

// tableUnits are the partitions of tables that may be dropped.
func (in *Instance) tableUnits(ctx context.Context) (units []diskbudget.Unit, err error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	found, err := store.Droppable(ctx)
	for _, d := range found {
		kind := diskbudget.Kept
		switch d.Table {
		case "ticks":
			kind = diskbudget.Ticks
		case "prices":
			kind = diskbudget.Prices
		}
		units = append(units, diskbudget.Unit{Kind: kind, Until: d.Until, Bytes: int64(d.Bytes), Of: d})
	}
	return units, err
}

// dropFromTables drops partitions, of each table all that are not newer than the newest among them.
func (in *Instance) dropFromTables(ctx context.Context, units []diskbudget.Unit) error {
	until := map[string]time.Time{}
	for _, u := range units {
		if d := u.Of.(history.Droppable); d.Until.After(until[d.Table]) {
			until[d.Table] = d.Until
		}
	}
	store, err := in.History(ctx)
	if err != nil {
		return err
	}
	at := in.Clock.Now()
	for _, topic := range schemas.Topics {
		for _, t := range topic.Tables {
			if until[t.Name].IsZero() {
				continue
			}
			if err := store.DropUntil(ctx, t.Name, until[t.Name], at); err != nil {
				return err
			}
		}
	}
	return nil
}

// archivedUnits are the segments of the archive that may be dropped.
func (in *Instance) archivedUnits(ctx context.Context) (units []diskbudget.Unit, err error) {
	if in.archive == nil {
		return nil, nil // the log is not open yet
	}
	if len(in.Config.ClickHouse.Addr) == 0 { // nor is a replay to find the rest of what it reads gone
		store, err := in.History(ctx)
		if err != nil {
			return nil, err
		}
		if replaying, err := store.Replaying(ctx); replaying || err != nil {
			return nil, err
		}
	}
	kinds := map[string]diskbudget.Kind{}
	var topics []string
	for _, t := range schemas.Topics {
		switch {
		case t.Name == schemas.TopicTicks:
			kinds[t.Name] = diskbudget.Ticks
		case t.Archive == schemas.ArchiveBudget:
			kinds[t.Name] = diskbudget.Prices
		case t.Archive == schemas.ArchiveKept && !t.Irreplaceable():
			kinds[t.Name] = diskbudget.Kept
		default:
			continue
		}
		topics = append(topics, t.Name)
	}
	segments, err := archive.Oldest(ctx, in.archive, topics...)
	for _, s := range segments {
		units = append(units, diskbudget.Unit{Kind: kinds[s.Topic], Until: time.UnixMilli(s.MaxTime), Bytes: s.Size, Of: s})
	}
	return units, err
}

// dropArchived deletes segments of the archive.
func (in *Instance) dropArchived(ctx context.Context, units []diskbudget.Unit) error {
	segments := make([]archive.Segment, len(units))
	for i, u := range units {
		segments[i] = u.Of.(archive.Segment)
	}
	deleted, err := archive.Delete(ctx, in.archive, segments)
	in.archiving.pruned(deleted)
	return err
}
