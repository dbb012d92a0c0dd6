package archive

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Dir is a Store in a directory. Several processes may use it at the same time.
type Dir struct{ root string }

// NewDir is a store in a directory that is made when the first object is created: until then nothing is archived.
func NewDir(root string) *Dir { return &Dir{root: filepath.Clean(root)} }

// OpenDir opens a directory that exists.
func OpenDir(root string) (*Dir, error) {
	if info, err := os.Stat(root); err != nil {
		return nil, fmt.Errorf("opening the archive: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("opening the archive: %s is not a directory", root)
	}
	return NewDir(root), nil
}

// unfinished begins the names of files that are being written. A process that dies leaves one behind.
const unfinished = ".unfinished-"

const writeBuffer = 1 << 20

// Create implements Store: the object is written under another name, flushed, and given its name by a link, which fails
// where the name is taken.
func (d *Dir) Create(ctx context.Context, name string, write func(io.Writer) error) (err error) {
	target, err := d.path(name)
	if err != nil {
		return err
	}
	folder := filepath.Dir(target)
	if err := d.makeFolder(folder); err != nil {
		return fmt.Errorf("archiving %s: %w", name, err)
	}
	file, err := os.CreateTemp(folder, unfinished)
	if err != nil {
		return fmt.Errorf("archiving %s: %w", name, err)
	}
	defer func() {
		err = errors.Join(err, ignore(os.Remove(file.Name()), fs.ErrNotExist))
	}()
	buffered := bufio.NewWriterSize(file, writeBuffer)
	err = cmp.Or(write(buffered), buffered.Flush(), ctx.Err())
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("archiving %s: %w", name, err)
	}
	if err := os.Link(file.Name(), target); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = ErrExists
		}
		return fmt.Errorf("archiving %s: %w", name, err)
	}
	if err := syncFolder(folder); err != nil {
		return fmt.Errorf("archiving %s: %w", name, err)
	}
	return nil
}

// Sweep removes what processes left unfinished that died before the given time. No other process may be writing an object
// for longer than since then.
func (d *Dir) Sweep(before time.Time) error {
	var failed []error
	err := filepath.WalkDir(d.root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(entry.Name(), unfinished) {
			return ignore(err, fs.ErrNotExist)
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(file)
		}
		failed = append(failed, ignore(err, fs.ErrNotExist))
		return nil
	})
	if err = errors.Join(append(failed, err)...); err != nil {
		return fmt.Errorf("removing what was left unfinished in the archive: %w", err)
	}
	return nil
}

// makeFolder makes a folder and flushes the names of those that are new.
func (d *Dir) makeFolder(folder string) error {
	err := os.Mkdir(folder, 0o700)
	switch {
	case err == nil:
		return syncFolder(filepath.Dir(folder))
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder):
		return cmp.Or(d.makeFolder(filepath.Dir(folder)), d.makeFolder(folder))
	}
	return err
}

func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // a file system that cannot
		err = nil
	}
	return errors.Join(err, f.Close())
}

type fileReader struct {
	*os.File
	size int64
}

func (r fileReader) Size() int64 { return r.size }

// Open implements Store.
func (d *Dir) Open(_ context.Context, name string) (Reader, error) {
	target, err := d.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening %s: %w", name, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", name, err), file.Close())
	}
	return fileReader{file, info.Size()}, nil
}

// List implements Store.
func (d *Dir) List(_ context.Context, prefix string) ([]Object, error) {
	folder, err := d.path(strings.TrimSuffix(prefix, "/"))
	if err != nil {
		return nil, err
	}
	var objects []Object
	err = filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), unfinished) {
			return ignore(err, fs.ErrNotExist)
		}
		info, err := entry.Info()
		if err != nil {
			return ignore(err, fs.ErrNotExist)
		}
		name, err := filepath.Rel(d.root, file)
		objects = append(objects, Object{Name: filepath.ToSlash(name), Size: info.Size()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", prefix, err)
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return objects, nil
}

// Delete implements Store.
func (d *Dir) Delete(_ context.Context, name string) error {
	target, err := d.path(name)
	if err == nil {
		err = ignore(os.Remove(target), fs.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	return nil
}

// path is where an object lies. A name that leads out of the directory is refused.
func (d *Dir) path(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("%q is not a name of an object", name)
	}
	return filepath.Join(d.root, filepath.FromSlash(name)), nil
}

func ignore(err, allowed error) error {
	if errors.Is(err, allowed) {
		return nil
	}
	return err
}
