package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// jobLines is how many of its newest lines a job keeps for those who attach later; a slow follower misses older ones.
// The end is never missed.
const jobLines = 1000

// Job is long work that goes on while nobody looks.
type Job struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	first int     // number of the oldest kept line
	lines []Reply // the newest ones
	more  chan struct{}
}

func startJob(ctx context.Context, v Command, input json.RawMessage) *Job {
	ctx, cancel := context.WithCancel(ctx)
	j := &Job{cancel: cancel, done: make(chan struct{}), more: make(chan struct{})}
	go func() {
		defer close(j.done)
		defer cancel()
		err := v.do(ctx, input, func(line any) error {
			encoded, err := json.Marshal(line)
			if err != nil {
				return fmt.Errorf("encoding a line: %w", err)
			}
			j.add(Reply{Line: encoded})
			return nil
		})
		j.add(ending(err))
	}()
	return j
}

func (j *Job) add(r Reply) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines = append(j.lines, r); len(j.lines) > jobLines {
		j.lines = j.lines[1:]
		j.first++
	}
	close(j.more)
	j.more = make(chan struct{})
}

func (j *Job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// Follow sends the kept lines and then each new one, to the job's end or as long as somebody listens.
func (j *Job) Follow(ctx context.Context, send func(Reply) error) {
	for next := 0; ; {
		j.mu.Lock()
		next = max(next, j.first)
		lines, more := j.lines[next-j.first:], j.more
		j.mu.Unlock()
		for _, line := range lines {
			if send(line) != nil {
				return
			}
			if line.End || line.Error != "" {
				return
			}
		}
		next += len(lines)
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}
