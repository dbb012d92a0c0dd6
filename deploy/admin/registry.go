package admin

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Registry is a folder in which the running instances of a user are listed, so that commands find them without --data-dir. It
// only says where to look: whether an instance runs there is what the lock of its data directory says. An empty path is a
// registry that lists nothing.
type Registry string

// UserRegistry is the registry of the user whose environment is given: $XDG_RUNTIME_DIR/marketlog, else .cache/marketlog/run in
// an existing $HOME, else none. Both belong to the user alone, unlike the folder for temporary files.
func UserRegistry(environ []string) Registry {
	value := func(name string) string {
		for _, set := range slices.Backward(environ) {
			if value, ok := strings.CutPrefix(set, name+"="); ok {
				return value
			}
		}
		return ""
	}
	for _, under := range []struct{ parent, folder string }{
		{value("XDG_RUNTIME_DIR"), "marketlog"}, {value("HOME"), filepath.Join(".cache", "marketlog", "run")},
	} {
		if stat, err := os.Stat(under.parent); filepath.IsAbs(under.parent) && err == nil && stat.IsDir() {
			return Registry(filepath.Join(under.parent, under.folder))
		}
	}
	return ""
}

// registered is a file of the registry.
type registered struct {
	DataDir string `json:"dataDir"`
}

// file is that of a data directory, which is an absolute path.
func (r Registry) file(dataDir string) string {
	sum := sha256.Sum256([]byte(dataDir))
	return filepath.Join(string(r), fmt.Sprintf("%x.json", sum[:10]))
}

// Add lists the instance in a data directory.
func (r Registry) Add(dataDir string) error {
	if r == "" {
		return nil
	}
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return fmt.Errorf("listing the instance: %w", err)
	}
	content, err := json.Marshal(registered{dataDir})
	if err != nil {
		return fmt.Errorf("listing the instance: %w", err)
	}
	if err := os.MkdirAll(string(r), 0o700); err != nil {
		return fmt.Errorf("listing the instance: %w", err)
	}
	temporary := r.file(dataDir) + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("listing the instance: %w", err)
	}
	if err := os.Rename(temporary, r.file(dataDir)); err != nil {
		return fmt.Errorf("listing the instance: %w", err)
	}
	return nil
}

// Remove takes the instance in a data directory off the list; it need not be on it.
func (r Registry) Remove(dataDir string) error {
	if r == "" {
		return nil
	}
	dataDir, err := filepath.Abs(dataDir)
	if err == nil {
		err = os.Remove(r.file(dataDir))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("taking the instance off the list: %w", err)
	}
	return nil
}

// Running returns the data directories of the instances that run now, sorted. A file that cannot be read, or whose instance has
// ended without removing it, is passed over.
func (r Registry) Running() []string {
	if r == "" {
		return nil
	}
	var found []string
	files, _ := filepath.Glob(filepath.Join(string(r), "*.json")) // fails on a bad pattern only
	for _, file := range files {
		var entry registered
		if content, err := os.ReadFile(file); err != nil || json.Unmarshal(content, &entry) != nil || !filepath.IsAbs(entry.DataDir) {
			continue
		}
		if _, running, err := RunningInstance(entry.DataDir); err == nil && running {
			found = append(found, entry.DataDir)
		}
	}
	slices.Sort(found)
	return found
}
