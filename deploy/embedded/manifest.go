package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	segmentSuffix = ".dat"
	indexSuffix   = ".idx"
	manifestName  = "manifest.json"
)

// sealed is a segment as it was when the one after it was begun. Nothing is written to it any more.
type sealed struct {
	Base int64  `json:"base"`
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
	// Next is the offset after its last record.
	Next int64 `json:"next"`
	// Oldest and Newest are the timestamps of its first and last batch, Unix milliseconds.
	Oldest int64 `json:"oldest"`
	Newest int64 `json:"newest"`
}

// add counts a batch that was appended.
func (s *sealed) add(raw []byte) {
	for at := 0; at < len(raw); {
		b, ok := headerAt(raw, at)
		if !ok {
			return
		}
		if s.Size == 0 {
			s.Oldest = b.oldest
		}
		s.Next, s.Newest = b.next, b.newest
		end := min(at+b.size, len(raw))
		s.CRC = crc32.Update(s.CRC, castagnoli, raw[at:end])
		s.Size += int64(end - at)
		at = end
	}
}

// manifest says which segments a partition has.
type manifest struct {
	Sealed []sealed `json:"sealed"`
	// Active is the base offset of the segment that is written to; -1: there is none yet.
	Active int64 `json:"active"`
	// Lost are offsets that were found to be gone between the others.
	Lost []offsets `json:"lost,omitempty"`
}

// offsets are those of [From, Next).
type offsets struct {
	From int64 `json:"from"`
	Next int64 `json:"next"`
}

// readManifest reads that of a partition's directory; nil if there is none, or none that can be read: then what is there
// is taken as it is.
func readManifest(dir string) (*manifest, error) {
	content, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := &manifest{}
	if err == nil {
		err = json.Unmarshal(content, m)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %s: %w", dir, err)
	}
	return m, nil
}

// write replaces the manifest in one step. One that cannot be written is removed: a wrong one would name damage that is
// none.
func (m *manifest) write(dir string) error {
	content, err := json.Marshal(m)
	if err == nil {
		err = replaceFile(filepath.Join(dir, manifestName), content)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the manifest of %s: %w", dir, err), os.Remove(filepath.Join(dir, manifestName)))
	}
	return nil
}

// replaceFile writes a file in one step. A name that ends in .tmp is removed by the broker at its next start.
func replaceFile(name string, content []byte) error {
	temporary := name + ".tmp"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return os.Rename(temporary, name)
}

// segmentBase is the base offset that a segment's file is named after.
func segmentBase(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(filepath.Base(name), segmentSuffix)
	if !ok {
		return 0, false
	}
	base, err := strconv.ParseInt(digits, 10, 64)
	return base, err == nil
}

// segmentName is the file of a segment.
func segmentName(dir string, base int64) string {
	return filepath.Join(dir, strconv.FormatInt(base, 10)+segmentSuffix)
}

// segmentBases lists the segments that are there, in order.
func segmentBases(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, e := range entries {
		if base, ok := segmentBase(e.Name()); ok {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, nil
}
