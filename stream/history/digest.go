package history

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
)

// Digest is the SHA-256 of a table's rows, in the order of its key and after replacing, in
// ClickHouse's RowBinary format: two tables have the same rows if and only if they have the same
// digest. Where is a condition on the rows, empty for all of them.
func (s *Store) Digest(ctx context.Context, table, where string) (digest [sha256.Size]byte, err error) {
	var key string
	if err := s.conn.QueryRow(ctx, "SELECT sorting_key FROM system.tables WHERE database = ? AND name = ?", s.cfg.Database, table).Scan(&key); err != nil {
		return digest, fmt.Errorf("reading the key of %s: %w", table, Unavailable(err))
	}
	if where != "" {
		where = " WHERE " + where
	}
	rows, err := s.send(ctx, "SELECT * FROM "+table+" FINAL"+where+" ORDER BY "+key+" FORMAT RowBinary", nil)
	if err != nil {
		return digest, fmt.Errorf("reading %s: %w", table, err)
	}
	defer rows.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, rows); err != nil {
		return digest, fmt.Errorf("reading %s: %w", table, err)
	}
	hash.Sum(digest[:0])
	return digest, nil
}
