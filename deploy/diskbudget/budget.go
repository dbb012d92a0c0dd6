package diskbudget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Part is what takes of the budget.
type Part struct {
	// Name is log, archive or tables.
	Name string
	// Used measures what it has on the disk, in bytes.
	Used func(ctx context.Context) (int64, error)
	// Held lists what may be dropped of it, in any order, and Drop drops some of that; both nil where it bounds itself.
	Held func(ctx context.Context) ([]Unit, error)
	Drop func(ctx context.Context, units []Unit) error
}

// The marks between which the parts are kept, in hundredths of the limit: what is written from one look to the next must fit above the upper one.
const (
	upperMark = 95
	lowerMark = 92
)

// How long it is from one look to the next: until a quarter of the room is used, at the rate of before, and within these.
const (
	leastPause = 2 * time.Second
	mostPause  = time.Minute
)

// warnInterval is how often the log repeats that the budget is spent.
const warnInterval = 10 * time.Minute

// Budget keeps the parts within a limit. Its methods may be called from any goroutine but Run, of which there is one.
type Budget struct {
	// Limit is what all parts may take together, in bytes.
	Limit int64
	Parts []Part
	// Room is how many bytes may be written to the disk before ingest is paused; less than 0 if it is. Where the disk is smaller than the limit, that
	// decides.
	Room func() (int64, error)
	// Now is the time of what is written.
	Now func() time.Time
	Log *slog.Logger

	mu      sync.Mutex
	known   bool
	used    map[string]int64
	dropped map[string]int64
	room    int64
	lacking int64
	warned  time.Time
}

// Status is how much of the budget is used.
type Status struct {
	// LimitBytes is what all parts may take, UsedBytes what each takes.
	LimitBytes int64            `json:"limitBytes"`
	UsedBytes  map[string]int64 `json:"usedBytes"`
	// LackingBytes are those that should have been dropped, and may not be.
	LackingBytes int64 `json:"lackingBytes,omitempty"`
}

// Sum is what all parts take.
func (s Status) Sum() (sum int64) {
	for _, bytes := range s.UsedBytes {
		sum += bytes
	}
	return sum
}

// Status is that of the last look; false before the first.
func (b *Budget) Status() (Status, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Status{LimitBytes: b.Limit, UsedBytes: map[string]int64{}, LackingBytes: b.lacking}
	for name, bytes := range b.used {
		s.UsedBytes[name] = bytes
	}
	return s, b.known
}

// Run looks until ctx ends. What cannot be measured or dropped now is tried again: nothing else depends on it.
func (b *Budget) Run(ctx context.Context) error {
	var last Status
	var looked time.Time
	for {
		if err := b.Look(ctx); err != nil && ctx.Err() == nil {
			b.Log.Error("keeping within the disk budget failed", "error", err)
		}
		now, known := b.Status()
		if known && looked.IsZero() {
			b.Log.Info("disk budget", "limit_bytes", now.LimitBytes, "used_bytes", now.Sum(), "parts", now.UsedBytes)
		}
		pause := mostPause
		if grown := now.Sum() - last.Sum(); !looked.IsZero() && grown > 0 {
			pause = time.Duration(float64(max(0, b.left(now))/4) / float64(grown) * float64(time.Since(looked)))
		} else if looked.IsZero() {
			pause = leastPause // a rate takes two looks
		}
		last, looked = now, time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(max(pause, leastPause), mostPause)):
		}
	}
}

// left is how many bytes may be written until the limit is reached, or the disk is full.
func (b *Budget) left(now Status) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(now.LimitBytes-now.Sum(), b.room)
}

// Look measures the parts, and drops what exceeds the limit's mark, or what the disk lacks.
func (b *Budget) Look(ctx context.Context) error {
	used := map[string]int64{}
	var sum int64
	for _, part := range b.Parts {
		bytes, err := part.Used(ctx)
		if err != nil {
			return fmt.Errorf("measuring the %s: %w", part.Name, err)
		}
		used[part.Name] = bytes
		sum += bytes
	}
	room, err := b.Room()
	if err != nil {
		return fmt.Errorf("measuring the disk: %w", err)
	}
	excess := max(0, -room)
	within := sum <= b.Limit/100*upperMark
	if !within {
		excess = max(excess, sum-b.Limit/100*lowerMark)
	}
	var dropped map[string]int64
	var lacking int64
	if excess > 0 {
		dropped, lacking, err = b.drop(ctx, excess, within)
	}
	b.looked(used, dropped, room, lacking)
	return err
}

// drop drops at least so many bytes, if there is as much, and returns how much of which part. Within the limit, where others fill the disk, what is kept
// is left alone: it would be lost for them, and ingest is paused before the disk is full.
func (b *Budget) drop(ctx context.Context, excess int64, within bool) (dropped map[string]int64, lacking int64, err error) {
	var all []Unit
	for i, part := range b.Parts {
		if part.Held == nil {
			continue
		}
		units, err := part.Held(ctx)
		if err != nil {
			return nil, 0, fmt.Errorf("listing the %s: %w", part.Name, err)
		}
		for _, u := range units {
			if within && u.Kind == Kept {
				continue
			}
			u.part = i
			all = append(all, u)
		}
	}
	chosen, lacking := plan(all, excess, b.Limit, b.Now())
	byPart := map[int][]Unit{}
	for _, u := range chosen {
		byPart[u.part] = append(byPart[u.part], u)
	}
	dropped = map[string]int64{}
	for i, part := range b.Parts {
		if len(byPart[i]) == 0 {
			continue
		}
		if failed := part.Drop(ctx, byPart[i]); failed != nil {
			err = errors.Join(err, fmt.Errorf("dropping of the %s: %w", part.Name, failed))
			continue
		}
		for _, u := range byPart[i] {
			dropped[part.Name] += u.Bytes
		}
	}
	if n := len(chosen); n > 0 && err == nil {
		oldest, newest := chosen[0].Until, chosen[0].Until
		for _, u := range chosen {
			if u.Until.Before(oldest) {
				oldest = u.Until
			}
			if u.Until.After(newest) {
				newest = u.Until
			}
		}
		b.Log.Info("the disk budget is used up, or the disk: the oldest hours were dropped", "limit_bytes", b.Limit, "dropped_bytes", dropped,
			"oldest", oldest.UTC(), "up_to", newest.UTC())
	}
	return dropped, lacking, err
}

// looked notes what a look found and did.
func (b *Budget) looked(used, dropped map[string]int64, room, lacking int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropped == nil {
		b.dropped = map[string]int64{}
	}
	for name, bytes := range dropped {
		used[name] -= bytes
		b.dropped[name] += bytes
		room += bytes
	}
	b.known, b.used, b.room, b.lacking = true, used, room, lacking
	if lacking > 0 && time.Since(b.warned) >= warnInterval {
		b.warned = time.Now()
		b.Log.Error("the disk budget is spent, and nothing more may be dropped: give the disk more room, raise retention.disk_bytes, or subscribe to fewer markets (venues.NAME.symbols)",
			"room_bytes", room, "limit_bytes", b.Limit, "used_bytes", used, "lacking_bytes", lacking)
	}
}
