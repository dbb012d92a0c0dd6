package operations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

// behindEvery is how often the ledger is asked while the tables are behind.
const behindEvery = 500 * time.Millisecond

// BehindRole keeps the instance from being ready until the tables have what the log had when the role began: after a long
// stop, or with a directory of tables that is new or lost, charts and SQL would be answered with a part of their past.
func BehindRole(in *instance.Instance, store *history.Store) supervise.Role {
	in.Behind.Set("how far they are behind the log is not known yet")
	return supervise.Role{Name: "tables/behind", Run: func(ctx context.Context) error {
		awaitTables(ctx, in, store)
		<-ctx.Done()
		return nil
	}}
}

// awaitTables reports what the tables do not have until they do; what keeps it from knowing is what they lack then. Later
// records are not waited for: v_lag has them.
func awaitTables(ctx context.Context, in *instance.Instance, store *history.Store) {
	ticker := time.NewTicker(behindEvery)
	defer ticker.Stop()
	var starts, ends stream.Offsets
	for {
		var err error
		if ends == nil {
			starts, ends, err = in.Stream.LogBounds(ctx, schemas.SinkTopics()...)
		}
		var missing string
		if err == nil {
			missing, err = missingFrom(ctx, store, starts, ends)
		}
		if err != nil {
			missing = "how far they are behind the log is not known: " + err.Error()
		}
		if in.Behind.Set(missing); missing == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// missingFrom reports how many records before the ends are not in the tables; empty: none. Those that the log has no more are
// not waited for.
func missingFrom(ctx context.Context, store *history.Store, starts, ends stream.Offsets) (string, error) {
	kept, err := store.Kept(ctx)
	if err != nil {
		return "", err
	}
	var missing int64
	var topics []string
	for _, topic := range schemas.SinkTopics() {
		var n int64
		for partition, end := range ends[topic] {
			n += max(0, end-max(starts[topic][partition], kept[topic][partition]))
		}
		if n > 0 {
			missing, topics = missing+n, append(topics, topic)
		}
	}
	if missing == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d records of the log at the start are not in the tables yet, of %s", missing, strings.Join(topics, ", ")), nil
}
