package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/diskbudget"
	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/stream/history"
)

// ExamineLog reads the whole embedded log of an instance that does not run.
func ExamineLog(cfg config.Config) (found []Finding) {
	dir := filepath.Join(cfg.DataDir, "log")
	if _, err := os.Stat(dir); len(cfg.Kafka.Brokers) > 0 || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	damages, err := embedded.CheckLog(dir)
	if err != nil {
		return []Finding{{"log", "failed", err.Error(), ""}}
	}
	for _, d := range damages {
		found = append(found, Finding{"log", "failed", d.String(), "start the instance: it keeps the file and reads what is left; then `marketlog rebuild`"})
	}
	if len(found) == 0 {
		found = append(found, Finding{"log", "ok", fmt.Sprintf("all segments in %s are intact", dir), ""})
	}
	return found
}

// examineSealed verifies the segments that a running instance does not write to any more.
func examineSealed(cfg config.Config) (found []Finding) {
	if len(cfg.Kafka.Brokers) > 0 {
		return nil
	}
	damages, segments, err := embedded.CheckSealed(filepath.Join(cfg.DataDir, "log"))
	if err != nil {
		return []Finding{{"log files", "failed", err.Error(), ""}}
	}
	for _, d := range damages {
		found = append(found, Finding{"log files", "failed", d.String() + " at most", "stop the instance and start it again: it keeps the file and reads what is left; then `marketlog rebuild`"})
	}
	if len(found) == 0 {
		found = append(found, Finding{"log files", "ok", fmt.Sprintf("all %d sealed segments have their checksums", segments), ""})
	}
	return found
}

// verifyLimit bounds the reading of all parts of the tables, which may be some gigabytes.
const verifyLimit = 10 * time.Minute

// examineTables verifies the parts of the embedded tables: a running instance does it, of one that does not run the engine is
// opened here, and nothing else of it.
func examineTables(ctx context.Context, cfg config.Config, running *admin.RunInfo) (found []Finding) {
	if len(cfg.ClickHouse.Addr) > 0 || running != nil && len(running.Kafka) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	var parts int
	var faults []history.PartFault
	var err error
	if running == nil {
		if _, missing := os.Stat(filepath.Join(cfg.DataDir, "clickhouse")); missing != nil {
			return nil // there are no tables yet
		}
		parts, faults, err = checkStopped(ctx, cfg)
	} else {
		err = admin.CallRunning(ctx, running.Admin, admin.Command{Name: "tables.check"}, admin.Start, struct{}{}, func(raw json.RawMessage) error {
			var line operations.CheckedTables
			if err := json.Unmarshal(raw, &line); err != nil {
				return fmt.Errorf("reading the instance's table statistics: %w", err)
			}
			if parts += line.Parts; line.Fault.Part != "" {
				faults = append(faults, line.Fault)
			}
			return nil
		})
	}
	for _, f := range faults {
		found = append(found, Finding{"tables", "failed", fmt.Sprintf("part %s of %s is damaged: %s", f.Part, f.Table, f.Says),
			"stop the instance, remove the folder " + f.Path + ", start it again: its rows are written again from the log"})
	}
	switch {
	case err != nil:
		return append(found, Finding{"tables", "failed", err.Error(), ""})
	case len(found) == 0:
		found = append(found, Finding{"tables", "ok", fmt.Sprintf("all %d parts have their checksums", parts), ""})
	}
	return found
}

