package export

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/parquet-go/parquet-go"
)

// file is an open file of some size.
type file struct {
	io.ReadSeeker
	io.ReaderAt
	size int64
}

// errColumns means that a file has other columns than were written.
var errColumns = errors.New("it has other columns than were asked for")

// countParquet decodes every page of every column: a page that was changed has another checksum, and one that is cut off ends the
// reading. All columns must have the same number of rows.
func countParquet(f file, columns []string) (int64, error) {
	p, err := parquet.OpenFile(f.ReaderAt, f.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, err
	}
	var names []string
	for _, field := range p.Root().Columns() {
		names = append(names, field.Name())
	}
	if !slices.Equal(names, columns) {
		return 0, fmt.Errorf("%w: %v", errColumns, names)
	}
	var total int64
	for _, group := range p.RowGroups() {
		for i, chunk := range group.ColumnChunks() {
			rows, err := countPages(chunk)
			if err != nil {
				return 0, err
			}
			if rows != group.NumRows() {
				return 0, fmt.Errorf("column %d of a row group has %d rows, want %d", i, rows, group.NumRows())
			}
		}
		total += group.NumRows()
	}
	if total != p.NumRows() {
		return 0, fmt.Errorf("its row groups have %d rows, its footer says %d", total, p.NumRows())
	}
	return total, nil
}

func countPages(chunk parquet.ColumnChunk) (rows int64, err error) {
	pages := chunk.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return 0, err
		}
		rows += page.NumRows()
		parquet.Release(page)
	}
}

// countArrow reads every record batch, unpacking all of its columns.
func countArrow(f file, columns []string) (total int64, err error) {
	// The reader indexes what its footer says without looking: what is not such a file may make it panic.
	defer func() {
		if p := recover(); p != nil {
			total, err = 0, fmt.Errorf("it is not an Arrow file: %v", p)
		}
	}()
	r, err := ipc.NewFileReader(struct {
		io.ReadSeeker
		io.ReaderAt
	}{f.ReadSeeker, f.ReaderAt})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var names []string
	for _, field := range r.Schema().Fields() {
		names = append(names, field.Name)
	}
	if !slices.Equal(names, columns) {
		return 0, fmt.Errorf("%w: %v", errColumns, names)
	}
	for i := range r.NumRecords() {
		batch, err := r.RecordBatchAt(i)
		if err != nil {
			return 0, fmt.Errorf("reading record batch %d: %w", i, err)
		}
		total += batch.NumRows()
		batch.Release()
	}
	return total, nil
}

func countCSV(f file, columns []string) (int64, error) { return countLines(f.ReadSeeker, columns) }

func countGzippedCSV(f file, columns []string) (int64, error) {
	unzipped, err := gzip.NewReader(f.ReadSeeker)
	if err != nil {
		return 0, err
	}
	return countLines(unzipped, columns)
}

// countLines reads a header and lines of as many cells.
func countLines(r io.Reader, columns []string) (rows int64, err error) {
	lines := csv.NewReader(r)
	lines.ReuseRecord, lines.FieldsPerRecord = true, len(columns)
	header, err := lines.Read()
	if err != nil {
		return 0, fmt.Errorf("reading the header: %w", err)
	}
	if !slices.Equal(header, columns) {
		return 0, fmt.Errorf("%w: %v", errColumns, header)
	}
	for {
		_, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return 0, err
		}
		rows++
	}
}
