package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// BucketConfig names a bucket of an S3-compatible server.
type BucketConfig struct {
	// Endpoint is the server's URL; https encrypts the connection.
	Endpoint string
	// Bucket exists already.
	Bucket string
	// Prefix begins the names of all objects, before a slash; empty: the bucket is the archive's alone.
	Prefix string
	// Region is what requests are signed for; empty: what the server reports.
	Region string
	// AccessKey and SecretKey sign requests; empty: AWS_ACCESS_KEY_ID and its companions, the file of shared credentials, or the
	// role of the machine, in this order.
	AccessKey, SecretKey string
	// Timeout bounds one request; 0: a minute.
	Timeout time.Duration
}

const (
	requestTimeout = time.Minute
	// readAttempts is how often what only reads or deletes is tried before it has failed.
	readAttempts = 4
	// maxObject bounds an object that is created: it is in memory until it is sent. A segment's values are a few MiB.
	maxObject = 256 << 20
)

// Bucket is a Store in a bucket of an S3-compatible server that honours If-None-Match (Amazon S3 since August 2024). Several
// processes may use it at the same time. It holds nothing that would have to be closed.
type Bucket struct {
	cfg BucketConfig
	// writes tries once: an attempt after one whose answer was lost would find the object that this one made.
	reads, writes *minio.Core
}

// NewBucket is a store in a bucket, which is not asked yet.
func NewBucket(cfg BucketConfig) (*Bucket, error) {
	if cfg.Prefix = strings.Trim(cfg.Prefix, "/"); cfg.Prefix != "" {
		cfg.Prefix += "/"
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, requestTimeout)
	endpoint, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", cfg.Bucket, err)
	}
	transport, err := minio.DefaultTransport(endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", cfg.Bucket, err)
	}
	transport.ResponseHeaderTimeout = cfg.Timeout
	keys := credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, "")
	if cfg.AccessKey == "" {
		keys = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
	}
	b := &Bucket{cfg: cfg}
	for _, client := range []struct {
		attempts int
		as       **minio.Core
	}{{readAttempts, &b.reads}, {1, &b.writes}} {
		*client.as, err = minio.NewCore(endpoint.Host, &minio.Options{
			Creds: keys, Secure: endpoint.Scheme == "https", Region: cfg.Region, Transport: transport, MaxRetries: client.attempts,
		})
		if err != nil {
			return nil, fmt.Errorf("opening bucket %s: %w", cfg.Bucket, err)
		}
	}
	return b, nil
}

// String is where the bucket is, without what opens it.
func (b *Bucket) String() string {
	return fmt.Sprintf("bucket %s at %s", strings.TrimSuffix(b.cfg.Bucket+"/"+b.cfg.Prefix, "/"), b.cfg.Endpoint)
}

// Create implements Store by one conditional request. What is written is in memory until then.
func (b *Bucket) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	content := &bounded{}
	if err := cmp.Or(write(content), ctx.Err()); err != nil {
		return fmt.Errorf("archiving %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	options := minio.PutObjectOptions{
		SendContentMd5: true, DisableMultipart: true, ContentType: "application/octet-stream",
		// The library signs content in chunks, and of none it sends a last chunk with a length of 0, which the server may then take for
		// the connection's next request. Its MD5 is signed nonetheless.
		DisableContentSha256: content.Len() == 0,
	}
	options.SetMatchETagExcept("*")
	_, err := b.writes.Client.PutObject(ctx, b.cfg.Bucket, b.cfg.Prefix+name, bytes.NewReader(content.Bytes()), int64(content.Len()), options)
	if err != nil {
		return fmt.Errorf("archiving %s in %s: %w", name, b, failure(err))
	}
	return nil
}

// bounded is a buffer of an object.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxObject {
		return 0, fmt.Errorf("it is larger than %d bytes", maxObject)
	}
	return b.Buffer.Write(p)
}

// List implements Store.
func (b *Bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	// Each page is a request, and of a large archive there are many.
	ctx, cancel := context.WithTimeout(ctx, listPages*b.cfg.Timeout)
	defer cancel()
	var objects []Object
	for o := range b.reads.ListObjectsIter(ctx, b.cfg.Bucket, minio.ListObjectsOptions{Prefix: b.cfg.Prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, fmt.Errorf("listing %s of %s: %w", prefix, b, unavailable(o.Err))
		}
		objects = append(objects, Object{Name: strings.TrimPrefix(o.Key, b.cfg.Prefix), Size: o.Size})
	}
	if ctx.Err() != nil { // the listing may have ended for that
		return nil, fmt.Errorf("listing %s of %s: %w", prefix, b, unavailable(ctx.Err()))
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return objects, nil
}

// listPages is how many of the slowest requests a listing may take.
const listPages = 5

// Delete implements Store.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	err := b.reads.RemoveObject(ctx, b.cfg.Bucket, b.cfg.Prefix+name, minio.RemoveObjectOptions{})
	if err = ignore(missing(err), ErrMissing); err != nil {
		return fmt.Errorf("deleting %s from %s: %w", name, b, err)
	}
	return nil
}

// failure is what the failure of a request that creates an object means. Only a server's own refusal says that nothing was
// created: behind a proxy that answers for it, or a connection that broke, it may still do so.
func failure(err error) error {
	switch code := minio.ToErrorResponse(err).StatusCode; code {
	case http.StatusPreconditionFailed:
		return ErrExists
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge:
		return err
	}
	return unavailable(err)
}

// missing is what the failure of a request that reads an object, or deletes it, means.
func missing(err error) error {
	switch {
	case err == nil:
		return nil
	case minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return ErrMissing
	}
	return unavailable(err)
}

func unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
