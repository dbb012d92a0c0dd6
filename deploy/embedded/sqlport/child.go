//go:build linux || darwin

package sqlport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

const (
	// childVariable holds, in the environment of a child, its options.
	childVariable = "MARKETLOG_SQL_CHILD"
	// confinedVariable says that the child is confined already, and how.
	confinedVariable = "MARKETLOG_SQL_CONFINED"
	// controlFD is where the child finds its control socket.
	controlFD = 3
	// niceness gives a statement a tenth of the processor time that a thread of the server gets, where both want it.
	niceness = 10
	// columnCache is what the child holds of columns uncompressed. What is asked again, as dashboards do, need not be read from files
	// and decompressed again; each reading opens the file of a part.
	columnCache = 64 << 20
	// allocatorOptions are those of the engine's allocator, jemalloc. The limit of the operating system counts address space that
	// is mapped, not memory that is used: what statements gave back must be unmapped, or a few long answers that are broken off in
	// a row reach the limit with a third of it in use. Unmapping sooner than jemalloc does by itself makes each statement map again
	// what the one before it gave back.
	allocatorOptions = "JE_MALLOC_CONF=retain:false"
)

// errNoSandbox means that this kernel cannot confine a process.
var errNoSandbox = errors.New("this system has no Landlock")

// childOptions are what the server passes to the child.
type childOptions struct {
	Library string // of the engine
	Tables  string // the folder of the owner's tables
	Dir     string // the child's own folder
	// Memory bounds what the engine may allocate, DataLimit what the operating system lets the process have, in bytes.
	Memory, DataLimit int64
	Limits, Known     engine.Limits
	Hidden            []string
}

// RunIfChild serves statements and never returns if this process was started for that, and returns at once otherwise. It
// must be the first thing that a program which serves SQL does.
func RunIfChild() {
	text, ok := os.LookupEnv(childVariable)
	if !ok {
		return
	}
	if err := runChild(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// own is what the child calls its own folder, dir, and keeps open as a file of that number. The engine shows readers paths: where
// the system has such a name, they reveal nothing of where this installation lies.
func own(dir string) (string, error) {
	folder, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("opening the child's folder: %w", err)
	}
	name := fmt.Sprintf("/proc/self/fd/%d", folder)
	if _, err := os.Stat(name); err != nil {
		return dir, syscall.Close(folder)
	}
	return name, nil
}

func runChild(text string) error {
	var o childOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("reading the options: %w", err)
	}
	confined := os.Getenv(confinedVariable)
	if confined == "" {
		if err := confine(o); !errors.Is(err, errNoSandbox) {
			return err
		}
		confined = "none"
	}
	// The server ends this process; an interrupt from the terminal is for the server.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	dir, err := own(o.Dir)
	if err != nil {
		return err
	}
	// The engine resolves the path of a file of a table, and each folder of it, whenever it opens one: it is as short as can be.
	if err := os.Chdir(o.Tables); err != nil {
		return fmt.Errorf("going to the tables: %w", err)
	}
	file := os.NewFile(controlFD, "control")
	control, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("taking the control socket: %w", err)
	}
	_ = file.Close()
	// Each statement holds a thread, one that is ended another, and requests beside them a few.
	reserveThreads(2*o.Limits.Statements + 8)
	e, err := engine.Open(dir, engine.Options{Library: o.Library, Connections: 2, Memory: o.Memory, Cache: columnCache})
	if err != nil {
		return err
	}
	mux, err := childHandler(e, o, confined)
	if err != nil {
		return err
	}
	yield() // from here on; a start that had to wait would take long where the processors are busy
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	// It ends when the server is gone, and with it whoever could read an answer: statements that still run end with the process.
	_ = server.Serve(listener{control.(*net.UnixConn)})
	return nil
}

// reserveThreads makes the Go runtime have n threads, which it keeps. It ends the process if it cannot start one when it needs
// one, and a thread's stack counts as memory: without a reserve, that is what happens when statements use all memory there is.
func reserveThreads(n int) {
	var started, ended sync.WaitGroup
	started.Add(n)
	for range n {
		ended.Go(func() {
			runtime.LockOSThread() // so that no other of these runs on this thread
			defer runtime.UnlockOSThread()
			started.Done()
			started.Wait()
		})
	}
	ended.Wait()
}

// childHandler answers the server: /hello, /catalog with what to show, /people, /known and /operator with statements, and /stop which
// ends one of them.
func childHandler(e *engine.Engine, o childOptions, confined string) (http.Handler, error) {
	people, err := engine.Handler(e, o.Limits, o.Hidden...)
	if err != nil {
		return nil, err
	}
	known, err := engine.Handler(e, o.Known, o.Hidden...)
	if err != nil {
		return nil, err
	}
	operator, err := engine.Handler(e, o.Limits)
	if err != nil {
		return nil, err
	}
	m := mirror{engine: e, made: map[string]object{}}
	var mu sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, confined) })
	mux.HandleFunc("POST /catalog", func(w http.ResponseWriter, r *http.Request) {
		var want []object
		if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if err := m.apply(want); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	running := &statements{stop: map[string]context.CancelFunc{}}
	mux.HandleFunc("POST /stop/{id}", running.end)
	mux.Handle("/people/", http.StripPrefix("/people", running.follow(people)))
	mux.Handle("/known/", http.StripPrefix("/known", running.follow(known)))
	mux.Handle("/operator/", http.StripPrefix("/operator", running.follow(operator)))
	return mux, nil
}

// statementHeader names, between the server and its child, the statement of a request.
const statementHeader = "X-Marketlog-Statement"

// statements are those that a child runs, by the names that the server gave them.
type statements struct {
	mu   sync.Mutex
	stop map[string]context.CancelFunc
}

// follow makes the statements that next runs ones that end can stop.
func (s *statements) follow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		id := r.Header.Get(statementHeader)
		s.mu.Lock()
		s.stop[id] = cancel
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.stop, id)
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// end asks a statement to end. One that has not begun yet is asked again: see asked.stopAfter.
func (s *statements) end(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.stop[r.PathValue("id")]; ok {
		cancel()
	}
}
