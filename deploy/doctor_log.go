package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/marketlog/marketlog/deploy/embedded"
)

// examineLog reads the whole embedded log of an instance that does not run.
func examineLog(cfg Config) (found []finding) {
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
