package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
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
	var growth []history.Growth
	err := admin.CallRunning(ctx, info.Admin, admin.Command{Name: "tables.growth"}, admin.Start, struct{}{}, func(raw json.RawMessage) error {
		var line history.Growth
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading how fast the tables grow: %w", err)
		}
		growth = append(growth, line)
		return nil
	})
	if err != nil {
		return []Finding{{"growth", "failed", err.Error(), ""}}
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(cfg.DataDir, &disk); err != nil {
		return []Finding{{"growth", "failed", "measuring the disk of " + cfg.DataDir + ": " + err.Error(), ""}}
	}
	return judgeGrowth(growth, int64(disk.Bavail)*int64(disk.Bsize))
}

// growthLimit bounds the counting of the last minutes' rows.
const growthLimit = time.Minute

// judgeGrowth reports what the tables grow to before the oldest day is dropped, and whether as much is free.
func judgeGrowth(growth []history.Growth, free int64) []Finding {
	if len(growth) == 0 {
		return []Finding{{"growth", "ok", "not known yet: there is less than a minute of ticks or prices", ""}}
	}
	gigabytes := func(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }
	var texts []string
	var lacking float64 // beside what is there
	for _, g := range growth {
		// The day that has begun is kept besides.
		full := g.BytesPerDay * float64(g.Kept+1)
		texts = append(texts, fmt.Sprintf("%s grow by %s a day, to %s in %d days (now %s)", g.Table, gigabytes(g.BytesPerDay), gigabytes(full), g.Kept+1, gigabytes(float64(g.Bytes))))
		lacking += max(0, full-float64(g.Bytes))
	}
	f := Finding{"growth", "ok", "by the rate of the last minutes " + strings.Join(texts, "; ") + "; free are " + gigabytes(float64(free)), ""}
	if lacking > float64(free) {
		f.Verdict = "warning"
		f.Remedy = "ingest will pause when the disk is nearly full: give it " + gigabytes(lacking-float64(free)) +
			" more, subscribe to fewer markets (venues.NAME.symbols), or lower retention.price_days"
	}
	return []Finding{f}
}
