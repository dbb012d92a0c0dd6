package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
)

// WriteSchema keeps a descriptor set by which values can be read without this program, and returns its digest. An error is also
// that the store would let an object take the place of one that exists, as some servers of buckets do, which know no conditions:
// a second archiver would do harm then.
func WriteSchema(ctx context.Context, store Store, descriptors []byte) (digest string, err error) {
	sum := sha256.Sum256(descriptors)
	digest = hex.EncodeToString(sum[:])
	for range 2 {
		err = store.Create(ctx, path.Join(root, "schemas", digest+".binpb"), func(w io.Writer) error {
			_, err := w.Write(descriptors)
			return err
		})
		if errors.Is(err, ErrExists) {
			return digest, nil
		}
		if err != nil {
			return "", fmt.Errorf("archiving the schema: %w", err)
		}
	}
	return "", errors.New("archiving the schema: the store let an object take the place of one that exists: " +
		"its server ignores If-None-Match; use one that honours it")
}
