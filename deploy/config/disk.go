package config

import (
	"fmt"
	"strconv"
)

// defaultArchiveBytes bounds an archive that no disk budget counts.
const defaultArchiveBytes = 20 << 30

// DiskBudget is what the log, its archive and the tables may take on this machine's disk together, as far as they are embedded; 0: there is no
// such bound, or nothing is.
func (c Config) DiskBudget() int64 {
	if len(c.Kafka.Brokers) > 0 && len(c.ClickHouse.Addr) > 0 {
		return 0
	}
	return c.Retention.DiskBytes
}

// ArchiveInBudget reports whether the disk budget counts the archive: the one of an embedded log, in a directory.
func (c Config) ArchiveInBudget() bool {
	return c.Retention.DiskBytes > 0 && len(c.Kafka.Brokers) == 0 && c.Archives() && !c.ArchiveInBucket()
}

// ArchiveBound is how large the archive may be.
func (c Config) ArchiveBound() int64 {
	switch {
	case c.Archive.Bytes > 0:
		return c.Archive.Bytes
	case c.ArchiveInBudget():
		return c.Retention.DiskBytes
	default:
		return defaultArchiveBytes
	}
}

// validateDiskBudget checks that the parts of the disk budget fit into it.
func (c Config) validateDiskBudget(f *Faults) {
	budget := c.DiskBudget()
	if budget == 0 {
		return
	}
	least := int64(MinArchiveBytes)
	what := "archive and tables"
	if len(c.Kafka.Brokers) == 0 {
		least += c.Retention.LogBytes
		what = "the log (retention.log_bytes), archive and tables"
	}
	if budget < least {
		f.add("retention.disk_bytes", strconv.FormatInt(budget, 10), "is too small for "+what, fmt.Sprintf("use %d or more, or 0 for no such bound", least))
	}
	if c.ArchiveInBudget() && c.Archive.Bytes > budget {
		f.add("archive.bytes", strconv.FormatInt(c.Archive.Bytes, 10), "is more than retention.disk_bytes, which counts the archive",
			"raise retention.disk_bytes, or leave archive.bytes out")
	}
}
