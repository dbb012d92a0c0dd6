package operations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/schemas"
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

// awaitTables says what the tables do not have until they do; what keeps it from knowing is what they lack then. Later
// records are not waited for: v_lag has them.
func awaitTables(ctx context.Context, in *instance.Instance, store *history.Store) {
	ticker := time.NewTicker(behindEvery)
	defer ticker.Stop()
	var starts, ends kadm.ListedOffsets
	for {
		var err error
		if ends == nil {
			starts, ends, err = logBounds(ctx, in)
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

// missingFrom says how many records before the ends are not in the tables; empty: none.
func missingFrom(ctx context.Context, store *history.Store, starts, ends kadm.ListedOffsets) (string, error) {
	var missing int64
	var topics []string
	for _, topic := range schemas.SinkTopics() {
		n, err := missingOf(ctx, store, topic, starts, ends)
		if err != nil {
			return "", err
		}
		if n > 0 {
			missing, topics = missing+n, append(topics, topic)
		}
	}
	if missing == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d records that the log had at the start are not in them yet, of %s", missing, strings.Join(topics, ", ")), nil
}

// missingOf counts the records of a topic before its end that the ledger does not say are in the tables. Those that the log
// has no more are not waited for.
func missingOf(ctx context.Context, store *history.Store, topic string, starts, ends kadm.ListedOffsets) (missing int64, err error) {
	progress, err := store.Progress(ctx, topic, 0)
	if err != nil {
		return 0, err
	}
	for partition, end := range ends[topic] {
		start, _ := starts.Lookup(topic, partition)
		missing += max(0, end.Offset-max(start.Offset, progress[partition].Next))
	}
	return missing, nil
}

// logBounds are the first and last offsets of what sinks read.
func logBounds(ctx context.Context, in *instance.Instance) (starts, ends kadm.ListedOffsets, err error) {
	client, err := in.Stream.NewClient()
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if starts, err = admin.ListStartOffsets(ctx, schemas.SinkTopics()...); err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("finding the starts of the topics: %w", err)
	}
	if ends, err = admin.ListEndOffsets(ctx, schemas.SinkTopics()...); err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("finding the ends of the topics: %w", err)
	}
	return starts, ends, nil
}
