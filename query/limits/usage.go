package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// saveUsageEvery is how many requests' counts a crash may lose, in time.
const saveUsageEvery = time.Second

// logUsageEvery is how often a store that fails is logged.
const logUsageEvery = time.Minute

// Load takes up the counts of the month, without which they begin at zero, or joins the replicas that share limits.
func (l *Limiter) Load(ctx context.Context) error {
	if l.shared != nil {
		return l.shared.join(ctx)
	}
	if l.store == nil {
		return nil
	}
	usage, err := l.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("loading the counts of months: %w", err)
	}
	l.restore(usage)
	return nil
}

// Run saves the counts that changed, each second and once more when the context has ended. A store
// that fails is tried again: requests are not refused because counts cannot be written. Where limits are shared, it is what
// shares them, and leaves when the context has ended.
func (l *Limiter) Run(ctx context.Context, log *slog.Logger) error {
	if l.shared != nil {
		return l.shared.run(ctx)
	}
	ticker := time.NewTicker(saveUsageEvery)
	defer ticker.Stop()
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			saveCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return l.save(saveCtx)
		case <-ticker.C:
			if err := l.save(ctx); err != nil && ctx.Err() == nil && time.Since(logged) >= logUsageEvery {
				logged = time.Now()
				log.Error("writing monthly counts failed, retrying with the next batch", "error", err)
			}
		}
	}
}

func (l *Limiter) restore(usage []Usage) {
	for _, u := range usage {
		at, err := time.Parse("2006-01", u.Month)
		if err != nil {
			continue
		}
		s := l.shard(u.Budget)
		s.Lock()
		b := s.budgets[u.Budget]
		if b == nil {
			b = &budget{}
			s.budgets[u.Budget] = b
		}
		if m := monthOf(at); m >= b.month {
			b.month, b.used = m, u.Used
		}
		s.Unlock()
	}
}

// save writes the counts that changed and forgets budgets that hold nothing any more.
func (l *Limiter) save(ctx context.Context) error {
	var changed []Usage
	wall := l.now()
	now, current := int64(wall.Sub(l.epoch))+minute, monthOf(wall)
	for i := range l.shards {
		s := &l.shards[i]
		s.Lock()
		for name, b := range s.budgets {
			if b.changed {
				changed = append(changed, Usage{name, b.month.start().Format("2006-01"), b.used})
				b.changed = false
			}
			if idle := now-b.last > int64(idleAfter); idle && (b.used == 0 || b.month < current) {
				delete(s.budgets, name)
			}
		}
		s.Unlock()
	}
	if l.store == nil || len(changed) == 0 {
		return nil
	}
	slices.SortFunc(changed, func(a, b Usage) int { return strings.Compare(a.Budget, b.Budget) })
	if err := l.store.Save(ctx, changed); err != nil {
		l.remark(changed)
		return fmt.Errorf("saving the counts of %d budgets: %w", len(changed), err)
	}
	return nil
}

// remark has counts that could not be saved saved again.
func (l *Limiter) remark(usage []Usage) {
	for _, u := range usage {
		s := l.shard(u.Budget)
		s.Lock()
		if b := s.budgets[u.Budget]; b != nil {
			b.changed = true
		}
		s.Unlock()
	}
}

// UsageFile keeps counts in one file, which it replaces whole: for one process on one disk.
type UsageFile struct {
	path string
	kept map[string]Usage
}

// NewUsageFile names the file; Load reads it.
func NewUsageFile(path string) *UsageFile { return &UsageFile{path: path, kept: map[string]Usage{}} }

// Load reads the counts; a missing file holds none.
func (f *UsageFile) Load(context.Context) ([]Usage, error) {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading counts: %w", err)
	}
	var usage []Usage
	if err := json.Unmarshal(content, &usage); err != nil {
		return nil, fmt.Errorf("reading counts of %s: %w", f.path, err)
	}
	for _, u := range usage {
		f.kept[u.Budget] = u
	}
	return usage, nil
}

// Save writes the counts of the newest month again.
func (f *UsageFile) Save(_ context.Context, changed []Usage) error {
	newest := ""
	for _, u := range changed {
		f.kept[u.Budget] = u
		newest = max(newest, u.Month)
	}
	usage := make([]Usage, 0, len(f.kept))
	for name, u := range f.kept {
		if u.Month < newest {
			delete(f.kept, name)
			continue
		}
		usage = append(usage, u)
	}
	slices.SortFunc(usage, func(a, b Usage) int { return strings.Compare(a.Budget, b.Budget) })
	content, err := json.Marshal(usage)
	if err != nil {
		return fmt.Errorf("encoding counts: %w", err)
	}
	// Written beside and renamed, so that a crash leaves the old file or the new one.
	temporary, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return fmt.Errorf("writing counts: %w", err)
	}
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), f.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing counts: %w", err), os.Remove(temporary.Name()))
	}
	return nil
}
