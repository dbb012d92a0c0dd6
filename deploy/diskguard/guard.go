// Package diskguard pauses what fills a disk before the disk is full: below a reserve of free bytes the levels of ingest
// end one after the other, and begin again by themselves when there is room.
package diskguard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// GapReason is the reason of a gap where a full disk paused ingest.
const GapReason = "disk"

// Level is how much of ingest is paused.
type Level int

// The levels, each of which includes those before it.
const (
	// Open pauses nothing.
	Open Level = iota
	// Sources pauses the polled sources: what they report can be asked for again.
	Sources
	// Feeds pauses the venues' feeds too.
	Feeds
)

// Space is what a disk has, in bytes.
type Space struct{ Free, Total int64 }

// Config reports what is watched.
type Config struct {
	// Dir is on the disk, and holds the reserve file.
	Dir string
	// Reserve is how many bytes are to stay free; 0: MaxReserve or a twentieth of the disk, whichever is less.
	Reserve int64
	// Space measures the disk that a directory is on; nil: the operating system's own figures.
	Space func(dir string) (Space, error)
	// Log gets a line at each change, and one a minute while something is paused.
	Log *slog.Logger
}

// MaxReserve is the greatest default reserve.
const MaxReserve = 1 << 30

const (
	// interval is how often Run looks.
	interval = time.Second
	// warnInterval is how often the log repeats that ingest is paused.
	warnInterval = time.Minute
	// fileName holds an eighth of the reserve, which is given back when feeds are paused: what is in the log already is
	// still to be worked off, with marks, ledgers and the gap.
	fileName  = "reserve"
	fileShare = 8
)

// Guard watches a disk. Its methods may be called from any goroutine.
type Guard struct {
	cfg  Config
	look sync.Mutex // held by the one who looks

	mu      sync.Mutex
	level   Level
	changed chan struct{}
	space   Space
	reserve int64
	err     error
	warned  time.Time
}

// New looks at the disk once; the level counts from then on.
func New(cfg Config) *Guard {
	if cfg.Space == nil {
		cfg.Space = statfs
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &Guard{cfg: cfg, changed: make(chan struct{})}
	g.Look()
	return g
}

// Run looks at the disk once a second until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		g.Look()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Look measures the disk and changes the level: below the reserve to Sources, below three quarters of it to Feeds, and
// back to Open not before a quarter more than the reserve is free, so that it does not go to and fro.
func (g *Guard) Look() {
	g.look.Lock()
	defer g.look.Unlock()
	space, err := g.cfg.Space(g.cfg.Dir)
	g.mu.Lock()
	g.err = err
	if err != nil { // nothing is known, so nothing changes
		g.mu.Unlock()
		return
	}
	g.space, g.reserve = space, g.cfg.reserveOf(space)
	before, level := g.level, g.level
	switch {
	case space.Free < g.reserve/4*3:
		level = Feeds
	case space.Free < g.reserve && before == Open:
		level = Sources
	case space.Free >= g.resumes():
		level = Open
	}
	g.level = level
	if level != before {
		close(g.changed)
		g.changed = make(chan struct{})
	}
	warn := level != before || level != Open && time.Since(g.warned) >= warnInterval
	if warn {
		g.warned = time.Now()
	}
	reserve, resumes := g.reserve, g.resumes()
	g.mu.Unlock()
	switch {
	case warn && level == Feeds:
		g.cfg.Log.Error("all ingest is paused: free some of the disk, or lower retention.reserve_bytes", "dir", g.cfg.Dir, "free", space.Free, "resumes_at", resumes, "reserve", reserve)
	case warn && level == Sources:
		g.cfg.Log.Error("polled sources are paused: free some of the disk, or lower retention.reserve_bytes", "dir", g.cfg.Dir, "free", space.Free, "resumes_at", resumes, "reserve", reserve)
	case warn:
		g.cfg.Log.Info("disk has free space again: ingest resumed", "dir", g.cfg.Dir, "free", space.Free)
	}
	switch level {
	case Feeds:
		g.giveBack()
	case Open:
		g.setAside(space)
	}
}

func (c Config) reserveOf(space Space) int64 {
	if c.Reserve != 0 {
		return c.Reserve
	}
	return min(MaxReserve, space.Total/20)
}

// Lacks is how many bytes the disk that a directory is on lacks, which may be another one than the guard's, to be as free as
// ingest needs it to go on; 0 if it has them. What may be given up is given up for that before anything is paused.
func (g *Guard) Lacks(dir string) (int64, error) {
	room, err := g.Room(dir)
	return max(0, -room), err
}

// Room is how many bytes the disk that a directory is on has beyond what ingest needs it to have free; less than 0 where it lacks some.
func (g *Guard) Room(dir string) (int64, error) {
	space, err := g.cfg.Space(dir)
	if err != nil {
		return 0, err
	}
	reserve := g.cfg.reserveOf(space)
	return space.Free - reserve - reserve/4, nil
}

// resumes is how much must be free for ingest to go on, the reserve file made.
func (g *Guard) resumes() int64 { return g.reserve + g.reserve/4 }

func (g *Guard) file() string { return filepath.Join(g.cfg.Dir, fileName) }

// giveBack removes the reserve file.
func (g *Guard) giveBack() {
	if err := os.Remove(g.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.cfg.Log.Error("releasing the reserve file failed", "error", err)
	}
}

// setAside makes the reserve file if there is room for it beside the reserve.
func (g *Guard) setAside(space Space) {
	size := g.reserve / fileShare
	if info, err := os.Stat(g.file()); err == nil && info.Size() == size || space.Free-size < g.reserve {
		return
	}
	if err := allocate(g.file(), size); err != nil {
		g.cfg.Log.Warn("creating the reserve file failed", "error", err)
		_ = os.Remove(g.file())
	}
}

// Level is how much is paused, and a channel that is closed when that changes.
func (g *Guard) Level() (Level, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.level, g.changed
}

// Waiting reports what the disk lacks; empty: nothing.
func (g *Guard) Waiting() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.err != nil:
		return fmt.Sprintf("the space that is free in %s cannot be measured: %v", g.cfg.Dir, g.err)
	case g.level == Open:
		return ""
	}
	return g.text()
}

