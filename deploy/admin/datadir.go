package admin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// RunInfo is what a running instance writes into run.json in its data directory, for commands to find it.
type RunInfo struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Admin is the path of the unix socket that commands go through.
	Admin string `json:"admin"`
	// Addresses; empty where this process does not serve.
	Listen        string   `json:"listen,omitempty"`
	MetricsListen string   `json:"metricsListen,omitempty"`
	SQLListen     string   `json:"sqlListen,omitempty"`
	Engine        string   `json:"engine,omitempty"`
	Kafka         []string `json:"kafka,omitempty"`
	Redis         []string `json:"redis,omitempty"`
	Feeds         string   `json:"feeds,omitempty"`
}

// HeldError means that a running instance, or another command, has the data directory.
type HeldError struct{ Path string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("the data directory %s is held by another process: stop it, or use another --data-dir", e.Path)
}

// DataDir is a data directory that this process holds. The lock belongs to the open file, so that it ends with the
// process, however that ends.
type DataDir struct {
	path string
	lock *flock.Flock
	// killed means that the holder before had no time to clean up.
	killed bool
}

// Files of a data directory.
const (
	LockFile = "lock"
	RunFile  = "run.json"
)

// HoldDataDir creates the directory if need be and takes its lock; a *HeldError means that another process has it.
func HoldDataDir(path string) (*DataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	lock := flock.New(filepath.Join(path, LockFile), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	if !got {
		return nil, &HeldError{path}
	}
	d := &DataDir{path: path, lock: lock}
	_, err = os.Stat(d.Path(RunFile))
	d.killed = err == nil
	if err := d.forgetRun(); err != nil { // of an instance that was killed
		_ = lock.Unlock()
		return nil, err
	}
	return d, nil
}

// freeing is how long the memory of an instance that was killed may take to be freed. It holds its lock and its addresses
// meanwhile, and a supervisor starts the next one at once.
const freeing = 10 * time.Second

// AwaitDataDir is HoldDataDir, but waits for a holder that is dying, or is a command that will be over. One that answers
// is an instance at work: the *HeldError comes at once then.
func AwaitDataDir(ctx context.Context, path string) (*DataDir, error) {
	for deadline := time.Now().Add(freeing); ; {
		d, err := HoldDataDir(path)
		var held *HeldError
		if !errors.As(err, &held) || time.Now().After(deadline) || holderAnswers(ctx, held.Path) {
			return d, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// holderAnswers asks the holder of a data directory on its admin socket. The socket of a process that is being ended takes
// connections, as its lock holds, and answers nothing.
func holderAnswers(ctx context.Context, path string) bool {
	d := DataDir{path: path}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://marketlog/", nil)
	if err != nil {
		return false
	}
	transport := unixTransport(d.SocketPath())
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil
}

// AwaitAddresses waits until nobody listens on the addresses that an instance which was killed held; not longer than it may
// take to be freed. Whoever opens them records who listens after that.
func (d *DataDir) AwaitAddresses(ctx context.Context, addresses ...string) {
	if !d.killed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, freeing)
	defer cancel()
	for _, address := range addresses {
		for address != "" {
			listener, err := net.Listen("tcp", address)
			if err == nil {
				_ = listener.Close()
			}
			if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// Path joins elements to the directory's absolute path.
func (d *DataDir) Path(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// SocketPath is where the admin socket lies: in the directory, or, since the name of a unix socket may have 103 bytes
// only, in the directory for temporary files.
func (d *DataDir) SocketPath() string {
	path := d.Path("admin.sock")
	if len(path) > 103-len(".new") {
		sum := sha256.Sum256([]byte(d.path))
		path = filepath.Join(os.TempDir(), fmt.Sprintf("marketlog-%x.sock", sum[:10]))
	}
	return path
}

// Announce writes run.json, in one step.
func (d *DataDir) Announce(info RunInfo) error {
	content, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", RunFile, err)
	}
	temporary := d.Path(RunFile + ".new")
	if err := os.WriteFile(temporary, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", RunFile, err)
	}
	if err := os.Rename(temporary, d.Path(RunFile)); err != nil {
		return fmt.Errorf("writing %s: %w", RunFile, err)
	}
	return nil
}

func (d *DataDir) forgetRun() error {
	for _, path := range []string{d.Path(RunFile), d.SocketPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing files of an earlier instance: %w", err)
		}
	}
	return nil
}

// Release withdraws run.json and gives the lock back.
func (d *DataDir) Release() error {
	return errors.Join(d.forgetRun(), d.lock.Unlock())
}

// RunningInstance reports who holds the data directory; ok is false if nobody does, or if the holder is a command or an
// instance that has not announced itself yet.
func RunningInstance(path string) (info RunInfo, ok bool, err error) {
	if _, err := os.Stat(filepath.Join(path, LockFile)); errors.Is(err, fs.ErrNotExist) {
		return info, false, nil
	}
	lock := flock.New(filepath.Join(path, LockFile))
	// Shared, so that two commands that look at the same time do not take each other for an instance.
	free, err := lock.TryRLock()
	if err != nil {
		return info, false, fmt.Errorf("looking at the lock of the data directory: %w", err)
	}
	if free {
		return info, false, lock.Unlock()
	}
	content, err := os.ReadFile(filepath.Join(path, RunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return info, false, &HeldError{path}
	}
	if err == nil {
		err = json.Unmarshal(content, &info)
	}
	if err != nil {
		return info, false, fmt.Errorf("reading who holds the data directory: %w", err)
	}
	return info, true, nil
}
