package embedded

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
)

// clusterName is the id of the embedded cluster.
const clusterName = "marketlog"

// The broker's files of state that are JSON. It does not start with one that is cut short, and without meta.json it
// takes the log for a new one.
const (
	metaName   = "meta.json"
	topicsName = "topics.json"
)

// mendState makes the broker's state readable before the broker reads it. A file that is not JSON is set aside; the
// topics are then those that have partitions, whose settings the caller sets at every start. The logs of groups and
// producers lose the pieces that a failed append left in them, and nothing after those.
func mendState(dir string, log *slog.Logger) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if json.Valid(content) {
			continue
		}
		if err := os.Rename(name, name+damagedSuffix); err != nil {
			return err
		}
		log.Error("file of the broker state is damaged: renamed and created again", "file", name, "bytes", len(content), "kept", name+damagedSuffix)
	}
	if err := mendTopics(dir, log); err != nil {
		return fmt.Errorf("making the list of topics again: %w", err)
	}
	for _, name := range []string{"groups.log", "pids.log"} {
		if err := mendEntries(filepath.Join(dir, name), log); err != nil {
			return fmt.Errorf("mending %s: %w", name, err)
		}
	}
	return nil
}

// mendTopics lists the topics that have partitions, where there is a log and no list.
func mendTopics(dir string, log *slog.Logger) error {
	entries, err := os.ReadDir(filepath.Join(dir, "partitions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	type topic struct {
		Name       string `json:"name"`
		ID         string `json:"id"`
		Partitions int    `json:"partitions"`
		Replicas   int    `json:"replicas"`
	}
	var topics []topic
	for _, e := range entries {
		name, partition, ok := partitionOf(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		i := slices.IndexFunc(topics, func(t topic) bool { return t.Name == name })
		if i < 0 {
			id := make([]byte, 16)
			_, _ = rand.Read(id) // it never fails
			topics = append(topics, topic{Name: name, ID: base64.StdEncoding.EncodeToString(id), Replicas: 1})
			i = len(topics) - 1
		}
		topics[i].Partitions = max(topics[i].Partitions, int(partition)+1)
	}
	if len(topics) == 0 {
		return nil
	}
	for _, file := range []struct {
		name    string
		content any
	}{
		{topicsName, map[string]any{"version": 1, "topics": topics}},
		{metaName, map[string]any{"version": 1, "cluster_id": clusterName}},
	} {
		path := filepath.Join(dir, file.name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		content, err := json.Marshal(file.content)
		if err != nil {
			return err
		}
		if err := replaceFile(path, content); err != nil {
			return err
		}
		log.Error("file of the broker state was missing: created again from the existing partitions", "file", path)
	}
	return nil
}

// entryHeader is before each entry of a state log: its length, with the version, a checksum and a version.
const entryHeader = 10

// maxEntry is more than any entry has.
const maxEntry = 1 << 20

// mendEntries cuts pieces of entries out of a state log if whole ones lie after them. The broker reads such a log up to
// the first piece and drops the rest.
func mendEntries(name string, log *slog.Logger) error {
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var whole []byte
	for at := 0; at+entryHeader <= len(raw); {
		size, ok := entryAt(raw, at)
		if !ok {
			at++
			continue
		}
		whole = append(whole, raw[at:at+size]...)
		at += size
	}
	if len(whole) == len(raw) {
		return nil
	}
	log.Warn("broker state has incomplete entries: removed", "file", name, "bytes", len(raw)-len(whole))
	return replaceFile(name, whole)
}

func entryAt(raw []byte, at int) (size int, ok bool) {
	length := int64(binary.LittleEndian.Uint32(raw[at:]))
	if length < 2 || length > maxEntry || int64(at)+8+length > int64(len(raw)) {
		return 0, false
	}
	body := raw[at+8 : at+8+int(length)]
	return 8 + int(length), crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(raw[at+4:])
}

// readDamages reads what earlier checks found and nobody has settled.
func readDamages(dir string) ([]Damage, error) {
	content, err := os.ReadFile(filepath.Join(dir, damageName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var damages []Damage
	if err == nil {
		err = json.Unmarshal(content, &damages)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is damaged: %w", err)
	}
	return damages, nil
}

// writeDamages notes what nobody has settled.
func writeDamages(dir string, damages []Damage) error {
	path := filepath.Join(dir, damageName)
	if len(damages) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	content, err := json.MarshalIndent(damages, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, content)
}
