package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"
)

const (
	// headBytes are read when an object is opened: sidecars are smaller, so that each is one request.
	headBytes = 16 << 10
	// blockBytes are read at once. Columns of a row group are read side by side, so that a few blocks are in use.
	blockBytes = 1 << 20
	// maxBlocks bounds what one open object keeps in memory.
	maxBlocks = 8
)

// bucketReader reads an object of a bucket in blocks and keeps the newest of them. It is safe for concurrent use; one request
// runs at a time.
type bucketReader struct {
	// The interface io.ReaderAt has no context: that of Open ends the reading.
	ctx    context.Context //nolint:containedctx // see above
	bucket *Bucket
	name   string
	size   int64
	head   []byte

	mu     sync.Mutex
	blocks []block // most recently used last
}

type block struct {
	at      int64
	content []byte
}

// Open implements Store. What is read later is read within ctx.
func (b *Bucket) Open(ctx context.Context, name string) (Reader, error) {
	head, size, err := b.get(ctx, name, 0, headBytes)
	if err != nil {
		return nil, fmt.Errorf("opening %s of %s: %w", name, b, err)
	}
	return &bucketReader{ctx: ctx, bucket: b, name: name, size: size, head: head}, nil
}

// get reads up to n bytes of an object at a place before its end, and returns its size.
func (b *Bucket) get(ctx context.Context, name string, at, n int64) (content []byte, size int64, err error) {
	for attempt := 1; ; attempt++ { // what breaks off in an answer is not tried again by the library
		content, size, err = b.getOnce(ctx, name, at, n)
		if err == nil || attempt == readAttempts || !errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
			return content, size, err
		}
	}
}

func (b *Bucket) getOnce(ctx context.Context, name string, at, n int64) (content []byte, size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	options := minio.GetObjectOptions{}
	if err := options.SetRange(at, at+n-1); err != nil {
		return nil, 0, err
	}
	body, _, header, err := b.reads.GetObject(ctx, b.cfg.Bucket, b.cfg.Prefix+name, options)
	if minio.ToErrorResponse(err).StatusCode == http.StatusRequestedRangeNotSatisfiable && at == 0 {
		return nil, 0, nil // it is empty
	}
	if err != nil {
		return nil, 0, missing(err)
	}
	defer body.Close()
	if size, err = sizeOf(header, at); err != nil {
		return nil, 0, unavailable(err)
	}
	content = make([]byte, min(n, size-at))
	if _, err := io.ReadFull(body, content); err != nil {
		return nil, 0, unavailable(fmt.Errorf("reading bytes %d to %d: %w", at, at+n-1, broken(err)))
	}
	return content, size, nil
}

// broken is io.ErrUnexpectedEOF for whatever ends an answer early.
func broken(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
}

// sizeOf is the size of an object by the answer to a request for the bytes from at on.
func sizeOf(header http.Header, at int64) (int64, error) {
	content := header.Get("Content-Range")
	span, total, ok := strings.Cut(strings.TrimPrefix(content, "bytes "), "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil || !strings.HasPrefix(span, strconv.FormatInt(at, 10)+"-") || size <= at {
		return 0, fmt.Errorf("its answer to a request for bytes from %d on has the Content-Range %q", at, content)
	}
	return size, nil
}

// Size implements Reader.
func (r *bucketReader) Size() int64 { return r.size }

// Close implements Reader.
func (r *bucketReader) Close() error { return nil }

// ReadAt implements io.ReaderAt.
func (r *bucketReader) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("reading before the beginning")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(p) {
		if at+int64(n) >= r.size {
			return n, io.EOF
		}
		content, err := r.from(at + int64(n))
		if err != nil {
			return n, err
		}
		n += copy(p[n:], content)
	}
	return n, nil
}

// from is what is in memory from a place on, at least a byte.
func (r *bucketReader) from(at int64) ([]byte, error) {
	if at < int64(len(r.head)) {
		return r.head[at:], nil
	}
	begin := at - at%blockBytes
	i := slices.IndexFunc(r.blocks, func(b block) bool { return b.at == begin })
	if i < 0 {
		content, size, err := r.bucket.get(r.ctx, r.name, begin, blockBytes)
		if err == nil && size != r.size {
			err = unavailable(fmt.Errorf("it became %d bytes large while it was read, from %d", size, r.size))
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", r.name, r.bucket, err)
		}
		if len(r.blocks) == maxBlocks {
			r.blocks = slices.Delete(r.blocks, 0, 1)
		}
		r.blocks = append(r.blocks, block{begin, content})
		return content[at-begin:], nil
	}
	used := r.blocks[i]
	r.blocks = append(slices.Delete(r.blocks, i, i+1), used)
	return used.content[at-begin:], nil
}
