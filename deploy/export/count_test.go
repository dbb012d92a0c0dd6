package export

import (
	"bytes"
	"context"
)

// Count reads a file of a format as it is read back.
func Count(format string, content []byte, columns []SchemaColumn) (int64, error) {
	f, err := FormatNamed(format)
	if err != nil {
		return 0, err
	}
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	r := bytes.NewReader(content)
	return f.count(file{ReadSeeker: r, ReaderAt: r, size: int64(len(content))}, names)
}

// Round lets a lake export what is due, once.
func Round(ctx context.Context, l *Lake) { l.round(ctx) }
