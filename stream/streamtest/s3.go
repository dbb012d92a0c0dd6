package streamtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// S3Key and S3Secret open every server of buckets that tests start.
const (
	S3Key    = "marketlog"
	S3Secret = "marketlog-secret" //nolint:gosec // of a server on loopback that lives as long as a test
	S3Region = "eu-central-1"
)

// S3Process is a server of buckets: the Versity S3 gateway over a folder, whose folders are the buckets and whose files the
// objects. Its methods must not be called concurrently.
type S3Process struct {
	server
	folder string
}

// S3 returns the server of the package, where its TestMain uses Share, else one of t alone. Take a bucket from NewBucket, since
// the package's tests share the server.
func S3(t testing.TB) *S3Process {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.on {
		return StartS3(t)
	}
	if shared.buckets == nil {
		program := findS3(t)
		folder, err := os.MkdirTemp("", "s3")
		if err != nil {
			t.Fatal(err)
		}
		if shared.buckets, err = startS3(program, folder); err != nil {
			t.Fatal(err)
		}
	}
	InTier(t, TierBucket)
	return shared.buckets
}

// StartS3 starts a server for t alone, to be killed, paused and restarted at will.
func StartS3(t testing.TB) *S3Process {
	t.Helper()
	s3, err := startS3(findS3(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s3.kill)
	return s3
}

func startS3(program, folder string) (*S3Process, error) {
	buckets, attributes := filepath.Join(folder, "buckets"), filepath.Join(folder, "attributes")
	for _, made := range []string{buckets, attributes} {
		if err := os.Mkdir(made, 0o700); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		addr := "127.0.0.1:" + strconv.Itoa(ports[0])
		s3 := &S3Process{folder: buckets, server: server{
			command: []string{
				program, "--port", addr, "--access", S3Key, "--secret", S3Secret, "--region", S3Region, "--health", "/health", "--keep-alive", "--quiet",
				// Not every file system has attributes of files.
				"posix", "--sidecar", attributes, buckets,
			},
			logPath: filepath.Join(folder, "s3.log"), addr: addr, answers: s3Answers,
		}}
		if err = s3.start(); err == nil {
			return s3, nil
		}
		s3.kill()
		if attempt == 3 || !errors.Is(err, errExited) {
			return nil, fmt.Errorf("starting the S3 server: %w\n%s", err, s3.logTail())
		}
	}
}

// Addr returns HOST:PORT.
func (s *S3Process) Addr() string { return s.addr }

// NewBucket makes a bucket of t alone, and returns its name and the folder where its objects lie as files.
func (s *S3Process) NewBucket(t testing.TB) (name, folder string) {
	t.Helper()
	folder, err := os.MkdirTemp(s.folder, "bucket-")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Base(folder), folder
}

func s3Answers(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/health", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the S3 server: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the S3 server answers %s", answer.Status)
	}
	return nil
}

// findS3 finds the server that tools/s3 pins and builds, and skips t (under CI: fails it) where it is missing.
func findS3(t testing.TB) string {
	t.Helper()
	InTier(t, TierBucket)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("finding the cache folder: %v", err)
	}
	pinned, err := os.ReadFile(filepath.Join(root(t), "tools", "s3", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "marketlog", fmt.Sprintf("s3-%.6x", sha256.Sum256(pinned)), "versitygw")
	if _, err := os.Stat(program); err != nil {
		Missing(t, TierBucket, "no server of buckets; tools/s3/fetch.sh builds it")
	}
	return program
}

// root is the folder of this module, above that of the test.
func root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("there is no go.mod above the test")
		}
	}
}
