package roles

import (
	"cmp"
	"context"

	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/producers/sources"
)

// lakeRole exports finished days once the tables have what the log has, and the back-fill of the start, of which waiting reports how
// far it is, is over. A lake that cannot be written keeps nothing else from working, so that the instance is ready without it.
func lakeRole(ctx context.Context, in *instance.Instance, waiting func() string) (supervise.Role, error) {
	store, err := in.History(ctx)
	if err != nil {
		return supervise.Role{}, err
	}
	cfg := in.Config.Lake
	lake := &export.Lake{
		Exporter: &export.Exporter{Store: store, Disk: in.Disk, Now: in.Clock.Now, Sources: sources.List()},
		Dir:      cfg.Dir, Datasets: cfg.Datasets, Format: cfg.Format, OwnUse: cfg.OwnUse, Days: cfg.Days, KeepDays: cfg.KeepDays,
		Turns: &in.Exports, Log: in.Log,
		Hold: func() string { return cmp.Or(in.Lost.Waiting(), in.Behind.Waiting(), waiting()) },
	}
	in.Metrics.MustRegister(lake)
	in.Lake.Store(lake)
	return supervise.Role{Name: "lake", Run: lake.Run}, nil
}
