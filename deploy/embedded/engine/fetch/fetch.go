// Package fetch downloads the library of the embedded engine, once, from a registry of npm packages, without npm.
//
// What it promises: the library is complete and of the archive whose SHA-512 is pinned in the program, or it is not there; a
// download that broke off is resumed, also by a later call; of two calls at once, in one process or several, one downloads and
// the other waits for it; nothing it reads is longer than its bounds.
package fetch

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// DefaultRegistry is npm's own.
const DefaultRegistry = "https://registry.npmjs.org"

// Bounds in bytes. The pinned archive has 180 MB, its library 570 MB.
const (
	maxArchive = 1 << 30
	maxLibrary = 2 << 30
)

// member is the library's name in the archive.
const member = "package/libchdb.so"

// Steps of a fetch.
const (
	StepWait     = "waiting for another download"
	StepDownload = "downloading the ClickHouse engine"
	StepUnpack   = "unpacking the ClickHouse engine"
)

// Progress is how far a fetch has come.
type Progress struct {
	Step string
	// Done and Total are bytes; a Total of 0 is not known.
	Done, Total int64
}

// Options are what a fetch may be asked.
type Options struct {
	// Registry is the address of a registry of npm packages; empty: DefaultRegistry.
	Registry string
	// Report is called from the goroutine of Fetch at each piece of some 32 kB; nil: nobody wants to know.
	Report func(Progress)

	pause, stall time.Duration // of tests; 0: firstPause, longestStall
}

// Fetch puts the library of the pin to path, and returns whether it was not there before. A library that is there is left alone
// and not read. It ends with ctx; what was downloaded until then is kept for the next call.
func Fetch(ctx context.Context, pin engine.Pin, path string, opt Options) (fetched bool, err error) {
	if isFile(path) {
		return false, nil
	}
	want, err := digestOf(pin)
	if err != nil {
		return false, err
	}
	if opt.Report == nil {
		opt.Report = func(Progress) {}
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return false, fmt.Errorf("creating the folder of the engine's library: %w", err)
	}
	lock := flock.New(filepath.Join(folder, "lock"))
	got, err := lock.TryLock()
	if err == nil && !got {
		opt.Report(Progress{Step: StepWait})
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return false, fmt.Errorf("waiting for the lock of %s: %w", folder, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if isFile(path) { // by whoever held the lock
		return false, nil
	}
	archive, err := os.OpenFile(filepath.Join(folder, "archive.tgz.part"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return false, fmt.Errorf("opening the file to download into: %w", err)
	}
	defer archive.Close()
	if err := verified(ctx, archive, address(pin, opt.Registry), want, opt); err != nil {
		return false, err
	}
	if err := unpack(ctx, archive, path, opt.Report); err != nil {
		return false, fmt.Errorf("unpacking %s: %w", archive.Name(), err)
	}
	if err := os.Remove(archive.Name()); err != nil {
		return false, fmt.Errorf("removing the archive of the engine's library: %w", err)
	}
	return true, nil
}

func isFile(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && stat.Mode().IsRegular()
}

func digestOf(pin engine.Pin) ([]byte, error) {
	text, ok := strings.CutPrefix(pin.Integrity, "sha512-")
	digest, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(digest) != sha512.Size {
		return nil, fmt.Errorf("the digest of %s is %q, not sha512- and 64 bytes in base64", pin.Package, pin.Integrity)
	}
	return digest, nil
}

// address is where registries serve the archive of a package: the name after its scope begins that of the file.
func address(pin engine.Pin, registry string) string {
	if registry == "" {
		registry = DefaultRegistry
	}
	name := pin.Package[strings.LastIndexByte(pin.Package, '/')+1:]
	return strings.TrimRight(registry, "/") + "/" + pin.Package + "/-/" + name + "-" + pin.Version + ".tgz"
}

// verified downloads the archive and compares its digest. What an earlier call left may be of something else, so after bytes
// of two answers it is downloaded once more, from the beginning.
func verified(ctx context.Context, archive *os.File, address string, want []byte, opt Options) error {
	d := &download{client: http.DefaultClient, address: address, to: archive, report: opt.Report, pause: opt.pause, stall: opt.stall}
	for again := false; ; again = true {
		if err := d.run(ctx); err != nil {
			return err
		}
		digest := sha512.New()
		if _, err := archive.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(digest, archive); err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		got := digest.Sum(nil)
		if string(got) == string(want) {
			return nil
		}
		if err := archive.Truncate(0); err != nil {
			return fmt.Errorf("dropping what was downloaded: %w", err)
		}
		if again || !d.pieced {
			return fmt.Errorf("what %s serves is not the pinned archive: its SHA-512 is %x, want %x; name another registry with --registry", address, got, want)
		}
	}
}

// unpack writes the library beside path and renames it: what is at path is complete.
func unpack(ctx context.Context, archive *os.File, path string, report func(Progress)) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(unzipped, maxLibrary+maxLibrary/4))
	header, err := files.Next()
	for ; err == nil && header.Name != member; header, err = files.Next() {
	}
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it has no %s", member)
	case err != nil:
		return err
	case header.Typeflag != tar.TypeReg || header.Size > maxLibrary:
		return fmt.Errorf("its %s is not a file of at most %d bytes", member, maxLibrary)
	}
	scratch := path + ".unpacking"
	to, err := os.OpenFile(scratch, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, &counted{ctx, files, Progress{StepUnpack, 0, header.Size}, report})
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(scratch, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(scratch))
	}
	return nil
}

// counted reports what is read, and ends with ctx.
type counted struct {
	ctx    context.Context
	from   io.Reader
	at     Progress
	report func(Progress)
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(p)
	c.at.Done += int64(n)
	c.report(c.at)
	return n, err
}
