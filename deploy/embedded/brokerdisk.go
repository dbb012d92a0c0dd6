package embedded

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/twmb/franz-go/pkg/kfake"
)

// The broker writes through these interfaces. It has them for its own tests and does not export the option that sets
// them, so the option is linked to by its name. They must have the methods of kfake's fs and file, no more and no fewer:
// TestBrokerWritesThroughItsDisk fails if an upgrade changes them. See docs/decisions/0030.
type (
	brokerFS interface {
		OpenFile(name string, flag int, perm os.FileMode) (brokerFile, error)
		Rename(oldpath, newpath string) error
		Remove(name string) error
		RemoveAll(path string) error
		MkdirAll(path string, perm os.FileMode) error
		ReadDir(name string) ([]os.DirEntry, error)
		ReadFile(name string) ([]byte, error)
		Stat(name string) (os.FileInfo, error)
	}
	brokerFile interface {
		io.Writer
		io.Reader
		io.Closer
		Seek(offset int64, whence int) (int64, error)
		Truncate(size int64) error
		Sync() error
	}
)

//go:linkname withFS github.com/twmb/franz-go/pkg/kfake.withFS
func withFS(brokerFS) kfake.Opt

// writable reports whether a file can be made in dir. The call through the interface has a second purpose: the linker drops
// methods that no interface call names, and the broker's own call of OpenFile names another type of file.
//
//go:noinline
func writable(fsys brokerFS, dir string) error {
	name := filepath.Join(dir, "probe.tmp")
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), fsys.Remove(name))
}

const (
	// heldPause is how long a held append waits before it is tried again.
	heldPause = 200 * time.Millisecond
	// warnInterval is how often the log says that the broker is held.
	warnInterval = time.Minute
)

// brokerDisk is what the broker keeps its log on. An append that fails is cut back and tried again until it succeeds,
// and the broker, which does everything in one goroutine, does nothing else meanwhile. For kfake itself would answer with
// an error that ends an idempotent producer's batch, remember the batch's sequence as written all the same, and take the
// batch after it: the log would have a gap that no producer fills. And it would leave the torn piece of a state log in
// place and go on after it, where its next start does not look.
type brokerDisk struct {
	log *slog.Logger
	// write, open and sync are those of os, but for tests; syncDir flushes which files a directory has.
	write   func(*os.File, []byte) (int, error)
	open    func(name string, flag int, perm os.FileMode) (*os.File, error)
	sync    func(*os.File) error
	syncDir func(dir string) error
	// durable means that what is appended survives a power failure: then so do the names of new files.
	durable bool

	// closing is closed when appends are not waited for any more.
	closing chan struct{}
	once    sync.Once

	mu sync.Mutex
	// checked are segments by name as prepare has read them: the broker reads them again at once.
	checked      map[string][]byte
	checkedBytes int
	// partitions are by directory.
	partitions map[string]*partitionState
	held       error
	// failed means that an append was given up, after which none may succeed.
	failed bool
	warned time.Time
}

func newBrokerDisk(log *slog.Logger) *brokerDisk {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &brokerDisk{log: log, write: (*os.File).Write, open: os.OpenFile, sync: (*os.File).Sync, syncDir: syncDir,
		closing: make(chan struct{}), partitions: map[string]*partitionState{}}
}

// prepare makes what is in dir readable before the broker reads it, and returns what is damaged and not settled. Without
// it the broker would cut a segment off at the first wrong byte, and take a missing one for none.
func (d *brokerDisk) prepare(dir string) ([]Damage, error) {
	if err := mendState(dir, d.log); err != nil {
		return nil, err
	}
	damages, err := readDamages(dir)
	if err != nil {
		return nil, err
	}
	found, partitions, err := checkPartitions(dir, true, d.keep)
	if err != nil {
		return nil, err
	}
	d.partitions = partitions
	if len(found) == 0 {
		return damages, nil
	}
	for _, f := range found {
		d.log.Error("the log is damaged", "topic", f.Topic, "partition", f.Partition, "file", f.File, "what", f.String())
	}
	damages = append(damages, found...)
	return damages, writeDamages(dir, damages)
}

// mostChecked is how much of what prepare reads is kept until the broker reads it, in bytes.
const mostChecked = 512 << 20

// keep holds a segment for the broker's own reading: read twice, the log took a good part of a start after a kill.
func (d *brokerDisk) keep(name string, raw []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.checkedBytes+len(raw) > mostChecked {
		return
	}
	if d.checked == nil {
		d.checked = map[string][]byte{}
	}
	d.checked[name] = raw
	d.checkedBytes += len(raw)
}

// loaded means that the broker has read its log: what was kept for that may go.
func (d *brokerDisk) loaded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checked, d.checkedBytes = nil, 0
}

