//go:build linux || darwin

package sqlport

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
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
)

// errNoSandbox means that this kernel cannot confine a process.
var errNoSandbox = errors.New("this system has no Landlock")

// childOptions are what the server tells the child.
type childOptions struct {
	Library string // of the engine
	Tables  string // the folder of the owner's tables
	Dir     string // the child's own folder
	// Memory bounds what the engine may allocate, DataLimit what the operating system lets the process have, in bytes.
	Memory, DataLimit int64
	Limits            engine.Limits
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
	if err := os.Chdir(o.Dir); err != nil {
		return fmt.Errorf("going to the child's folder: %w", err)
	}
	file := os.NewFile(controlFD, "control")
	control, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("taking the control socket: %w", err)
	}
	_ = file.Close()
	e, err := engine.Open(o.Dir, engine.Options{Library: o.Library, Connections: 2, Memory: o.Memory})
	if err != nil {
		return err
	}
	mux, err := childHandler(e, o, confined)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	// It ends when the server is gone, and with it whoever could read an answer: statements that still run end with the process.
	_ = server.Serve(listener{control.(*net.UnixConn)})
	return nil
}

// childHandler answers the server: /hello, /catalog with what to show, /people and /operator with statements.
func childHandler(e *engine.Engine, o childOptions, confined string) (http.Handler, error) {
	people, err := engine.Handler(e, o.Limits, o.Hidden...)
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
	mux.Handle("/people/", http.StripPrefix("/people", people))
	mux.Handle("/operator/", http.StripPrefix("/operator", operator))
	return mux, nil
}
