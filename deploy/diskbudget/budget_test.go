package diskbudget

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// holder is a part that holds units, and other bytes which may not be dropped.
type holder struct {
	units []Unit
	fixed int64
	// grows adds what was written since the last look.
	grows func(h *holder)
	err   error
	looks int
}

func (h *holder) part(name string) Part {
	return Part{
		Name: name,
		Used: func(context.Context) (sum int64, err error) {
			h.looks++
			if h.grows != nil {
				h.grows(h)
			}
			for _, u := range h.units {
				sum += u.Bytes
			}
			return sum + h.fixed, nil
		},
		Held: func(context.Context) ([]Unit, error) { return slices.Clone(h.units), nil },
		Drop: func(_ context.Context, units []Unit) error {
			if h.err != nil {
				return h.err
			}
			h.units = slices.DeleteFunc(h.units, func(u Unit) bool {
				return slices.ContainsFunc(units, func(of Unit) bool { return of.Of == u.Of })
			})
			return nil
		},
	}
}

// plenty is a disk with room for everything.
func plenty() (int64, error) { return 1 << 50, nil }

// A disk that is smaller than the limit decides, before ingest is paused.
func TestASmallDiskDecides(t *testing.T) {
	tables := &holder{}
	for i := range 10 {
		tables.units = append(tables.units, hour(Ticks, 2*i, 30))
	}
	kept := &holder{units: []Unit{hour(Kept, -100, 30), hour(Kept, 0, 30)}} // which nothing of the disk's touches
	room, failed := int64(0), error(nil)
	b := &Budget{Now: lateEnough, Limit: 1000, Parts: []Part{tables.part("tables"), kept.part("archive")}, Room: func() (int64, error) { return room, failed }, Log: slog.New(slog.DiscardHandler)}
	for _, step := range []struct{ room, left, lacking int64 }{{0, 10, 0}, {-1, 9, 0}, {-31, 7, 0}, {5, 7, 0}, {-1000, 1, 1000 - 180}} {
		room = step.room
		if err := b.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, _ := b.Status(); int64(len(tables.units)) != step.left || len(kept.units) != 2 || s.LackingBytes != step.lacking {
			t.Errorf("with room for %d bytes: left are %v, the status is %+v, want %d and %d lacking", room, names(tables.units), s, step.left, step.lacking)
		}
	}
	failed = errors.New("no disk")
	if err := b.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "measuring the disk: no disk") {
		t.Errorf("got %v", err)
	}
}

// Archive and tables give way together, the oldest of both first; the log only counts.
func TestPartsStayWithinTheLimitTogether(t *testing.T) {
	archive, tables := &holder{}, &holder{fixed: 100}
	for i := range 10 {
		archive.units = append(archive.units, hour(Ticks, 2*i, 30))
		tables.units = append(tables.units, hour(Ticks, 2*i+1, 30))
	}
	log := &holder{fixed: 100}
	whole := log.part("log")
	whole.Held, whole.Drop = nil, nil
	b := &Budget{Now: lateEnough, Limit: 700, Parts: []Part{whole, archive.part("archive"), tables.part("tables")}, Room: plenty, Log: slog.New(slog.DiscardHandler)}
	if _, known := b.Status(); known || len(measured(t, b)) != 0 {
		t.Error("there is a status before the first look")
	}
	if err := b.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Of 800 bytes 156 are beyond 92 % of 700: six units.
	if got, want := names(slices.Concat(archive.units, tables.units)), 14; len(got) != want || got[0] != "0 6" || got[7] != "0 7" {
		t.Errorf("left are %v", got)
	}
	status, known := b.Status()
	if !known || status.Sum() != 620 || status.UsedBytes["log"] != 100 || status.UsedBytes["archive"] != 210 || status.UsedBytes["tables"] != 310 || status.LackingBytes != 0 {
		t.Errorf("the status is %+v", status)
	}
	want := map[string]float64{
		"marketlog_disk_budget_bytes": 700, "marketlog_disk_budget_lacking_bytes": 0,
		"marketlog_disk_budget_used_bytes log": 100, "marketlog_disk_budget_used_bytes archive": 210, "marketlog_disk_budget_used_bytes tables": 310,
		"marketlog_disk_budget_dropped_bytes_total log": 0, "marketlog_disk_budget_dropped_bytes_total archive": 90, "marketlog_disk_budget_dropped_bytes_total tables": 90,
	}
	if got := measured(t, b); !maps.Equal(got, want) {
		t.Errorf("measured are %v, want %v", got, want)
	}
	if err := b.Look(t.Context()); err != nil || len(archive.units) != 7 {
		t.Errorf("within the limit: left are %v, %v", names(archive.units), err)
	}
}

