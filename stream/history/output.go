package history

import (
	"context"
	"io"
)

// Output streams what a SELECT puts out in the format that it names, to be closed by the caller. The statement is trusted: it runs
// with all rights. A reader that comes to io.EOF has all of the output; one that is broken off gets another error, and what it
// has read before is worthless. Memory is flat in the length of the output.
func (s *Store) Output(ctx context.Context, statement string) (io.ReadCloser, error) {
	return s.send(ctx, statement, nil)
}
