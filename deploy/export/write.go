package export

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
)

// partial ends the name of a file that is being written: the manifest's, and underway's, which is beside the manifest whatever file
// it becomes. Who reads a directory of files meets none that is not whole.
const (
	partial  = ".partial"
	underway = "file" + partial
)

// lookEvery is after how many bytes of a file the disk is looked at again.
const lookEvery = 8 << 20

// written is what a file has come to.
type writtenFile struct {
	rows, bytes int64
	sha256      string
}

// writeFile writes what comes out of rows to a path, reads it back, and gives the file its name once it has want rows. What an
// earlier attempt left is overwritten.
func (x *Exporter) writeFile(ctx context.Context, dir *os.Root, to string, rows io.Reader, f Format, columns []string, want int64, report func(bytes int64)) (writtenFile, error) {
	if err := dir.MkdirAll(path.Dir(to), 0o755); err != nil {
		return writtenFile{}, err
	}
	out, err := dir.OpenFile(underway, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return writtenFile{}, err
	}
	w := &meteredWriter{ctx: ctx, out: out, hash: sha256.New(), lacks: func() (int64, error) { return x.Disk.Lacks(dir.Name()) }, report: report}
	err = pour(w, rows, f.gzip)
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		_ = dir.Remove(underway) // it would only take room
		return writtenFile{}, fmt.Errorf("writing %s: %w", to, err)
	}
	got, err := readBack(dir, underway, f, columns)
	if err != nil {
		return writtenFile{}, fmt.Errorf("reading %s back: %w", to, err)
	}
	if sum := hex.EncodeToString(w.hash.Sum(nil)); got.sha256 != sum || got.bytes != w.bytes {
		return writtenFile{}, fmt.Errorf("reading %s back: the disk has %d bytes with SHA-256 %s, written were %d with %s", to, got.bytes, got.sha256, w.bytes, sum)
	}
	if got.rows != want {
		return writtenFile{}, &rowsError{path: to, got: got.rows, want: want}
	}
	return got, commit(dir, underway, to)
}

// rowsError means that a file has another number of rows than the tables had before it was written.
type rowsError struct {
	path      string
	got, want int64
}

func (e *rowsError) Error() string {
	return fmt.Sprintf("%s has %d rows, the tables had %d: rows of its time are still being written", e.path, e.got, e.want)
}

func pour(w io.Writer, rows io.Reader, zip bool) error {
	if !zip {
		_, err := io.Copy(w, rows)
		return err
	}
	zipped := gzip.NewWriter(w)
	if _, err := io.Copy(zipped, rows); err != nil {
		return err
	}
	return zipped.Close()
}

// meteredWriter hashes what is written, and ends the writing when the disk lacks room or the work is ended.
type meteredWriter struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	out    io.Writer
	hash   hash.Hash
	lacks  func() (int64, error)
	report func(bytes int64)

	bytes, looked int64
}

func (w *meteredWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if w.bytes-w.looked >= lookEvery {
		w.looked = w.bytes
		if err := room(w.lacks); err != nil {
			return 0, err
		}
	}
	n, err := w.out.Write(p)
	w.hash.Write(p[:n]) // never fails
	w.bytes += int64(n)
	w.report(w.bytes)
	return n, err
}

// room fails where a disk has less free than ingest needs to go on.
func room(lacks func() (int64, error)) error {
	missing, err := lacks()
	if err == nil && missing > 0 {
		err = fmt.Errorf("the disk lacks %d bytes that are kept free for the log; free some, or export to another disk; the export then continues where it stopped", missing)
	}
	return err
}

// readBack reads a file whole, once for its hash and once for its rows.
func readBack(dir *os.Root, from string, f Format, columns []string) (got writtenFile, err error) {
	in, err := dir.Open(from)
	if err != nil {
		return got, err
	}
	defer in.Close()
	if got.sha256, got.bytes, err = hashOf(in); err != nil {
		return got, err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return got, err
	}
	got.rows, err = f.count(file{ReadSeeker: in, ReaderAt: in, size: got.bytes}, columns)
	return got, err
}

func hashOf(r io.Reader) (sum string, bytes int64, err error) {
	h := sha256.New()
	bytes, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), bytes, err
}

// commit gives a flushed file its name, so that it has it after a power failure too.
func commit(dir *os.Root, from, to string) error {
	if err := dir.Rename(from, to); err != nil {
		return err
	}
	for name := path.Dir(to); ; name = path.Dir(name) { // each may have been made for the file
		folder, err := dir.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(folder.Sync(), folder.Close()); err != nil || name == "." {
			return err
		}
	}
}

// holds reports whether the file of an entry is on the disk as it was entered.
func holds(dir *os.Root, e Entry) bool {
	in, err := dir.Open(e.Path)
	if err != nil {
		return false
	}
	defer in.Close()
	if stat, err := in.Stat(); err != nil || stat.Size() != e.Bytes {
		return false
	}
	sum, _, err := hashOf(in)
	return err == nil && sum == e.SHA256
}