// measured are the metrics, by name and part.
func measured(t *testing.T, b *Budget) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// What cannot be dropped now is dropped later; what may not be is an error in the log and a number.
func TestWhatCannotBeDropped(t *testing.T) {
	var said strings.Builder
	tables := &holder{units: []Unit{hour(Ticks, 0, 90), hour(Ticks, 5, 90)}, err: errors.New("away")}
	b := &Budget{Now: lateEnough, Limit: 100, Parts: []Part{tables.part("tables")}, Room: plenty, Log: slog.New(slog.NewTextHandler(&said, nil))}
	if err := b.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "dropping of the tables: away") {
		t.Errorf("got %v", err)
	}
	if s, _ := b.Status(); s.Sum() != 180 {
		t.Errorf("nothing was dropped, and the status is %+v", s)
	}
	tables.err = nil
	tables.fixed = 50
	for range 2 {
		if err := b.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := b.Status()
	if len(tables.units) != 1 || s.LackingBytes != 140-92 || strings.Count(said.String(), "budget is spent") != 1 || !strings.Contains(said.String(), "retention.disk_bytes") {
		t.Errorf("left are %v, the status is %+v, the log says %s", names(tables.units), s, said.String())
	}
}

// Who looks often enough never finds the limit exceeded, whatever the rate, if it has room for what is never dropped; who has room looks once a minute.
func TestLooksFollowTheRate(t *testing.T) {
	for _, rate := range []int64{10, 300, 1_000} { // bytes a second
		synctest.Test(t, func(t *testing.T) {
			const limit = 10_000_000
			began, most, n := time.Now(), int64(0), 0
			tables := &holder{}
			last := began
			tables.grows = func(h *holder) {
				written := int64(time.Since(last).Seconds() * float64(rate))
				last = time.Now()
				n++
				h.units = append(h.units, Unit{Kind: Ticks, Until: last, Bytes: written, Of: n})
				sum := int64(0)
				for _, u := range h.units {
					sum += u.Bytes
				}
				most = max(most, sum)
			}
			b := &Budget{Now: lateEnough, Limit: limit, Parts: []Part{tables.part("tables")}, Room: plenty, Log: slog.New(slog.DiscardHandler)}
			ctx, stop := context.WithTimeout(t.Context(), 12*time.Hour)
			defer stop()
			if err := b.Run(ctx); err != nil {
				t.Fatal(err)
			}
			least := int64(12 * time.Hour / mostPause)
			if most > limit || int64(tables.looks) < least || rate == 10 && int64(tables.looks) > least+10 || rate > 10 && most < limit/100*upperMark {
				t.Errorf("at %d bytes a second: at most %d of %d bytes, %d looks", rate, most, limit, tables.looks)
			}
		})
	}
}

func TestSizesAreThoseOfBlocks(t *testing.T) {
	dir := t.TempDir()
	if size, err := Size(filepath.Join(dir, "none")); err != nil || size != 0 {
		t.Errorf("of no directory: got %d, %v", size, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string]int{"one": 1, "a/two": 100_000, "a/b/three": 5000} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := Size(dir); err != nil || size < 105_001 || size > 200_000 || size%blockSize != 0 {
		t.Errorf("got %d, %v, want some blocks more than 105001", size, err)
	}
}
