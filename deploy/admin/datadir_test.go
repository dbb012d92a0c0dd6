package admin

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOneProcessHoldsTheDataDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if _, ok, err := RunningInstance(path); ok || err != nil {
		t.Fatalf("before: got %v, %v, want nobody", ok, err)
	}
	dir, err := HoldDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := HoldDataDir(path); !errors.As(err, &held) {
		t.Errorf("holding twice: got %v", err)
	}
	if _, _, err := RunningInstance(path); !errors.As(err, &held) {
		t.Errorf("held by one that has not published where it listens: got %v", err)
	}
	want := RunInfo{PID: 7, Admin: dir.SocketPath(), Kafka: []string{"127.0.0.1:1"}}
	if err := dir.Announce(want); err != nil {
		t.Fatal(err)
	}
	info, ok, err := RunningInstance(path)
	if err != nil || !ok || info.PID != 7 || info.Kafka[0] != "127.0.0.1:1" {
		t.Errorf("announced: got %+v, %v, %v", info, ok, err)
	}
	if err := dir.Release(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := RunningInstance(path); ok || err != nil {
		t.Errorf("after: got %v, %v, want nobody", ok, err)
	}
}

// A killed instance leaves run.json; nobody may believe it.
func TestStaleRunFileIsNotBelieved(t *testing.T) {
	path := t.TempDir()
	for name, content := range map[string]string{LockFile: "", RunFile: `{"pid":1}`} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := RunningInstance(path); ok || err != nil {
		t.Errorf("got %v, %v, want nobody", ok, err)
	}
	dir, err := HoldDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Release()
	if _, err := os.Stat(dir.Path(RunFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old run.json is still there: %v", err)
	}
}

// The lock of a process that was killed holds until its memory is freed; the socket takes connections then and answers nothing.
func TestADyingHolderIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	dying, err := HoldDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	mute, err := listenPrivately(dying.SocketPath())
	if err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := dying.Announce(RunInfo{PID: 7}); err != nil {
		t.Fatal(err)
	}
	go func() { // it is asked before it is gone
		if conn, err := mute.Accept(); err == nil {
			defer conn.Close()
		}
		_ = dying.lock.Unlock()
		_ = busy.Close()
	}()
	next, err := AwaitDataDir(t.Context(), path)
	if err != nil {
		t.Fatalf("behind a process that dies: %v", err)
	}
	defer next.Release()
	next.AwaitAddresses(t.Context(), busy.Addr().String())
	listener, err := net.Listen("tcp", busy.Addr().String())
	if err != nil {
		t.Fatalf("the address of one that died: %v", err)
	}
	_ = listener.Close()
}

// An instance that answers is not waited for, and neither are the addresses of anybody else.
func TestALivingHolderIsRefusedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	dir, err := HoldDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Release()
	listener, err := listenPrivately(dir.SocketPath())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	began := time.Now()
	var held *HeldError
	if _, err := AwaitDataDir(t.Context(), path); !errors.As(err, &held) {
		t.Errorf("got %v, want that it is held", err)
	}
	dir.AwaitAddresses(t.Context(), listenOn(t))
	if took := time.Since(began); took > freeing/2 {
		t.Errorf("it took %v", took)
	}
}

// listenOn is an address that is taken until the test ends.
func listenOn(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestLongPathsHaveASocketToo(t *testing.T) {
	dir, err := HoldDataDir(filepath.Join(t.TempDir(), strings.Repeat("deep/", 30)))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Release()
	listener, err := listenPrivately(dir.SocketPath())
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}
