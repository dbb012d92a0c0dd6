package deploy

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

// Verb is one thing that a command can ask of an instance: of the running one through its admin socket, else of the
// parts that the command itself opened.
type Verb struct {
	// Name is the command's, with a dot before the sub-command: "keys.create".
	Name string
	// Long work belongs to the instance: whoever started it may leave, come back and cancel it. One job of a name runs
	// at a time.
	Long bool
	// Run reads its input and emits any number of lines; each must encode to JSON. It ends soon after ctx does. Since
	// kill -9 ends it anywhere, long work resumes by itself when started again.
	Run func(ctx context.Context, input json.RawMessage, emit func(line any) error) error
}

// Verbs are the verbs of an instance, by name.
type Verbs map[string]Verb

// NewVerbs indexes verbs.
func NewVerbs(verbs ...Verb) Verbs {
	byName := make(Verbs, len(verbs))
	for _, v := range verbs {
		byName[v.Name] = v
	}
	return byName
}

// reply is one line of the answer to a call. The last line has End or Error; an answer without such a line was cut off.
type reply struct {
	Line  json.RawMessage `json:"line,omitempty"`
	Error string          `json:"error,omitempty"`
	End   bool            `json:"end,omitempty"`
}

// adminServer answers commands on a unix socket that only this user may open. POST /verbs/NAME calls a short verb;
// POST, GET and DELETE /jobs/NAME start, attach to and cancel a long one.
type adminServer struct {
	verbs Verbs
	log   *slog.Logger
	// sql serves the operator's statements; nil where there is no engine.
	sql func() http.Handler

	mu   sync.Mutex
	jobs map[string]*job
}

// serve answers on the socket until ctx ends; then jobs are cancelled and waited for.
func (s *adminServer) serve(ctx context.Context, path string) error {
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
		handler := s.sql()
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

func (s *adminServer) verb(w http.ResponseWriter, r *http.Request, long bool) (v Verb, input json.RawMessage, ok bool) {
	v, ok = s.verbs[r.PathValue("name")]
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

func (s *adminServer) call(w http.ResponseWriter, r *http.Request) {
	v, input, ok := s.verb(w, r, false)
	if !ok {
		return
	}
	send := sender(w)
	err := v.Run(r.Context(), input, func(line any) error {
		encoded, err := json.Marshal(line)
		if err != nil {
			return fmt.Errorf("encoding a line: %w", err)
		}
		return send(reply{Line: encoded})
	})
	_ = send(ending(err))
}

// begin starts long work of the instance's own accord, once a person's of the same name has ended. The work ends with ctx.
func (s *adminServer) begin(ctx context.Context, name string, input any) (*job, error) {
	v, ok := s.verbs[name]
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
func (s *adminServer) launch(ctx context.Context, v Verb, input json.RawMessage) (j *job, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if running := s.jobs[v.Name]; running != nil && !running.ended() {
		return running, false
	}
	if s.jobs == nil {
		s.jobs = make(map[string]*job)
	}
	j = startJob(ctx, v, input)
	s.jobs[v.Name] = j
	s.log.Info("job started", "verb", v.Name)
	return j, true
}

func (s *adminServer) start(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	v, input, ok := s.verb(w, r, true)
	if !ok {
		return
	}
	j, fresh := s.launch(ctx, v, input)
	if !fresh {
		http.Error(w, fmt.Sprintf("a %s is running already: see it with --attach, end it with --cancel", v.Name), http.StatusConflict)
		return
	}
	j.follow(r.Context(), sender(w))
}

func (s *adminServer) job(w http.ResponseWriter, r *http.Request) *job {
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

func (s *adminServer) attach(w http.ResponseWriter, r *http.Request) {
	if j := s.job(w, r); j != nil {
		j.follow(r.Context(), sender(w))
	}
}

func (s *adminServer) cancel(w http.ResponseWriter, r *http.Request) {
	if j := s.job(w, r); j != nil {
		j.cancel()
		j.follow(r.Context(), sender(w))
	}
}

func (s *adminServer) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		<-j.done
	}
}

// sender writes replies, each at once.
func sender(w http.ResponseWriter) func(reply) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	return func(r reply) error {
		if err := encoder.Encode(r); err != nil {
			return err
		}
		return flush.Flush()
	}
}

func ending(err error) reply {
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{End: true}
}