// checkStopped verifies the parts of an instance that does not run. It holds the data directory meanwhile.
func checkStopped(ctx context.Context, cfg config.Config) (parts int, faults []history.PartFault, err error) {
	in, err := instance.HoldInstance(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	store, err := in.History(ctx)
	if err != nil {
		return 0, nil, err
	}
	return store.CheckParts(ctx)
}

// examineGrowth compares what ticks and prices will take, by the rate of the last minutes, with the room that there is.
func examineGrowth(ctx context.Context, cfg config.Config, info admin.RunInfo) []Finding {
	if len(cfg.ClickHouse.Addr) > 0 || len(info.Kafka) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, growthLimit)
	defer cancel()
	growth, err := answers[history.Growth](ctx, info, "tables.growth")
	if err != nil {
		return []Finding{{"growth", "failed", "reading how fast the tables grow: " + err.Error(), ""}}
	}
	budgets, err := answers[diskbudget.Status](ctx, info, "disk.budget")
	if err != nil {
		return []Finding{{"disk budget", "failed", "reading how much of the disk budget is used: " + err.Error(), ""}}
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(cfg.DataDir, &disk); err != nil {
		return []Finding{{"growth", "failed", "measuring the disk of " + cfg.DataDir + ": " + err.Error(), ""}}
	}
	free := int64(disk.Bavail) * int64(disk.Bsize)
	found := judgeGrowth(growth, budgets, free)
	for _, b := range budgets {
		found = append(found, judgeBudget(b, free))
	}
	return found
}

// answers are the lines of a command of a running instance.
func answers[T any](ctx context.Context, info admin.RunInfo, command string) (all []T, err error) {
	err = admin.CallRunning(ctx, info.Admin, admin.Command{Name: command}, admin.Start, struct{}{}, func(raw json.RawMessage) error {
		var line T
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		all = append(all, line)
		return nil
	})
	return all, err
}

// growthLimit bounds the counting of the last minutes' rows.
const growthLimit = time.Minute

func gigabytes(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }

// judgeGrowth reports what the tables grow to before the oldest day is dropped, and whether as much is free, where no budget bounds them.
func judgeGrowth(growth []history.Growth, budgets []diskbudget.Status, free int64) []Finding {
	if len(growth) == 0 {
		return []Finding{{"growth", "ok", "not known yet: there is less than a minute of ticks or prices", ""}}
	}
	var texts []string
	var lacking float64 // beside what is there
	for _, g := range growth {
		// The day that has begun is kept besides.
		full := g.BytesPerDay * float64(g.Kept+1)
		texts = append(texts, fmt.Sprintf("%s grow by %s a day, to %s in %d days (now %s)", g.Table, gigabytes(g.BytesPerDay), gigabytes(full), g.Kept+1, gigabytes(float64(g.Bytes))))
		lacking += max(0, full-float64(g.Bytes))
	}
	f := Finding{"growth", "ok", "by the rate of the last minutes " + strings.Join(texts, "; ") + "; free are " + gigabytes(float64(free)), ""}
	switch {
	case len(budgets) > 0:
		f.Message += "; the disk budget bounds them"
	case lacking > float64(free):
		f.Verdict = "warning"
		f.Remedy = "ingest will pause when the disk is nearly full: give it " + gigabytes(lacking-float64(free)) +
			" more, subscribe to fewer markets (venues.NAME.symbols), or set retention.disk_bytes"
	}
	return []Finding{f}
}

// judgeBudget reports how much of the disk budget is used, whether the rest of it is free, and whether there is anything left to be dropped.
func judgeBudget(b diskbudget.Status, free int64) Finding {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b.UsedBytes)) {
		parts = append(parts, name+" "+gigabytes(float64(b.UsedBytes[name])))
	}
	f := Finding{"disk budget", "ok", fmt.Sprintf("%s of %s are used: %s", gigabytes(float64(b.Sum())), gigabytes(float64(b.LimitBytes)), strings.Join(parts, ", ")), ""}
	switch rest := b.LimitBytes - b.Sum(); {
	case b.LackingBytes > 0:
		f.Verdict = "failed"
		f.Remedy = "what may be dropped was: give the disk more room, raise retention.disk_bytes, or subscribe to fewer markets (venues.NAME.symbols)"
	case rest > free:
		f.Verdict = "warning"
		f.Message += "; only " + gigabytes(float64(free)) + " are free"
		f.Remedy = "the oldest is dropped earlier than retention.disk_bytes states, when the disk is nearly full: free some"
	}
	return f
}