// text reports what is paused and what would help. The caller holds the mutex.
func (g *Guard) text() string {
	what := "polled sources are"
	if g.level == Feeds {
		what = "all ingest is"
	}
	return fmt.Sprintf("%s paused: the disk of %s has %d bytes free and goes on at %d; free some, or lower retention.reserve_bytes (now %d)",
		what, g.cfg.Dir, g.space.Free, g.resumes(), g.reserve)
}

// While runs what a level pauses: while the level is reached it ends run's context, waits for it, and when there is
// room runs it again. It returns when ctx ends, or with what run returns by itself.
func (g *Guard) While(ctx context.Context, level Level, run func(context.Context) error) error {
	for {
		if !g.Await(ctx, level) {
			return nil
		}
		running, stop := context.WithCancel(ctx)
		paused := make(chan bool, 1)
		go func() {
			reached := g.wait(running, func(at Level) bool { return at >= level })
			stop()
			paused <- reached
		}()
		err := run(running)
		stop()
		if reached := <-paused; !reached || err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// Await waits until ingest of a level is not paused; false if ctx ended before.
func (g *Guard) Await(ctx context.Context, level Level) bool {
	return g.wait(ctx, func(at Level) bool { return at < level })
}

// AwaitRoom waits until as much is free as the reserve file gives back: with less, what is opened could write nothing, and
// what works off the log would fail in its middle. It returns ctx's error if that ends before.
func (g *Guard) AwaitRoom(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !g.roomy() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			g.Look()
		}
	}
	return nil
}

func (g *Guard) roomy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err != nil || g.space.Free >= g.reserve/fileShare
}

// wait returns true once the level fits, false when ctx ends before.
func (g *Guard) wait(ctx context.Context, fits func(Level) bool) bool {
	for {
		at, changed := g.Level()
		if fits(at) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

var (
	freeBytes    = prometheus.NewDesc("marketlog_disk_free_bytes", "Bytes that are free on the disk of the data directory.", nil, nil)
	reserveBytes = prometheus.NewDesc("marketlog_disk_reserve_bytes", "Bytes below which ingest pauses.", nil, nil)
	pausedLevel  = prometheus.NewDesc("marketlog_ingest_paused", "What a full disk pauses: 0 nothing, 1 polled sources, 2 all ingest.", nil, nil)
)

// Describe names the metrics.
func (g *Guard) Describe(out chan<- *prometheus.Desc) {
	out <- freeBytes
	out <- reserveBytes
	out <- pausedLevel
}

// Collect reports of the last look.
func (g *Guard) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out <- prometheus.MustNewConstMetric(freeBytes, prometheus.GaugeValue, float64(g.space.Free))
	out <- prometheus.MustNewConstMetric(reserveBytes, prometheus.GaugeValue, float64(g.reserve))
	out <- prometheus.MustNewConstMetric(pausedLevel, prometheus.GaugeValue, float64(g.level))
}
