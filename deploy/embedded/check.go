package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Damage is a stretch of a partition that cannot be read any more.
type Damage struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// File is the segment, within the log's directory, What what is wrong with it.
	File string `json:"file"`
	What string `json:"what"`
	// Offsets [From, Next) are gone. Open means that there may have been fewer.
	From int64 `json:"from"`
	Next int64 `json:"next"`
	Open bool  `json:"open,omitempty"`
	// After and Before are the times of the last record before and of the first after it; zero where there is none.
	After  time.Time `json:"after,omitzero"`
	Before time.Time `json:"before,omitzero"`
	// Kept is where the damaged file was set aside, whole; empty if there is none.
	Kept string `json:"kept,omitempty"`
}

// String names the file, what is wrong and what is gone.
func (d Damage) String() string {
	text := fmt.Sprintf("%s/%d: %s %s: offsets %d to %d are gone", d.Topic, d.Partition, d.File, d.What, d.From, d.Next-1)
	if d.Open {
		text = fmt.Sprintf("%s/%d: %s %s: offsets from %d on are gone", d.Topic, d.Partition, d.File, d.What, d.From)
	}
	if !d.After.IsZero() || !d.Before.IsZero() {
		text += fmt.Sprintf(", between %s and %s", moment(d.After), moment(d.Before))
	}
	if d.Kept != "" {
		text += "; the file is kept as " + d.Kept
	}
	return text
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}

// damageName holds the damages that nobody has settled.
const damageName = "damage.json"

// CheckLog reads all segments of a log that no broker has open and says what is damaged. It changes nothing.
func CheckLog(dir string) ([]Damage, error) {
	damages, _, err := checkPartitions(dir, false, nil)
	return damages, err
}

// CheckSealed compares the sealed segments of a log with their manifests, which a broker may write to meanwhile: nothing is
// written to them any more. It changes nothing.
func CheckSealed(dir string) (damages []Damage, segments int, err error) {
	root := filepath.Join(dir, "partitions")
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, 0, fmt.Errorf("listing the partitions of the log: %w", err)
	}
	for _, e := range entries {
		topic, partition, ok := partitionOf(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		known, err := readManifest(filepath.Join(root, e.Name()))
		if err != nil {
			return nil, 0, err
		}
		if known == nil {
			continue
		}
		for _, s := range known.Sealed {
			what, err := sealedFault(filepath.Join(root, e.Name()), s)
			if err != nil {
				return nil, 0, err
			}
			segments++
			if what != "" {
				damages = append(damages, Damage{Topic: topic, Partition: partition, File: filepath.Join("partitions", e.Name(), filepath.Base(segmentName("", s.Base))),
					What: what, From: s.Base, Next: s.Next, After: time.UnixMilli(s.Oldest), Before: time.UnixMilli(s.Newest)})
			}
		}
	}
	return damages, segments, nil
}

// sealedFault reports what is wrong with a sealed segment; empty: nothing, or retention has just removed it.
func sealedFault(dir string, s sealed) (string, error) {
	raw, err := os.ReadFile(segmentName(dir, s.Base))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now, err := readManifest(dir)
		if err != nil || now == nil || !slices.ContainsFunc(now.Sealed, func(other sealed) bool { return other.Base == s.Base }) {
			return "", err
		}
		return "is missing", nil
	case err != nil:
		return "", fmt.Errorf("reading a segment: %w", err)
	case int64(len(raw)) != s.Size:
		return fmt.Sprintf("has %d of %d bytes", len(raw), s.Size), nil
	case crc32.Checksum(raw, castagnoli) != s.CRC:
		return "does not have its checksum any more", nil
	}
	return "", nil
}

// partitionState is what a check found of a partition: what its manifest is to be.
type partitionState struct {
	manifest manifest
	active   sealed
}

