package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// library is what the tests download; noise is not compressed, so that the archive is as long.
var library = func() []byte {
	noise := make([]byte, 400_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	return noise
}()

// archiveOf is a package with the given files, as npm packs it.
func archiveOf(t *testing.T, files ...tar.Header) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	to := tar.NewWriter(zipped)
	for _, header := range files {
		content := library
		if header.Typeflag != tar.TypeReg || header.Name != member {
			content = nil
		}
		header.Size, header.Mode = int64(len(content)), 0o755
		if err := to.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func whole(t *testing.T) []byte {
	t.Helper()
	return archiveOf(t, tar.Header{Name: "package/package.json", Typeflag: tar.TypeReg}, tar.Header{Name: member, Typeflag: tar.TypeReg})
}

func pinOf(archive []byte) engine.Pin {
	digest := sha512.Sum512(archive)
	return engine.Pin{Package: "@chdb/lib-test", Version: "1.2.3", Integrity: "sha512-" + base64.StdEncoding.EncodeToString(digest[:])}
}

// registry serves an archive; the nth request is answered by the nth of its faults, later ones as it should be.
type registry struct {
	archive []byte
	faults  []http.HandlerFunc

	mu     sync.Mutex
	ranges []string // of the requests so far
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/npm/@chdb/lib-test/-/lib-test-1.2.3.tgz" {
		http.Error(w, "no such package", http.StatusNotFound)
		return
	}
	r.mu.Lock()
	n := len(r.ranges)
	r.ranges = append(r.ranges, request.Header.Get("Range"))
	r.mu.Unlock()
	if n < len(r.faults) && r.faults[n] != nil {
		r.faults[n](w, request)
		return
	}
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(r.archive))
}

func (r *registry) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ranges)
}

// breaksOff answers as it should, but ends the connection after n bytes.
func (r *registry) breaksOff(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		http.ServeContent(&cut{w, n}, request, "", time.Time{}, bytes.NewReader(r.archive))
	}
}

type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	n, _ := c.ResponseWriter.Write(p[:min(c.left, len(p))])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

// fetching is one registry and one place for the library.
type fetching struct {
	*registry
	server *httptest.Server
	pin    engine.Pin
	path   string
	opt    Options
}

func newFetching(t *testing.T, archive []byte) *fetching {
	f := &fetching{registry: &registry{archive: archive}, pin: pinOf(archive), path: filepath.Join(t.TempDir(), "libchdb-1.2.3", "libchdb.so")}
	f.server = httptest.NewServer(f.registry)
	t.Cleanup(f.server.Close)
	f.opt = Options{Registry: f.server.URL + "/npm/", pause: time.Millisecond}
	return f
}

func (f *fetching) part() string { return filepath.Join(filepath.Dir(f.path), "archive.tgz.part") }

// leaves is what an earlier call has left.
func (f *fetching) leaves(t *testing.T, part []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.path), 0o755), os.WriteFile(f.part(), part, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// succeeds fetches, and looks for the library and nothing else beside the lock.
func (f *fetching) succeeds(t *testing.T) {
	t.Helper()
	if fetched, err := Fetch(t.Context(), f.pin, f.path, f.opt); err != nil || !fetched {
		t.Fatalf("got %v, %v, want the library fetched", fetched, err)
	}
	got, err := os.ReadFile(f.path)
	if err != nil || !bytes.Equal(got, library) {
		t.Errorf("%d bytes, %v: not the library", len(got), err)
	}
	left, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil || len(left) != 2 {
		t.Errorf("left %v, %v, want the lock and the library", left, err)
	}
}

// fails fetches without success, and looks that there is no library.
func (f *fetching) fails(t *testing.T, want string) {
	t.Helper()
	fetched, err := Fetch(t.Context(), f.pin, f.path, f.opt)
	if err == nil || fetched || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, %v, want an error with %q", fetched, err, want)
	}
	for _, path := range []string{f.path, f.path + ".unpacking"} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
}

func TestWhatGoesWrongOnTheWay(t *testing.T) {
	archive := whole(t)
	size := len(archive)
	rest := func(n int) string { return fmt.Sprintf("bytes=%d-", n) }
	for _, c := range []struct {
		name     string
		left     []byte // by an earlier call
		faults   func(r *registry) []http.HandlerFunc
		requests []string
	}{
		{name: "nothing", requests: []string{""}},
		{
			name: "breaks off twice",
			faults: func(r *registry) []http.HandlerFunc {
				return []http.HandlerFunc{r.breaksOff(100_000), r.breaksOff(50_000)}
			},
			requests: []string{"", rest(100_000), rest(150_000)},
		},
		{name: "a call before was broken off", left: archive[:1000], requests: []string{rest(1000)}},
		{name: "a call before was ended before it unpacked", left: archive, requests: []string{rest(size)}},
		{name: "what a call before left is longer", left: append(slices.Clone(archive), 1), requests: []string{rest(size + 1), ""}},
		{name: "what a call before left is of something else", left: []byte("of another archive"), requests: []string{rest(18), ""}},
		{
			name: "ranges are not known", left: archive[:1000],
			faults: func(r *registry) []http.HandlerFunc {
				return []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(r.archive) }}
			},
			requests: []string{rest(1000)},
		},
		{
			name: "another range is sent", left: archive[:1000],
			faults: func(*registry) []http.HandlerFunc {
				return []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 5-%d/%d", size-1, size))
					w.WriteHeader(http.StatusPartialContent)
				}}
			},
			requests: []string{rest(1000), ""},
		},
		{
			name: "the server is busy",
			faults: func(*registry) []http.HandlerFunc {
				return []http.HandlerFunc{status(http.StatusServiceUnavailable), status(http.StatusTooManyRequests)}
			},
			requests: []string{"", "", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFetching(t, archive)
			if c.faults != nil {
				f.faults = c.faults(f.registry)
			}
			if c.left != nil {
				f.leaves(t, c.left)
			}
			var last Progress
			f.opt.Report = func(p Progress) {
				if p.Step == last.Step && p.Step == StepUnpack && p.Done < last.Done {
					t.Errorf("progress went from %v to %v", last, p)
				}
				last = p
			}
			f.succeeds(t)
			if got := f.requests(); !slices.Equal(got, c.requests) {
				t.Errorf("asked for %q, want %q", got, c.requests)
			}
			if want := (Progress{StepUnpack, int64(len(library)), int64(len(library))}); last != want {
				t.Errorf("the last progress is %v, want %v", last, want)
			}
			if fetched, err := Fetch(t.Context(), f.pin, f.path, f.opt); err != nil || fetched || len(f.requests()) != len(c.requests) {
				t.Errorf("a second call: got %v, %v after %d requests, want nothing done", fetched, err, len(f.requests()))
			}
		})
	}
}

