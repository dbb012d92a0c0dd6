package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// SwitchesFile holds in the data directory what `marketlog sources enable|disable` set.
const SwitchesFile = "sources.json"

// SourceSwitches are the sources that an operator switched on or off, kept in a file. Safe for concurrent use.
type SourceSwitches struct {
	path string

	mu      sync.Mutex
	On      map[string]bool
	changed chan struct{} // closed by the next change
}

// ReadSwitches reads the file; no file means no switch.
func ReadSwitches(path string) (*SourceSwitches, error) {
	s := &SourceSwitches{path: path, On: map[string]bool{}, changed: make(chan struct{})}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &s.On)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which sources are switched on: %w; remove %s to use the built-in defaults", err, path)
	}
	return s, nil
}

// get returns the switch of a source; ok is false if nothing was.
func (s *SourceSwitches) get(slug string) (on, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on, ok = s.On[slug]
	return on, ok
}

// Set keeps a switch: once it returns without an error, it survives a crash.
func (s *SourceSwitches) Set(slug string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, was := s.On[slug]
	s.On[slug] = on
	if err := s.write(); err != nil {
		if s.On[slug] = before; !was {
			delete(s.On, slug)
		}
		return fmt.Errorf("keeping the switch of %s: %w", slug, err)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *SourceSwitches) write() error {
	content, err := json.MarshalIndent(s.On, "", "  ") // keys in order
	if err != nil {
		return err
	}
	temporary := s.path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(content, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, s.path)
}

// Change is closed by the next switch.
func (s *SourceSwitches) Change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