// checkPartitions looks at every partition. With mend a damaged segment is set aside whole and what can be read of it,
// on both sides of the damage, takes its place. Keep, unless nil, is given each segment that is left as it is, from several goroutines.
func checkPartitions(dir string, mend bool, keep func(name string, raw []byte)) ([]Damage, map[string]*partitionState, error) {
	root := filepath.Join(dir, "partitions")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, map[string]*partitionState{}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing the partitions of the log: %w", err)
	}
	var mu sync.Mutex
	var damages []Damage
	states := map[string]*partitionState{}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, e := range entries {
		topic, partition, ok := partitionOf(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		g.Go(func() error {
			c := &partitionCheck{root: dir, dir: filepath.Join(root, e.Name()), topic: topic, partition: partition, mend: mend, keep: keep}
			state, err := c.run()
			if err != nil {
				return fmt.Errorf("checking %s/%d: %w", topic, partition, err)
			}
			mu.Lock()
			defer mu.Unlock()
			damages = append(damages, c.damages...)
			states[c.dir] = state
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(damages, func(a, b Damage) int {
		if d := strings.Compare(a.Topic, b.Topic); d != 0 {
			return d
		}
		if d := int(a.Partition) - int(b.Partition); d != 0 {
			return d
		}
		return int(min(max(a.From-b.From, -1), 1))
	})
	return damages, states, nil
}

// partitionOf reads the name of a partition's directory.
func partitionOf(name string) (topic string, partition int32, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil {
		return "", 0, false
	}
	topic, err = url.PathUnescape(name[:i])
	return topic, int32(number), err == nil
}

// partitionCheck looks at one partition.
type partitionCheck struct {
	root, dir string
	topic     string
	partition int32
	mend      bool
	keep      func(name string, raw []byte)
	damages   []Damage

	// next is the offset and newest the time (Unix milliseconds) after which the next record is to be.
	next, newest int64
	begun        bool
	// known are the offsets that were found to be lost, at an earlier check or this one.
	known []offsets
}

func (c *partitionCheck) run() (*partitionState, error) {
	if c.mend {
		if err := c.finish(); err != nil {
			return nil, err
		}
	}
	known, err := readManifest(c.dir)
	if err != nil {
		known = nil // what is there is taken as it is
	}
	bases, err := segmentBases(c.dir)
	if err != nil {
		return nil, err
	}
	state := &partitionState{manifest: manifest{Active: -1}}
	if known != nil {
		c.known = known.Lost
	}
	listed := map[int64]sealed{}
	if known != nil {
		for _, s := range known.Sealed {
			listed[s.Base] = s
			if !slices.Contains(bases, s.Base) {
				bases = append(bases, s.Base)
			}
		}
		if known.Active >= 0 && !slices.Contains(bases, known.Active) {
			bases = append(bases, known.Active)
		}
		slices.Sort(bases)
	}
	for i, base := range bases {
		was, isListed := listed[base]
		last := i == len(bases)-1
		now, kept, err := c.segment(base, was, isListed, last)
		if err != nil {
			return nil, err
		}
		switch {
		case !kept:
		case last:
			state.manifest.Active, state.active = base, now
		default:
			state.manifest.Sealed = append(state.manifest.Sealed, now)
		}
	}
	if n := len(state.manifest.Sealed); state.manifest.Active < 0 && n > 0 { // the last was not kept
		state.active = state.manifest.Sealed[n-1]
		state.manifest.Active, state.manifest.Sealed = state.active.Base, state.manifest.Sealed[:n-1]
	}
	if len(bases) > 0 { // what retention has dropped since is not a gap any more
		c.known = slices.DeleteFunc(c.known, func(k offsets) bool { return k.Next <= bases[0] })
	}
	state.manifest.Lost = c.known
	if c.mend && (len(bases) > 0 || known != nil) {
		if err := state.manifest.write(c.dir); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// finish ends what a kill interrupted: a damaged segment was set aside, and what is left of it not put in its place.
func (c *partitionCheck) finish() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), salvagedSuffix)
		if !ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(c.dir, name)); errors.Is(err, fs.ErrNotExist) {
			err = os.Rename(filepath.Join(c.dir, e.Name()), filepath.Join(c.dir, name))
			if err != nil {
				return err
			}
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// segment looks at one segment and returns what is there of it now; false if nothing is.
func (c *partitionCheck) segment(base int64, was sealed, listed, last bool) (sealed, bool, error) {
	name := segmentName(c.dir, base)
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return c.missing(base, was, listed, last)
	}
	if err != nil {
		return sealed{}, false, err
	}
	if listed && int64(len(raw)) == was.Size && crc32.Checksum(raw, castagnoli) == was.CRC {
		c.follow(base, was.Oldest)
		c.next, c.newest = was.Next, was.Newest
		c.whole(name, raw)
		return was, true, nil
	}
	batches := wholeBatches(raw)
	now := sealed{Base: base}
	end, damaged := 0, false
	c.follow(base, firstTime(batches))
	for _, b := range batches {
		if b.first > c.next || b.at > end {
			c.lost(name, damageOf(b.at-end), c.next, b.first, b.oldest)
			damaged = true
		}
		now.add(raw[b.at : b.at+b.size])
		c.next, c.newest, end = b.next, b.newest, b.at+b.size
	}
	switch {
	case listed && c.next < was.Next:
		c.lost(name, fmt.Sprintf("has %d of %d bytes", len(raw), was.Size), c.next, was.Next, 0)
		c.next, now.Next, damaged = was.Next, was.Next, true
	case end < len(raw) && !last:
		// It was written whole: the segment after it says where it ended.
		damaged = true
	case end < len(raw):
		// The end of what a kill cut short: its write was acknowledged to nobody. The broker cuts it off.
		if !damaged {
			return now, true, nil
		}
	}
	if !damaged {
		c.whole(name, raw)
		return now, true, nil
	}
	return now, now.Size > 0, c.replace(name, raw, batches)
}

// whole hands on a segment that was found without fault.
func (c *partitionCheck) whole(name string, raw []byte) {
	if c.keep != nil {
		c.keep(name, raw)
	}
}

func damageOf(bytes int) string {
	if bytes > 0 {
		return fmt.Sprintf("has %d bytes that are not records", bytes)
	}
	return "lacks records"
}

func firstTime(batches []batch) int64 {
	if len(batches) == 0 {
		return 0
	}
	return batches[0].oldest
}

// follow takes note that a segment begins at an offset.
func (c *partitionCheck) follow(base, oldest int64) {
	if n := len(c.damages); n > 0 && oldest > 0 && c.damages[n-1].Before.IsZero() && c.damages[n-1].Next <= base {
		c.damages[n-1].Before = time.UnixMilli(oldest)
	}
	if c.begun && base > c.next {
		c.lost(segmentName(c.dir, base), "does not follow the one before", c.next, base, oldest)
	}
	if !c.begun || base > c.next {
		c.next = base
	}
	c.begun = true
}

// missing reports a segment that should be there. The offsets of the last one are kept from being given out again.
func (c *partitionCheck) missing(base int64, was sealed, listed, last bool) (sealed, bool, error) {
	name := segmentName(c.dir, base)
	if !c.begun {
		c.next, c.begun = base, true
	}
	if !last {
		if listed {
			c.lost(name, "is missing", base, was.Next, 0)
			c.next = was.Next
		}
		return sealed{}, false, nil
	}
	next, open := was.Next, false
	if !listed {
		if next, open = c.highWatermark(), false; next <= base {
			next, open = base+mostInSegment, true
		}
	}
	c.lost(name, "is missing", base, next, 0)
	if n := len(c.damages); n > 0 && c.damages[n-1].Next == next {
		c.damages[n-1].Open = open
	}
	if !c.mend {
		return sealed{}, false, nil
	}
	content := keeper(base, next, c.newest)
	now := sealed{Base: base}
	now.add(content)
	return now, true, replaceFile(name, content)
}

// mostInSegment is more than the records that fit into a segment.
const mostInSegment = 4 << 20

// highWatermark is the end that a clean stop noted; 0 if there was none.
func (c *partitionCheck) highWatermark() int64 {
	var snapshot struct {
		HighWatermark int64 `json:"high_watermark"`
	}
	content, err := os.ReadFile(filepath.Join(c.dir, "snapshot.json"))
	if err != nil || json.Unmarshal(content, &snapshot) != nil {
		return 0
	}
	return snapshot.HighWatermark
}

// lost notes that offsets [from, next) are gone; before is the time of the first record after them, 0 if not known.
func (c *partitionCheck) lost(name, what string, from, next, before int64) {
	if slices.ContainsFunc(c.known, func(k offsets) bool { return k.From <= from && k.Next >= next }) {
		return
	}
	c.known = append(c.known, offsets{from, next})
	file, err := filepath.Rel(c.root, name)
	if err != nil {
		file = name
	}
	d := Damage{Topic: c.topic, Partition: c.partition, File: file, What: what, From: from, Next: next}
	if c.newest > 0 {
		d.After = time.UnixMilli(c.newest)
	}
	if before > 0 {
		d.Before = time.UnixMilli(before)
	}
	// What followed an earlier damage was not known then.
	if n := len(c.damages); n > 0 && c.damages[n-1].Before.IsZero() && !d.After.IsZero() && c.damages[n-1].Next <= from {
		c.damages[n-1].Before = d.After
	}
	c.damages = append(c.damages, d)
}

const (
	salvagedSuffix = ".salvaged"
	damagedSuffix  = ".damaged"
)

// replace sets a damaged segment aside, whole, and puts what can be read of it in its place. The index goes: it is by
// batch, and the broker reads a segment without one.
func (c *partitionCheck) replace(name string, raw []byte, batches []batch) error {
	kept := name + damagedSuffix
	for n := 2; ; n++ {
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) {
			break
		}
		kept = name + damagedSuffix + "." + strconv.Itoa(n)
	}
	file, _ := filepath.Rel(c.root, name)
	for i := range c.damages {
		if c.mend && c.damages[i].File == file {
			c.damages[i].Kept = filepath.Join(filepath.Dir(file), filepath.Base(kept))
		}
	}
	if !c.mend {
		return nil
	}
	var readable []byte
	for _, b := range batches {
		readable = append(readable, raw[b.at:b.at+b.size]...)
	}
	if len(readable) > 0 {
		if err := os.WriteFile(name+salvagedSuffix, readable, 0o644); err != nil {
			return err
		}
	}
	if err := os.Rename(name, kept); err != nil {
		return err
	}
	if err := os.Remove(strings.TrimSuffix(name, segmentSuffix) + indexSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(readable) == 0 {
		return nil
	}
	return os.Rename(name+salvagedSuffix, name)
}
