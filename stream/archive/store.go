package archive

import (
	"context"
	"errors"
	"io"

	"github.com/marketlog/marketlog/stream"
)

// Object is what a listing holds of an object.
type Object struct {
	Name string
	Size int64 // bytes
}

// Reader reads an object at any place.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Store keeps objects by names of letters, digits, dots, hyphens and slashes. Its methods are safe for concurrent use.
type Store interface {
	// Create writes an object that does not exist yet, whole or not at all; it is kept for good when Create returns. An error
	// that is ErrExists means that an object has the name, which may be the one of this call where something between tried it
	// twice. After one that is ErrUnavailable the object may exist, or appear later; after any other one it may exist or not.
	Create(ctx context.Context, name string, write func(io.Writer) error) error
	// Open opens an object; an error is ErrMissing where there is none. It is read within ctx.
	Open(ctx context.Context, name string) (Reader, error)
	// List returns the objects whose names begin with a prefix that ends in a slash, sorted by name.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object. It is not an error if there is none.
	Delete(ctx context.Context, name string) error
}

// Errors of a Store.
var (
	ErrExists  = errors.New("an object of this name exists")
	ErrMissing = errors.New("no object has this name")
	// ErrUnavailable means that a store could not be asked, or its answer did not arrive: it reports nothing about any object. It is a
	// stream.ErrUnavailable too.
	ErrUnavailable error = unavailableError{}
)

type unavailableError struct{}

func (unavailableError) Error() string { return "the store of the archive is not available" }
func (unavailableError) Unwrap() error { return stream.ErrUnavailable }

// errTooLarge means that an object is larger than what it should be can be.
var errTooLarge = errors.New("it is larger than it can be")

// read returns an object that is at most limit bytes large.
func read(ctx context.Context, store Store, name string, limit int64) ([]byte, error) {
	object, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer object.Close()
	if object.Size() > limit {
		return nil, errTooLarge
	}
	content := make([]byte, object.Size())
	_, err = object.ReadAt(content, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return content, err
}
