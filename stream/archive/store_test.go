package archive_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestMain(m *testing.M) { os.Exit(streamtest.Share(m).Run()) }

// opener makes an empty store, and returns the folder where its objects lie as files.
type opener func(t *testing.T) (archive.Store, string)

// eachStore runs a test on every kind of store: what an archive promises does not depend on where it is.
func eachStore(t *testing.T, test func(t *testing.T, open opener)) {
	t.Run("directory", func(t *testing.T) {
		test(t, func(t *testing.T) (archive.Store, string) { return dir(t) })
	})
	t.Run("bucket", func(t *testing.T) {
		test(t, func(t *testing.T) (archive.Store, string) {
			server := streamtest.S3(t)
			name, folder := server.NewBucket(t)
			return bucket(t, "http://"+server.Addr(), name), filepath.Join(folder, "some", "prefix")
		})
	})
}

func dir(t *testing.T) (*archive.Dir, string) {
	t.Helper()
	root := t.TempDir()
	return archive.NewDir(root), root
}

func bucket(t *testing.T, endpoint, name string) *archive.Bucket {
	t.Helper()
	store, err := archive.NewBucket(archive.BucketConfig{
		Endpoint: endpoint, Bucket: name, Prefix: "some/prefix", Region: streamtest.S3Region, AccessKey: streamtest.S3Key, SecretKey: streamtest.S3Secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func create(t *testing.T, store archive.Store, name string, content []byte) error {
	t.Helper()
	return store.Create(t.Context(), name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func content(t *testing.T, store archive.Store, name string) []byte {
	t.Helper()
	object, err := store.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	all, err := io.ReadAll(io.NewSectionReader(object, 0, object.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStoreKeepsObjects(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _ := open(t)
		if objects, err := store.List(t.Context(), "v1/"); err != nil || len(objects) > 0 {
			t.Errorf("an empty store has %v, %v", objects, err)
		}
		if _, err := store.Open(t.Context(), "v1/a/none.json"); !errors.Is(err, archive.ErrMissing) {
			t.Errorf("opening what is not there: %v", err)
		}
		for _, name := range []string{"v1/b/2.json", "v1/a/1.json", "v1/a/1.json-not.parquet", "v1/a-b/1.json", "v1/b/10.json"} {
			if err := create(t, store, name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := create(t, store, "v1/a/1.json", []byte("another")); !errors.Is(err, archive.ErrExists) {
			t.Errorf("creating what exists: %v", err)
		}
		if got := content(t, store, "v1/a/1.json"); string(got) != "v1/a/1.json" {
			t.Errorf("it became %q", got)
		}
		list := func(prefix string) (names []string) {
			objects, err := store.List(t.Context(), prefix)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				if o.Size != int64(len(o.Name)) {
					t.Errorf("%s is %d bytes large", o.Name, o.Size)
				}
				names = append(names, o.Name)
			}
			return names
		}
		if got := strings.Join(list("v1/"), " "); got != "v1/a-b/1.json v1/a/1.json v1/a/1.json-not.parquet v1/b/10.json v1/b/2.json" {
			t.Errorf("it lists %s", got)
		}
		if got := strings.Join(list("v1/a/"), " "); got != "v1/a/1.json v1/a/1.json-not.parquet" {
			t.Errorf("of a it lists %s", got)
		}
		for range 2 {
			if err := store.Delete(t.Context(), "v1/b/2.json"); err != nil {
				t.Errorf("deleting: %v", err)
			}
		}
		if got := strings.Join(list("v1/b/"), " "); got != "v1/b/10.json" {
			t.Errorf("without what was deleted it lists %s", got)
		}
		if err := create(t, store, "v1/empty", nil); err != nil || len(content(t, store, "v1/empty")) > 0 {
			t.Errorf("an empty object: %v", err)
		}
	})
}

func TestWhatFailsToBeWrittenIsNotThere(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _ := open(t)
		failed := errors.New("failed")
		err := store.Create(t.Context(), "v1/x", func(w io.Writer) error {
			_, err := w.Write(make([]byte, 3<<20))
			return errors.Join(err, failed)
		})
		if !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
		if objects, err := store.List(t.Context(), "v1/"); err != nil || len(objects) > 0 {
			t.Errorf("it leaves %v, %v", objects, err)
		}
	})
}

// TestOneOfManyCreates lets many create one object at the same time: one does, and it stays what that one wrote.
func TestOneOfManyCreates(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _ := open(t)
		const writers = 8
		var created [writers]error
		var group sync.WaitGroup
		for i := range writers {
			group.Go(func() {
				created[i] = create(t, store, "v1/x", bytes.Repeat([]byte{byte(i)}, 100_000))
			})
		}
		group.Wait()
		winner := slices.Index(created[:], nil)
		for i, err := range created {
			if i != winner && !errors.Is(err, archive.ErrExists) {
				t.Errorf("writer %d: %v", i, err)
			}
		}
		if winner < 0 {
			t.Fatal("none wrote it")
		}
		if got := content(t, store, "v1/x"); !bytes.Equal(got, bytes.Repeat([]byte{byte(winner)}, 100_000)) {
			t.Errorf("%d wrote it, and it has %d bytes of %d", winner, len(got), got[0])
		}
	})
}

// TestAnyRangeIsRead reads an object of more than a bucket's reader keeps in memory, in any order and size.
func TestAnyRangeIsRead(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _ := open(t)
		r := streamtest.Rand(t)
		want := make([]byte, 10<<20+r.IntN(1<<20))
		for i := range want {
			want[i] = byte(r.Uint32())
		}
		if err := create(t, store, "v1/x", want); err != nil {
			t.Fatal(err)
		}
		object, err := store.Open(t.Context(), "v1/x")
		if err != nil {
			t.Fatal(err)
		}
		defer object.Close()
		if object.Size() != int64(len(want)) {
			t.Fatalf("its size is %d, want %d", object.Size(), len(want))
		}
		for range 100 {
			at := r.IntN(len(want) + 10)
			got := make([]byte, 1+r.IntN(1<<r.IntN(22)))
			n, err := object.ReadAt(got, int64(at))
			wanted := want[min(at, len(want)):min(at+len(got), len(want))]
			if !bytes.Equal(got[:n], wanted) || (err != nil) != (n < len(got)) || err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%d bytes at %d of %d are %d, %v", len(got), at, len(want), n, err)
			}
		}
	})
}

// overwriting is a store that lets an object take the place of another, as a server does that knows no conditions.
type overwriting struct{ archive.Store }

func (o overwriting) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	return cmp.Or(o.Delete(ctx, name), o.Store.Create(ctx, name, write))
}

func TestAStoreWithoutConditionsIsRefused(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _ := open(t)
		for range 2 {
			if digest, err := archive.WriteSchema(t.Context(), store, []byte("a set")); err != nil || len(digest) != 64 {
				t.Errorf("got %q, %v", digest, err)
			}
		}
	})
	store, _ := dir(t)
	_, err := archive.WriteSchema(t.Context(), overwriting{store}, []byte("a set"))
	if err == nil || !strings.Contains(err.Error(), "If-None-Match") {
		t.Errorf("got %v", err)
	}
}
