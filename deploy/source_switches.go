package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// switchesFile holds in the data directory what `marketlog sources enable|disable` said.
const switchesFile = "sources.json"

// sourceSwitches are the sources that an operator switched on or off, kept in a file. Safe for concurrent use.
type sourceSwitches struct {
	path string

	mu      sync.Mutex
	on      map[string]bool
	changed chan struct{} // closed by the next change
}

// readSwitches reads the file; none is no switch.
func readSwitches(path string) (*sourceSwitches, error) {
	s := &sourceSwitches{path: path, on: map[string]bool{}, changed: make(chan struct{})}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &s.on)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which sources are switched on: %w; remove %s to begin with what is built in", err, path)
	}
	return s, nil
}

// get tells what was said of a source; ok is false if nothing was.
func (s *sourceSwitches) get(slug string) (on, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on, ok = s.on[slug]
	return on, ok
}

// set keeps a switch: once it returns without an error, it survives a crash.
func (s *sourceSwitches) set(slug string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, was := s.on[slug]
	s.on[slug] = on
	if err := s.write(); err != nil {
		if s.on[slug] = before; !was {
			delete(s.on, slug)
		}
		return fmt.Errorf("keeping the switch of %s: %w", slug, err)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *sourceSwitches) write() error {
	content, err := json.MarshalIndent(s.on, "", "  ") // keys in order
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

// change is closed by the next switch.
func (s *sourceSwitches) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
