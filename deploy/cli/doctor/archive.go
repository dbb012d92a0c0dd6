package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/stream/archive"
)

// examineArchive looks at the sidecars of the archive, and at what its disk has room for.
func examineArchive(ctx context.Context, cfg config.Config) (found []Finding) {
	if !cfg.Archives() {
		return nil
	}
	bound := cfg.ArchiveBound()
	store, err := cfg.OpenArchive()
	if errors.Is(err, fs.ErrNotExist) {
		return append(found, Finding{"archive", "ok", "nothing is archived yet in " + cfg.ArchivePlace(), ""})
	}
	if err != nil {
		return append(found, Finding{"archive", "failed", err.Error(), ""})
	}
	var segments int
	var bytes int64
	err = operations.InspectArchive(ctx, store, false, func(s operations.ArchiveStatus) error {
		segments += s.Segments
		bytes += s.Bytes
		for _, fault := range s.Faults {
			found = append(found, Finding{"archive", "failed", fault, "`marketlog archive verify --deep` names all; restore the files from a copy: what left the log is nowhere else"})
		}
		for _, gap := range s.Gaps {
			found = append(found, Finding{"archive", "warning", fmt.Sprintf("%s/%d lacks offsets %d to %d", s.Topic, s.Partition, gap.From, gap.Next-1),
				"they left the log before they were archived, and cannot be restored"})
		}
		return nil
	})
	if errors.Is(err, archive.ErrUnavailable) {
		return append(found, Finding{"archive", "failed", err.Error(), "records stay in the log meanwhile; see that archive.bucket names it, and that it answers"})
	}
	if err != nil {
		return append(found, Finding{"archive", "failed", err.Error(), ""})
	}
	if cfg.ArchiveInBudget() && cfg.Archive.Bytes == 0 { // what it may take is the disk budget's to say
		return append(found, Finding{"archive", "ok", fmt.Sprintf("%d segments, %.1f GiB in %s", segments, float64(bytes)/(1<<30), cfg.ArchivePlace()), ""})
	}
	text := fmt.Sprintf("%d segments, %.1f of %.1f GiB in %s", segments, float64(bytes)/(1<<30), float64(bound)/(1<<30), cfg.ArchivePlace())
	var disk unix.Statfs_t
	if err := unix.Statfs(cfg.ArchiveDir(), &disk); err == nil && !cfg.ArchiveInBucket() {
		if free := int64(disk.Bavail) * int64(disk.Bsize); free < bound-bytes {
			return append(found, Finding{"archive", "warning", fmt.Sprintf("%s; its disk has %.1f GiB free", text, float64(free)/(1<<30)),
				"the oldest ticks and prices are deleted earlier than archive.bytes states: free some, or lower it"})
		}
	}
	return append(found, Finding{"archive", "ok", text, ""})
}
