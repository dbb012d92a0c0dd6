package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// PausesFile remembers what is paused, for the process that writes the gap.
const PausesFile = "paused.json"

// Pauses remembers since when (Unix nanoseconds) each venue has been paused, until its gap was handed over. It outlives
// the process. Safe for concurrent use.
type Pauses struct {
	Path string

	mu    sync.Mutex
	Since map[string]int64
}

// ReadPauses reads what an earlier process had paused; a file that is not there holds nothing.
func ReadPauses(path string) (*Pauses, error) {
	p := &Pauses{Path: path, Since: map[string]int64{}}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &p.Since)
	}
	if err != nil { // cut short by the very disk that it is about: the gap that was begun is in the log
		return p, fmt.Errorf("reading the gaps of a full disk: %w", err)
	}
	return p, nil
}

// begin notes that a venue is paused from now on.
func (p *Pauses) begin(venue string, at int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.Since[venue]; ok {
		return nil
	}
	p.Since[venue] = at
	return p.write()
}

// end takes out the given venues that were paused.
func (p *Pauses) end(venues []string) (ended map[string]int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended = map[string]int64{}
	for _, venue := range venues {
		if since, ok := p.Since[venue]; ok {
			ended[venue] = since
			delete(p.Since, venue)
		}
	}
	if len(ended) == 0 {
		return ended, nil
	}
	return ended, p.write()
}

// paused are the venues whose gap has no end yet, in a fixed order.
func (p *Pauses) paused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.Since))
}

func (p *Pauses) write() error {
	if len(p.Since) == 0 {
		if err := os.Remove(p.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the gaps of a full disk: %w", err)
		}
		return nil
	}
	content, err := json.Marshal(p.Since)
	if err == nil {
		err = os.WriteFile(p.Path, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("storing the gaps of a full disk: %w", err)
	}
	return nil
}

// guardDisk begins to watch the disk of the data directory, and keeps the log quiet about what a full one does. While it is full before anything was opened, the caller goes
// on: the reserve file that an earlier process left is given back at once.
func (in *Instance) guardDisk() {
	in.Disk = diskguard.New(diskguard.Config{Dir: in.Dir.Path(), Reserve: in.Config.Retention.ReserveBytes, Log: in.Log})
	in.Log = slog.New(in.Disk.Quiet(in.Log.Handler()))
	in.Metrics.MustRegister(in.Disk)
	var err error
	if in.Pauses, err = ReadPauses(in.Dir.Path(PausesFile)); err != nil {
		in.Log.Warn("skipping a file", "error", err)
	}
}

// pausedFetch asks for the past while there is room for it: a back-fill waits where polled sources do, and goes on by itself.
type pausedFetch struct {
	adapter.Fetcher
	disk *diskguard.Guard
}

// Fetch implements producers.Fetcher.
func (f pausedFetch) Fetch(ctx context.Context, method, url string) ([]byte, error) {
	if !f.disk.Await(ctx, diskguard.Sources) {
		return nil, ctx.Err()
	}
	return f.Fetcher.Fetch(ctx, method, url)
}

// PausedFetch asks by a client, while the disk has room for what it brings.
func (in *Instance) PausedFetch(client adapter.Fetcher) adapter.Fetcher {
	return pausedFetch{client, in.Disk}
}

// RoomFor refuses long work that writes as much as the views hold while the disk has no room for it.
func (in *Instance) RoomFor(work string) error {
	if why := in.Disk.Waiting(); why != "" {
		return fmt.Errorf("%s writes whole views, and the disk has no room for them: %s; then run the command again", work, why)
	}
	return nil
}

// WithRoom does what writes to the disk, and does it again when there is room if there was none.
func (in *Instance) WithRoom(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		if waited := in.Disk.AwaitRoom(ctx); waited != nil {
			return errors.Join(err, waited)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(roomPause):
		}
	}
}

// roomPause is how long what a full disk refused waits before it is done again.
const roomPause = 500 * time.Millisecond

// Pause writes to the log, through any outbox, that venues are not read from now on: a gap without an end yet.
func (in *Instance) Pause(out producers.Outbox, venues ...string) {
	at := in.Clock.Now().UnixNano()
	for _, venue := range venues {
		if err := in.Pauses.begin(venue, at); err != nil {
			in.Log.Warn("storing the start of a gap failed: a kill now would lose it", "venue", venue, "error", err)
		}
		out.Gap(&eventsv1.Gap{Venue: venue, Reason: diskguard.GapReason, FromTime: at, ToTime: at})
	}
}

// Resume writes the gaps of the venues that were paused, in this process or an earlier one, to the log.
func (in *Instance) Resume(out producers.Outbox, venues ...string) {
	ended, err := in.Pauses.end(venues)
	if err != nil {
		in.Log.Warn("removing a stored gap failed: the gap may be written twice", "error", err)
	}
	at := in.Clock.Now().UnixNano()
	for _, venue := range slices.Sorted(maps.Keys(ended)) {
		out.Gap(&eventsv1.Gap{Venue: venue, Reason: diskguard.GapReason, FromTime: ended[venue], ToTime: at})
	}
}

// FollowSourcePauses writes the gaps of the polled sources, which have no way of their own for them, until ctx ends.
func (in *Instance) FollowSourcePauses(ctx context.Context, out producers.Outbox) {
	for {
		level, changed := in.Disk.Level()
		if level >= diskguard.Sources {
			in.Pause(out, poll.SourcesProducer)
		} else {
			in.Resume(out, poll.SourcesProducer)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
