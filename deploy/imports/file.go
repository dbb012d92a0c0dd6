package imports

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxLine bounds a line. A kline has some 150 bytes.
	maxLine = 4096
	// maxBytes bounds a file, and what a zip file unpacks to: a year of minutes of a thousand markets in CSV is 50 GB, of one 60 MB.
	maxBytes = 8 << 30
	// gzipRatio is how many times its size a file of trades unpacks to, about.
	gzipRatio = 6
	// maxEntries bounds a zip file's table of contents, which is read into memory.
	maxEntries = 16
)

// digest is a SHA-256.
type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// opened is a file to import. It is used by one goroutine.
type opened struct {
	path, name string
	file       *os.File
	size       int64
	sha256     digest
	// unpacked is the length of the text.
	unpacked int64
}

// open opens a file, hashes it and compares the hash with that of the file NAME.CHECKSUM beside it, if there is one. The caller closes
// it.
func open(ctx context.Context, path string) (*opened, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening it: %w", err)
	}
	o := &opened{path: path, name: filepath.Base(path), file: f}
	if err := o.look(ctx); err != nil {
		_ = f.Close()
		return nil, err
	}
	return o, nil
}

func (o *opened) look(ctx context.Context) error {
	info, err := o.file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("measuring it: %w", err)
	case !info.Mode().IsRegular():
		return errors.New("it is not a file: name the files themselves, such as DIR/*.zip")
	case info.Size() > maxBytes:
		return fmt.Errorf("it has %d bytes, and %d are read at most: split it", info.Size(), int64(maxBytes))
	}
	o.size, o.unpacked = info.Size(), info.Size()
	if o.sha256, err = o.hash(ctx); err != nil {
		return err
	}
	return o.compareChecksum()
}

// hash reads the file to its end.
func (o *opened) hash(ctx context.Context) (sum digest, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, &ended{ctx, io.NewSectionReader(o.file, 0, maxBytes)}); err != nil {
		return sum, fmt.Errorf("reading it: %w", err)
	}
	return digest(h.Sum(nil)), nil
}

// compareChecksum compares the hash with the one that the file was published with, as sha256sum writes it.
func (o *opened) compareChecksum() error {
	content, err := os.ReadFile(o.path + ".CHECKSUM")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading its checksum: %w", err)
	}
	want, _, _ := strings.Cut(strings.TrimSpace(string(content)), " ")
	if !strings.EqualFold(want, o.sha256.String()) {
		return fmt.Errorf("its SHA-256 is %s, and %s.CHECKSUM says %.64q: download it again", o.sha256, o.name, want)
	}
	return nil
}

func (o *opened) Close() error { return o.file.Close() }

// text opens the lines, of a zip file those of the one file in it.
func (o *opened) text() (io.ReadCloser, error) {
	var magic [4]byte
	if _, err := o.file.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	switch string(magic[:2]) {
	case "PK":
	case "\x1f\x8b":
		return o.gunzipped()
	default:
		return io.NopCloser(io.NewSectionReader(o.file, 0, o.size)), nil
	}
	if err := o.fewEntries(); err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(o.file, o.size)
	if err != nil {
		return nil, fmt.Errorf("opening the zip file: %w", err)
	}
	if len(archive.File) != 1 {
		return nil, fmt.Errorf("the zip file holds %d files and not one: unpack it, and import the .csv files", len(archive.File))
	}
	entry := archive.File[0]
	if entry.UncompressedSize64 > maxBytes {
		return nil, fmt.Errorf("the zip file unpacks to %d bytes, and %d are read at most", entry.UncompressedSize64, int64(maxBytes))
	}
	o.unpacked = int64(entry.UncompressedSize64)
	text, err := entry.Open() // it fails where more comes than was announced, or another checksum
	if err != nil {
		return nil, fmt.Errorf("opening %.100q in the zip file: %w", entry.Name, err)
	}
	return text, nil
}

// gunzipped is the text of a gzip file.
func (o *opened) gunzipped() (io.ReadCloser, error) {
	text, err := gzip.NewReader(bufio.NewReaderSize(io.NewSectionReader(o.file, 0, o.size), 64<<10))
	if err != nil {
		return nil, fmt.Errorf("opening the gzip file: %w", err)
	}
	o.unpacked = gzipRatio * o.size // what it unpacks to is in none of its first bytes, and is for the progress alone
	return struct {
		io.Reader
		io.Closer
	}{&bounded{text, maxBytes}, text}, nil
}

// bounded fails where more than left bytes come.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d bytes: split it", int64(maxBytes))
	}
	return n, err
}

// fewEntries looks at the end of a zip file before its table of contents is read.
func (o *opened) fewEntries() error {
	tail := make([]byte, min(o.size, 22+65535)) // the record of the end, and the longest comment
	if _, err := o.file.ReadAt(tail, o.size-int64(len(tail))); err != nil {
		return fmt.Errorf("reading the end of the zip file: %w", err)
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || len(tail) < at+12 {
		return errors.New("the zip file has no end: download it again")
	}
	if n := int(tail[at+10]) | int(tail[at+11])<<8; n > maxEntries {
		return fmt.Errorf("the zip file holds %d files and not one: unpack it, and import the .csv files", n)
	}
	return nil
}

// lines hands every line that is not empty to visit, by its number from 1 on, as its fields and as it is; done is how many bytes of
// the text were read. An error of visit ends it.
func (o *opened) lines(ctx context.Context, visit func(number uint64, fields []string, line string, done int64) error) error {
	text, err := o.text()
	if err != nil {
		return err
	}
	defer text.Close()
	counted := &counted{r: &ended{ctx, text}}
	scanner := bufio.NewScanner(bufio.NewReaderSize(counted, 64<<10))
	scanner.Buffer(nil, maxLine)
	number := uint64(0)
	for scanner.Scan() {
		number++
		line := scanner.Text()
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if line == "" {
			continue
		}
		if err := visit(number, fieldsOf(line), line, counted.n); err != nil {
			return err
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d has more than %d bytes: it is not a CSV of candles or trades", number+1, maxLine)
	case err != nil:
		return fmt.Errorf("reading line %d: %w", number+1, err)
	}
	return nil
}

// fieldsOf parts a line at its commas. A field in quotation marks may hold some; one that does not end them is taken as it is, so
// that it spoils no line but its own.
func fieldsOf(line string) []string {
	if strings.IndexByte(line, '"') < 0 {
		return strings.Split(line, ",")
	}
	r := csv.NewReader(strings.NewReader(line))
	fields, err := r.Read()
	if err != nil {
		return strings.Split(line, ",")
	}
	return fields
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ended ends reading with a context.
type ended struct {
	ctx context.Context
	r   io.Reader
}

func (e *ended) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}
