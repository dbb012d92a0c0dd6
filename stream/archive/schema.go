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

// WriteSchema keeps a descriptor set by which values can be read without this program, and returns its digest.
func WriteSchema(ctx context.Context, store Store, descriptors []byte) (digest string, err error) {
	sum := sha256.Sum256(descriptors)
	digest = hex.EncodeToString(sum[:])
	err = store.Create(ctx, path.Join(root, "schemas", digest+".binpb"), func(w io.Writer) error {
		_, err := w.Write(descriptors)
		return err
	})
	if err != nil && !errors.Is(err, ErrExists) {
		return "", fmt.Errorf("archiving the schema: %w", err)
	}
	return digest, nil
}
