package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/deploy/operations"
)

// examineLog reads the whole embedded log of an instance that does not run.
func examineLog(cfg config.Config) (found []finding) {
	dir := filepath.Join(cfg.DataDir, "log")
	if _, err := os.Stat(dir); len(cfg.Kafka.Brokers) > 0 || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	damages, err := embedded.CheckLog(dir)
	if err != nil {
		return []finding{{"log", "failed", err.Error(), ""}}
	}
	for _, d := range damages {
		found = append(found, finding{"log", "failed", d.String(), "start the instance: it keeps the file and reads what is left; then `marketlog rebuild`"})
	}
	if len(found) == 0 {
		found = append(found, finding{"log", "ok", fmt.Sprintf("every segment in %s is whole", dir), ""})
	}
	return found
}

// examineSealed verifies the segments that a running instance does not write to any more.
func examineSealed(cfg config.Config) (found []finding) {
	if len(cfg.Kafka.Brokers) > 0 {
		return nil
	}
	damages, segments, err := embedded.CheckSealed(filepath.Join(cfg.DataDir, "log"))
	if err != nil {
		return []finding{{"log files", "failed", err.Error(), ""}}
	}
	for _, d := range damages {
		found = append(found, finding{"log files", "failed", d.String() + " at most", "stop the instance and start it again: it keeps the file and reads what is left; then `marketlog rebuild`"})
	}
	if len(found) == 0 {
		found = append(found, finding{"log files", "ok", fmt.Sprintf("all %d sealed segments have their checksums", segments), ""})
	}
	return found
}

// verifyLimit bounds the reading of all parts of the tables, which may be some gigabytes.
const verifyLimit = 10 * time.Minute

// examineTables lets a running instance verify the parts of its tables.
func examineTables(ctx context.Context, cfg config.Config, info admin.RunInfo) (found []finding) {
	if len(cfg.ClickHouse.Addr) > 0 || len(info.Kafka) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	parts := 0
	err := admin.CallRunning(ctx, info.Admin, admin.Verb{Name: "tables.check"}, admin.Start, struct{}{}, func(raw json.RawMessage) error {
		var line operations.CheckedTables
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading what the instance says of its tables: %w", err)
		}
		parts += line.Parts
		if line.Fault != "" {
			found = append(found, finding{"tables", "failed", line.Fault, "stop the instance, remove the folder of the part, start it again: its rows are written again from the log"})
		}
		return nil
	})
	switch {
	case err != nil:
		return append(found, finding{"tables", "failed", err.Error(), ""})
	case len(found) == 0:
		found = append(found, finding{"tables", "ok", fmt.Sprintf("all %d parts have their checksums", parts), ""})
	}
	return found
}
