package config

import (
	"path/filepath"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
)

// An open segment is read again at each start, so it is short; and each is two files, so it is not shorter.
const (
	segmentPeriod = time.Hour
	segmentBytes  = 16 << 20
	// segmentShare is how many segments the bound of a partition of the embedded log has room for: one of them is open.
	segmentShare = 2
)

// archiveAuto archives the embedded log.
const archiveAuto = "auto"

// Archives reports whether the log is archived.
func (c Config) Archives() bool {
	return c.Archive.Enabled == "true" || c.Archive.Enabled == archiveAuto && len(c.Kafka.Brokers) == 0
}

// ArchiveRules states where segments of the archived topics end.
func (c Config) ArchiveRules() map[string]archive.Rule {
	rules := map[string]archive.Rule{}
	for _, t := range schemas.Topics {
		if t.Archive == schemas.ArchiveNever {
			continue
		}
		rule := archive.Rule{Period: segmentPeriod, Bytes: segmentBytes}
		if len(c.Kafka.Brokers) == 0 {
			rule.Bytes = min(rule.Bytes, c.PartitionBounds(t).Near/segmentShare)
		}
		rules[t.Name] = rule
	}
	return rules
}

// Archived is the archived part of the log of some brokers; nil where the log is not archived.
func (c Config) Archived(brokers stream.Config) *archive.Log {
	if !c.Archives() {
		return nil
	}
	return archive.NewLog(archive.NewDir(c.ArchiveDir()), brokers, c.ArchiveRules())
}

// ArchiveDir is the directory of the archive.
func (c Config) ArchiveDir() string {
	if c.Archive.Dir != "" {
		return c.Archive.Dir
	}
	return filepath.Join(c.DataDir, "archive")
}
