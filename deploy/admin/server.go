package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Command is one thing that a command can ask of an instance: of the running one through its admin socket, else of the
// parts that the command itself opened.
type Command struct {
	// Name is the command's, with a dot before the sub-command: "keys.create".
	Name string
	// Long work belongs to the instance: whoever started it may leave, come back and cancel it. One job of a name runs
	// at a time.
	Long bool
	// Run reads its input and emits any number of lines; each must encode to JSON. It ends soon after ctx does. Since
	// kill -9 ends it anywhere, long work resumes by itself when started again.
	Run func(ctx context.Context, input json.RawMessage, emit func(line any) error) error
}

// do runs c. Long work that was cancelled, or whose instance stops, returns Ended, whatever the part that was interrupted
// returned: each says so in its own words, and the engine's or a broker's may not be told from a failure.
func (c Command) do(ctx context.Context, input json.RawMessage, emit func(line any) error) error {
	err := c.Run(ctx, input, emit)
	if err != nil && c.Long && ctx.Err() != nil {
		return c.Ended()
	}
	return err
}

// Ended is the end of long work that was cancelled, or whose instance stops. It is context.Canceled.
func (c Command) Ended() error { return endedError(c.Name) }

type endedError string

func (e endedError) Error() string {
	return fmt.Sprintf("the %s is ended; given again, it continues where it stopped", string(e))
}

func (endedError) Is(target error) bool { return target == context.Canceled }

// Verbs are the verbs of an instance, by name.
type Verbs map[string]Command

// NewVerbs indexes verbs.
func NewVerbs(verbs ...Command) Verbs {
	byName := make(Verbs, len(verbs))
	for _, v := range verbs {
		byName[v.Name] = v
	}
	return byName
}

// Reply is one line of the answer to a call. The last line has End or Error; an answer without such a line was cut off.
type Reply struct {
	Line  json.RawMessage `json:"line,omitempty"`
	Error string          `json:"error,omitempty"`
	End   bool            `json:"end,omitempty"`
}

// Server answers commands on a unix socket that only this user may open. POST /verbs/NAME calls a short verb;
// POST, GET and DELETE /jobs/NAME start, attach to and cancel a long one.
type Server struct {
	Verbs Verbs
	Log   *slog.Logger
	// Sql serves the operator's statements; nil where there is no engine.
	Sql func() http.Handler

	mu   sync.Mutex
	jobs map[string]*Job
}

// Serve answers on the socket until ctx ends; then jobs are cancelled and waited for.
func (s *Server) Serve(ctx context.Context, path string) error {
	listener, err := listenPrivately(path)
	if err != nil {
		return fmt.Errorf("opening the admin socket: %w", err)
	}
	jobs, cancelJobs := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelJobs()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verbs/{name}", s.call)
	mux.HandleFunc("POST /jobs/{name}", func(w http.ResponseWriter, r *http.Request) { s.start(jobs, w, r) })
	mux.HandleFunc("GET /jobs/{name}", s.attach)
	mux.HandleFunc("DELETE /jobs/{name}", s.cancel)
	mux.HandleFunc("/sql/", func(w http.ResponseWriter, r *http.Request) {
		handler := s.Sql()
		if handler == nil {
			http.Error(w, "this instance serves no SQL; start it with --sql-listen HOST:PORT", http.StatusNotFound)
			return
		}
		http.StripPrefix("/sql", handler).ServeHTTP(w, r)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		cancelJobs()
		s.wait()
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(shutdown) != nil {
			_ = server.Close()
		}
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the admin socket: %w", err)
	}
	<-stopped
	return nil
}

// listenPrivately opens a socket that nobody else may connect to, at no moment: it is made under another name and
// renamed once it has its permissions.
func listenPrivately(path string) (net.Listener, error) {
	temporary := path + ".new"
	_ = os.Remove(temporary)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temporary, 0o600), os.Rename(temporary, path)); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

func (s *Server) verb(w http.ResponseWriter, r *http.Request, long bool) (v Command, input json.RawMessage, ok bool) {
	v, ok = s.Verbs[r.PathValue("name")]
	if !ok || v.Long != long {
		http.Error(w, fmt.Sprintf("this instance cannot %q", r.PathValue("name")), http.StatusNotFound)
		return v, nil, false
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&input); err != nil {
			http.Error(w, "reading the input: "+err.Error(), http.StatusBadRequest)
			return v, nil, false
		}
	}
	return v, input, true
}

func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	v, input, ok := s.verb(w, r, false)
	if !ok {
		return
	}
	send := sender(w)
	err := v.do(r.Context(), input, func(line any) error {
		encoded, err := json.Marshal(line)
		if err != nil {
			return fmt.Errorf("encoding a line: %w", err)
		}
		return send(Reply{Line: encoded})
	})
	_ = send(ending(err))
}

// Begin starts long work of the instance's own accord, once a person's of the same name has ended. The work ends with ctx.
func (s *Server) Begin(ctx context.Context, name string, input any) (*Job, error) {
	v, ok := s.Verbs[name]
	if !ok || !v.Long {
		return nil, fmt.Errorf("this instance cannot %q", name)
	}
	encoded, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("encoding the input of %s: %w", name, err)
	}
	for {
		j, fresh := s.launch(ctx, v, encoded)
		if fresh {
			return j, nil
		}
		select {
		case <-j.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// launch starts a job unless one of its name is running, which it returns then.
func (s *Server) launch(ctx context.Context, v Command, input json.RawMessage) (j *Job, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if running := s.jobs[v.Name]; running != nil && !running.ended() {
		return running, false
	}
	if s.jobs == nil {
		s.jobs = make(map[string]*Job)
	}
	j = startJob(ctx, v, input)
	s.jobs[v.Name] = j
	s.Log.Info("job started", "command", v.Name)
	return j, true
}

func (s *Server) start(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	v, input, ok := s.verb(w, r, true)
	if !ok {
		return
	}
	j, fresh := s.launch(ctx, v, input)
	if !fresh {
		http.Error(w, fmt.Sprintf("a %s is running already: see it with --attach, end it with --cancel", v.Name), http.StatusConflict)
		return
	}
	j.Follow(r.Context(), sender(w))
}

func (s *Server) job(w http.ResponseWriter, r *http.Request) *Job {
	v, _, ok := s.verb(w, r, true)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[v.Name]
	if j == nil {
		http.Error(w, fmt.Sprintf("no %s has run since this instance started", v.Name), http.StatusNotFound)
	}
	return j
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	if j := s.job(w, r); j != nil {
		j.Follow(r.Context(), sender(w))
	}
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	if j := s.job(w, r); j != nil {
		j.cancel()
		j.Follow(r.Context(), sender(w))
	}
}

func (s *Server) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		<-j.done
	}
}

// sender writes replies, each at once.
func sender(w http.ResponseWriter) func(Reply) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	return func(r Reply) error {
		if err := encoder.Encode(r); err != nil {
			return err
		}
		return flush.Flush()
	}
}

func ending(err error) Reply {
	if err != nil {
		return Reply{Error: err.Error()}
	}
	return Reply{End: true}
}