func TestSilenceIsEnded(t *testing.T) {
	f := newFetching(t, whole(t))
	f.opt.stall = 2 * time.Second // the archive comes in pieces, between which a busy machine makes pauses
	f.faults = []http.HandlerFunc{func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(f.archive)))
		_, _ = w.Write(f.archive[:1000])
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
	}}
	f.succeeds(t)
	if got, want := f.requests(), []string{"", "bytes=1000-"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func TestAnotherArchiveIsNeverUnpacked(t *testing.T) {
	f := newFetching(t, whole(t))
	right := f.archive
	f.archive = slices.Clone(right)
	f.archive[len(right)/2] ^= 1
	f.fails(t, "is not the pinned archive: its SHA-512 is ")
	f.leaves(t, right[:1000]) // and the wrong rest is served, then the wrong whole
	f.fails(t, "is not the pinned archive: its SHA-512 is ")
	if got, want := f.requests(), []string{"", "bytes=1000-", ""}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	f.archive = right
	f.succeeds(t)
}

func TestWhatCannotBeDownloadedIsNamed(t *testing.T) {
	long := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(maxArchive+1))
	}
	for _, c := range []struct {
		name     string
		fault    http.HandlerFunc
		want     string
		requests int
	}{
		{"not there", status(http.StatusNotFound), "the registry answered 404 Not Found; name another with --registry or npm_config_registry", 1},
		{"not allowed", status(http.StatusForbidden), "403 Forbidden", 1},
		{"too long", long, "more than 1073741824", 1},
		{"always busy", status(http.StatusBadGateway), "502 Bad Gateway; the same command resumes it", 1 + mostFailures},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFetching(t, whole(t))
			f.faults = slices.Repeat([]http.HandlerFunc{c.fault}, 20)
			f.fails(t, c.want)
			if got := len(f.requests()); got != c.requests {
				t.Errorf("%d requests, want %d", got, c.requests)
			}
		})
	}
	t.Run("no server", func(t *testing.T) {
		f := newFetching(t, whole(t))
		f.server.Close()
		f.fails(t, "connection refused; the same command resumes it")
	})
}

func TestArchivesWithoutALibrary(t *testing.T) {
	for name, files := range map[string][]tar.Header{
		"it has no package/libchdb.so": {{Name: "package/package.json", Typeflag: tar.TypeReg}, {Name: "libchdb.so", Typeflag: tar.TypeReg}},
		"is not a file of at most":     {{Name: member, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
	} {
		t.Run(name, func(t *testing.T) { newFetching(t, archiveOf(t, files...)).fails(t, name) })
	}
	t.Run("no archive", func(t *testing.T) { newFetching(t, []byte("nothing")).fails(t, "unpacking ") })
	t.Run("no digest", func(t *testing.T) {
		f := newFetching(t, whole(t))
		f.pin.Integrity = "sha512-abc"
		f.fails(t, `the digest of @chdb/lib-test is "sha512-abc"`)
	})
}

func TestTwoAtOnceDownloadOnce(t *testing.T) {
	f := newFetching(t, whole(t))
	second := make(chan struct{})
	f.faults = []http.HandlerFunc{func(w http.ResponseWriter, request *http.Request) {
		<-second
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(f.archive))
	}}
	var once sync.Once
	f.opt.Report = func(p Progress) {
		if p.Step == StepWait {
			once.Do(func() { close(second) })
		}
	}
	results := make(chan bool, 2)
	for range 2 {
		go func() {
			fetched, err := Fetch(t.Context(), f.pin, f.path, f.opt)
			if err != nil {
				t.Error(err)
			}
			results <- fetched
		}()
	}
	if first, other := <-results, <-results; first == other {
		t.Errorf("both say fetched=%v", first)
	}
	if got := f.requests(); len(got) != 1 {
		t.Errorf("%d requests, want 1", len(got))
	}
}

func TestAnEndedCallIsResumed(t *testing.T) {
	f := newFetching(t, whole(t))
	f.faults = []http.HandlerFunc{func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(f.archive)))
		_, _ = w.Write(f.archive[:100_000])
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	f.opt.Report = func(p Progress) {
		if p.Done == 100_000 {
			cancel()
		}
	}
	if _, err := Fetch(ctx, f.pin, f.path, f.opt); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the end of the context", err)
	}
	f.succeeds(t)
	if got, want := f.requests(), []string{"", "bytes=100000-"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}