// begin notes that a segment is written to from now on, and seals the one before.
func (d *brokerDisk) begin(name string, base int64) {
	dir := filepath.Dir(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.partitions[dir]
	if p == nil {
		p = &partitionState{manifest: manifest{Active: -1}}
		d.partitions[dir] = p
	}
	if p.manifest.Active == base {
		return
	}
	if p.manifest.Active >= 0 {
		p.manifest.Sealed = append(p.manifest.Sealed, p.active)
	}
	p.manifest.Active, p.active = base, sealed{Base: base}
	d.note(dir, p)
}

// wrote counts what was appended to the segment that is written to.
func (d *brokerDisk) wrote(name string, b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.partitions[filepath.Dir(name)]; p != nil {
		p.active.add(b)
	}
}

// forget takes a segment out of its manifest before it is removed: one that is listed and missing is damage.
func (d *brokerDisk) forget(name string, base int64) {
	dir := filepath.Dir(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.partitions[dir]
	if p == nil {
		return
	}
	p.manifest.Sealed = slices.DeleteFunc(p.manifest.Sealed, func(s sealed) bool { return s.Base == base })
	if p.manifest.Active == base {
		p.manifest.Active, p.active = -1, sealed{}
	}
	d.note(dir, p)
}

func (d *brokerDisk) note(dir string, p *partitionState) {
	if err := p.manifest.write(dir); err != nil {
		d.log.Warn("damage of this partition may go undetected until its next segment", "error", err)
	}
}

// release gives up appends that fail from now on.
func (d *brokerDisk) release() { d.once.Do(func() { close(d.closing) }) }

// holding is why the broker has stopped; nil: it does not.
func (d *brokerDisk) holding() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// errGivenUp answers appends after one that was given up when the broker was closed.
var errGivenUp = errors.New("an earlier append was given up")

// insist does what an append needs until it succeeds or the disk is released.
func (d *brokerDisk) retry(do func() error) error {
	d.mu.Lock()
	failed := d.failed
	d.mu.Unlock()
	if failed {
		return errGivenUp
	}
	for held := false; ; held = true {
		err := do()
		d.mu.Lock()
		if err == nil {
			d.held = nil
			d.mu.Unlock()
			if held {
				d.log.Info("broker resumed: pending writes completed")
			}
			return nil
		}
		d.held = err
		warn := time.Since(d.warned) >= warnInterval
		if warn {
			d.warned = time.Now()
		}
		d.mu.Unlock()
		if warn {
			d.log.Error("broker paused until it can write", "error", err)
		}
		select {
		case <-d.closing:
			d.mu.Lock()
			d.failed = true
			d.mu.Unlock()
			return err
		case <-time.After(heldPause):
		}
	}
}

// OpenFile opens a file. One that is appended to is waited for, as an append is.
func (d *brokerDisk) OpenFile(name string, flag int, perm os.FileMode) (brokerFile, error) {
	if flag&os.O_APPEND == 0 {
		return d.open(name, flag, perm)
	}
	f := &appended{disk: d, name: name}
	err := d.retry(func() (err error) {
		if f.File, err = d.open(name, flag, perm); err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.File.Close())
		}
		f.size = info.Size()
		if d.durable && f.size == 0 {
			if err := d.syncDir(filepath.Dir(name)); err != nil {
				return errors.Join(err, f.File.Close())
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if base, ok := segmentBase(name); ok {
		f.segment = true
		d.begin(name, base)
	}
	return f, nil
}

// MkdirAll makes the directory of a partition that is about to be appended to.
func (d *brokerDisk) MkdirAll(path string, perm os.FileMode) error {
	return d.retry(func() error {
		if err := os.MkdirAll(path, perm); err != nil || !d.durable {
			return err
		}
		return d.syncDir(filepath.Dir(path))
	})
}

// syncDir flushes the names in a directory: without it a power failure takes new files away, whatever was flushed of them.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("flushing a directory of the log: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("flushing a directory of the log: %w", err)
	}
	return nil
}

// ReadFile gives a segment that prepare has read as that was, once.
func (d *brokerDisk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	raw, ok := d.checked[name]
	delete(d.checked, name)
	d.mu.Unlock()
	if ok {
		return raw, nil
	}
	return os.ReadFile(name)
}

// Rename, ReadDir and Stat are those of os.
func (d *brokerDisk) Rename(oldpath, newpath string) error       { return os.Rename(oldpath, newpath) }
func (d *brokerDisk) ReadDir(name string) ([]os.DirEntry, error) { return os.ReadDir(name) }
func (d *brokerDisk) Stat(name string) (os.FileInfo, error)      { return os.Stat(name) }

// Remove removes a file, a segment not before its manifest knows.
func (d *brokerDisk) Remove(name string) error {
	if base, ok := segmentBase(name); ok {
		d.forget(name, base)
	}
	return os.Remove(name)
}

// RemoveAll removes the directory of a partition.
func (d *brokerDisk) RemoveAll(path string) error {
	d.mu.Lock()
	delete(d.partitions, filepath.Clean(path))
	d.mu.Unlock()
	return os.RemoveAll(path)
}

// appended is a file that is only ever appended to. It is used by the broker's one goroutine.
type appended struct {
	*os.File
	disk *brokerDisk
	name string
	size int64
	torn bool
	// segment means that what is appended is batches.
	segment bool
}

// Write appends all of b or, once the disk is released, nothing.
func (f *appended) Write(b []byte) (int, error) {
	err := f.disk.retry(func() error {
		if err := f.mend(); err != nil {
			return err
		}
		if _, err := f.disk.write(f.File, b); err != nil {
			f.torn = true
			return errors.Join(fmt.Errorf("appending %d bytes: %w", len(b), err), f.mend())
		}
		f.size += int64(len(b))
		return nil
	})
	if err != nil {
		return 0, err
	}
	if f.segment {
		f.disk.wrote(f.name, b)
	}
	return len(b), nil
}

// Sync flushes the file. The broker acknowledges a batch whatever comes of it, and asked again the system answers that all is
// well, since it forgets the pages that it could not write: so after a flush that failed the broker stops until it is
// stopped. The next start reads what the disk has.
func (f *appended) Sync() error {
	err := f.disk.sync(f.File)
	if err == nil {
		return nil
	}
	return f.disk.retry(func() error { return fmt.Errorf("flushing %s: %w; restart when the disk is well", f.name, err) })
}

// mend cuts off what a failed append left.
func (f *appended) mend() error {
	if !f.torn {
		return nil
	}
	if err := f.File.Truncate(f.size); err != nil {
		return fmt.Errorf("cutting back a failed append: %w", err)
	}
	f.torn = false
	return nil
}

// Truncate is the broker's own way to cut back.
func (f *appended) Truncate(size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	f.size = size
	return nil
}
