package deploy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		t.Errorf("held by one who has not said where it listens: got %v", err)
	}
	want := RunInfo{PID: 7, Admin: dir.socketPath(), Kafka: []string{"127.0.0.1:1"}}
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
	for name, content := range map[string]string{lockFile: "", runFile: `{"pid":1}`} {
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
	if _, err := os.Stat(dir.Path(runFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old run.json is still there: %v", err)
	}
}

func TestLongPathsHaveASocketToo(t *testing.T) {
	dir, err := HoldDataDir(filepath.Join(t.TempDir(), strings.Repeat("deep/", 30)))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Release()
	listener, err := listenPrivately(dir.socketPath())
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}
