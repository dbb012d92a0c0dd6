package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/marketlog/marketlog/stream/retry"
)

// Role is one part of an instance that runs until its context ends.
type Role struct {
	// Name is unique in the instance: "processors/median".
	Name string
	// Run works until ctx ends, then drains and returns. Whatever it returns before that, it is started again.
	Run func(ctx context.Context) error
	// Ready reports whether the role has caught up; nil is always. It may be called at any time.
	Ready func() bool
}

// Health is how the roles of an instance fare. Safe for concurrent use.
type Health struct {
	now func() time.Time

	mu    sync.Mutex
	order []string
	roles map[string]*RoleHealth
}

// RoleHealth is how one role fares.
type RoleHealth struct {
	Name string `json:"name"`
	// State is starting, running, waiting (to be started again) or stopped.
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	// Error is what ended the role the last time.
	Error string `json:"error,omitempty"`
	Ready bool   `json:"ready"`

	ready func() bool
}

// NewHealth knows no role yet.
func NewHealth(now func() time.Time) *Health {
	return &Health{now: now, roles: make(map[string]*RoleHealth)}
}

// Set notes the state of a role, and the error that ended it.
func (h *Health) Set(role Role, state string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.roles[role.Name]
	if r == nil {
		r = &RoleHealth{Name: role.Name, ready: role.Ready}
		h.roles[role.Name] = r
		h.order = append(h.order, role.Name)
	}
	r.State, r.Since = state, h.now()
	if err != nil {
		r.Error = err.Error()
		r.Restarts++
	}
}

// Report reports of all roles, in the order of their start.
func (h *Health) Report() []RoleHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	report := make([]RoleHealth, len(h.order))
	for i, name := range h.order {
		report[i] = *h.roles[name]
		report[i].Ready = report[i].State == "running" && (report[i].ready == nil || report[i].ready())
	}
	return report
}

// errEnded represents a role that returned nil although nobody had asked it to.
var errEnded = errors.New("ended unexpectedly")

// Steady is how long a role must have run for its next failure to count as the first again.
const Steady = time.Minute

// FirstPause and LongestPause are how long what has failed is left alone before it is started again.
const (
	FirstPause   = 500 * time.Millisecond
	LongestPause = 30 * time.Second
)

// Run runs a role and starts it again when it fails, later each time up to half a minute, until ctx ends.
func Run(ctx context.Context, role Role, health *Health, log *slog.Logger) {
	backoff := retry.New(FirstPause, LongestPause)
	for {
		health.Set(role, "running", nil)
		began := health.now()
		err := role.Run(ctx)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Error("role stopped with an error", "role", role.Name, "error", err)
			}
			health.Set(role, "stopped", nil)
			return
		}
		if err == nil {
			err = errEnded
		}
		if health.now().Sub(began) > Steady {
			backoff.Reset()
		}
		pause := backoff.Next()
		health.Set(role, "waiting", err)
		log.Error("role failed", "role", role.Name, "error", err, "retry_in", pause.Round(time.Millisecond))
		if retry.Wait(ctx, pause) != nil {
			health.Set(role, "stopped", nil)
			return
		}
	}
}

// Stage is roles that start together, after the stages before them and stop before those.
type Stage struct {
	Name  string
	Roles []Role
}

// RunStages starts the stages in order, runs them until ctx ends and stops them in reverse order, so that producers
// hand over their last ticks while processors still run. An error says which stage had not drained within the limit.
func RunStages(ctx context.Context, stages []Stage, drain time.Duration, health *Health, log *slog.Logger) error {
	type running struct {
		name string
		stop context.CancelFunc
		done chan struct{}
	}
	var started []running
	for _, s := range stages {
		stageCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		var roles sync.WaitGroup
		for _, role := range s.Roles {
			roles.Go(func() { Run(stageCtx, role, health, log) })
		}
		done := make(chan struct{})
		go func() { roles.Wait(); close(done) }()
		started = append(started, running{s.Name, stop, done})
	}
	<-ctx.Done()
	limit := time.NewTimer(drain)
	defer limit.Stop()
	for i := len(started) - 1; i >= 0; i-- {
		started[i].stop()
		select {
		case <-started[i].done:
			log.Info("stopped", "stage", started[i].name)
		case <-limit.C:
			return fmt.Errorf("stopping: %s had not drained after %v; unfinished work resumes at the next start", started[i].name, drain)
		}
	}
	return nil
}
