package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/stream/history/native"
)

// Insert writes rows of one table. After an error some may be kept: inserted again they leave the same rows under FINAL. An error that is not
// stream.ErrUnavailable will come again. Suffix names a shadow table of a replay; it is empty for the live one.
func (s *Store) Insert(ctx context.Context, r native.Rows, suffix string) error {
	if r.Len() == 0 {
		return nil
	}
	var names []string
	for _, c := range r.Columns() {
		names = append(names, "`"+c.Name+"`")
	}
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	body, err := s.send(ctx, "INSERT INTO "+r.Table()+suffix+" ("+strings.Join(names, ", ")+") FORMAT Native", native.Block(r))
	if err != nil {
		return fmt.Errorf("inserting %d rows into %s: %w", r.Len(), r.Table()+suffix, err)
	}
	return body.Close()
}

// insertTimeout is when an insert counts as lost: a large one takes a tenth of a second.
const insertTimeout = time.Minute
