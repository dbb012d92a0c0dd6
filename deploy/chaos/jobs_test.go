package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
)

// operator starts long work inside the process that holds a data directory, as the commands replay and backfill do, and gives the
// same command again when the work was killed.
type operator struct {
	t   *testing.T
	dir string

	mu     sync.Mutex
	random *rand.Rand
	// replay is the input of an unfinished replay, nil if there is none.
	replay map[string]any
	// backfill is the input of an unfinished back-fill, nil if there is none.
	backfill map[string]any
	// windows counts the back-fills begun; each reads another window of the past.
	windows                    int
	finished, aborted, resumed map[string]int
	differing                  []string
}

func newOperator(t *testing.T, dir string, seed uint64) *operator {
	return &operator{t: t, dir: dir, random: rand.New(rand.NewPCG(seed, 2)), finished: map[string]int{}, aborted: map[string]int{}, resumed: map[string]int{}}
}

// Kinds of long work, as its verbs are called.
const (
	jobReplay   = "replay"
	jobBackfill = "backfill"
)

// Windows of a back-fill: minutes, hours and days of one market of the scripted Coinbase.
const (
	backfilledMarket = "ETH-USD"
	backfilledWindow = 12 * time.Hour // 720 minutes are three calls
	day              = 24 * time.Hour
)

// replayed are the views that are rebuilt.
var replayed = []string{"all", "prices", "candles", "ticks"}

// toil repeats work of a kind, replay or backfill, until the context ends or the process dies.
func (o *operator) toil(ctx context.Context, kind string) {
	for ctx.Err() == nil && o.once(ctx, kind) == nil {
		continue
	}
}

// finish takes up what was interrupted, and does nothing where nothing was.
func (o *operator) finish(ctx context.Context) error {
	o.mu.Lock()
	replay, backfill := o.replay != nil, o.backfill != nil
	o.mu.Unlock()
	var err error
	if replay {
		err = o.once(ctx, jobReplay)
	}
	if backfill && err == nil {
		err = o.once(ctx, jobBackfill)
	}
	return err
}

// once does one piece of work, or goes on with one that was interrupted. An interrupted replay is
// sometimes given up instead.
func (o *operator) once(ctx context.Context, kind string) error {
	o.mu.Lock()
	pending := &o.replay
	if kind == jobBackfill {
		pending = &o.backfill
	}
	abort := false
	switch {
	case *pending == nil && kind == jobReplay:
		*pending = map[string]any{"view": replayed[o.random.IntN(len(replayed))]}
	case *pending == nil:
		*pending = o.window()
	default:
		o.resumed[kind]++
		abort = kind == jobReplay && o.random.IntN(3) == 0
	}
	input := *pending
	if abort {
		input = map[string]any{"abort": true}
	}
	o.mu.Unlock()

	lines, err := o.job(ctx, kind, input)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	*pending = nil
	if abort {
		o.aborted[kind]++
		return nil
	}
	o.finished[kind]++
	for _, line := range lines {
		if n, ok := line["differing"].(float64); ok && n > 0 {
			o.differing = append(o.differing, fmt.Sprintf("replay of %v: %v of %v rows differ", line["view"], n, line["compared"]))
		}
		if kind, ok := line["kind"].(string); ok && kind != "" {
			o.differing = append(o.differing, fmt.Sprintf("%v", line))
		}
	}
	return nil
}

// window is the input of the next back-fill: a stretch of the past that none has read yet.
func (o *operator) window() map[string]any {
	to := time.Now().UTC().Truncate(day).Add(-day - time.Duration(o.windows)*backfilledWindow)
	o.windows++
	return map[string]any{"source": "coinbase", "symbols": []string{backfilledMarket}, "from": to.Add(-backfilledWindow), "to": to}
}

var errDetached = errors.New("the instance ended before its answer did")

// finishAll lets the work end that was interrupted, and sees to it that each kind of work was done to its end once.
func (o *operator) finishAll() {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	if err := o.finish(ctx); err != nil {
		o.t.Errorf("finishing what was interrupted: %v", err)
	}
	// A round of few kills may not have come to a step of either kind.
	for _, kind := range []string{jobReplay, jobBackfill} {
		if o.finished[kind] > 0 {
			continue
		}
		if err := o.once(ctx, kind); err != nil {
			o.t.Errorf("%s: %v", kind, err)
		}
	}
}

// verify asks the product itself whether the views equal the log.
func (o *operator) verify() {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	lines, err := o.job(ctx, jobReplay, map[string]any{"view": "all", "verify": true})
	if err != nil || len(lines) == 0 {
		o.t.Errorf("verifying: %v", err)
		return
	}
	if result := lines[len(lines)-1]; result["differing"] != 0.0 || result["compared"] == 0.0 {
		o.t.Errorf("replay --verify: got %v, want none that differ", result)
	}
}

// job asks the running instance for long work and returns the lines that it printed.
func (o *operator) job(ctx context.Context, name string, input any) (lines []map[string]any, err error) {
	body, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	socket, err := o.socket(ctx)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://instance/jobs/"+name, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		o.t.Errorf("asking for %s: %s: %s", name, answer.Status, text)
		return nil, errDetached
	}
	decoder := json.NewDecoder(answer.Body)
	for {
		var reply struct {
			Line  map[string]any
			Error string
			End   bool
		}
		switch err := decoder.Decode(&reply); {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errDetached, err)
		case reply.Error != "":
			if reply.Error != (admin.Command{Name: name}).Ended().Error() {
				o.t.Errorf("%s %s fails: %s", name, body, reply.Error)
			}
			return nil, errors.New(reply.Error)
		case reply.End:
			return lines, nil
		}
		lines = append(lines, reply.Line)
	}
}

// socket waits until the instance has published where it takes commands.
func (o *operator) socket(ctx context.Context) (string, error) {
	for {
		var info struct{ Admin string }
		content, err := os.ReadFile(filepath.Join(o.dir, "run.json"))
		if err == nil && json.Unmarshal(content, &info) == nil {
			if conn, err := net.Dial("unix", info.Admin); err == nil {
				_ = conn.Close()
				return info.Admin, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// check reports what went wrong, and that nothing is left unfinished.
func (o *operator) check() {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range first(o.differing) {
		o.t.Error(d)
	}
	if o.replay != nil || o.backfill != nil {
		o.t.Errorf("unfinished: replay %v, back-fill %v", o.replay, o.backfill)
	}
	o.t.Logf("replays finished %d, given up %d, taken up again %d; back-fills finished %d, taken up again %d",
		o.finished[jobReplay], o.aborted[jobReplay], o.resumed[jobReplay], o.finished[jobBackfill], o.resumed[jobBackfill])
}
