package globalstats

import (
	"context"
	"log/slog"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

const (
	// pastLook is how often the catalog is asked whether an hour began, in real time.
	pastLook = time.Second
	// pastPatience bounds one reading of history.
	pastPatience = 10 * time.Second
)

// Run keeps in memory the days of fear and greed that history holds, since the log that the catalog reads at its start
// may have fewer: they are read once in each hour of the sources' clock, until the context ends. While they cannot be
// read, the history that is answered is shorter.
func (u *Unit) Run(ctx context.Context, log *slog.Logger) error {
	const failure = "loading past fear and greed values failed, continuing without them"
	read := time.Time{}
	return views.KeepRead(ctx, log, failure, func(ctx context.Context) (time.Duration, error) {
		hour := time.Unix(0, u.catalog.Snapshot().SourcesTime).UTC().Truncate(time.Hour)
		if !hour.After(read) || hour.Unix() <= 0 {
			return pastLook, nil
		}
		if err := u.readPast(ctx, hour); err != nil {
			return pastLook, err
		}
		read = hour
		return pastLook, nil
	})
}

func (u *Unit) readPast(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, pastPatience)
	defer cancel()
	days, err := u.history.FearGreedHistory(ctx, now.Add(-(fearGreedDays+1)*day), now.Add(day))
	if err != nil {
		return err
	}
	u.past.Store(&days)
	return nil
}
