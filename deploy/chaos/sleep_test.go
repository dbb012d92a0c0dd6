package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

// slept is how long a machine sleeps, stopped how long a process is stopped: longer than a price is fresh.
const (
	slept   = time.Minute
	stopped = views.StaleAfter + 5*time.Second
)

// A machine that sleeps does nothing for a while, and then its clock has jumped. No answer is older than one before it, and
// what is older than 30 s is marked so at once, in the answer, /readyz and the metrics; when the venues speak again, all is fresh.
func TestSleepHidesNoAge(t *testing.T) {
	r, p := newSleeper(t)
	for _, silent := range []bool{false, true} {
		r.sleep(p, silent, time.Second, slept)
		if silent {
			eventually(t, "serving old prices as old", time.Minute, r.in.servesOld)
			r.hush(false)
		}
		eventually(t, "being ready again", time.Minute, r.in.ready)
		r.awaitAnswers(100)
	}
	r.rest.check(t)
	p.stop(t)
}

// The same of a process that is stopped, and goes on: its clock has not jumped, the world has gone on without it.
func TestStopHidesNoAge(t *testing.T) {
	r, p := newSleeper(t)
	for _, silent := range []bool{false, true} {
		r.sleep(p, silent, stopped, 0)
		if silent {
			eventually(t, "serving old prices as old", time.Minute, r.in.servesOld)
			r.hush(false)
		}
		eventually(t, "being ready again", time.Minute, r.in.ready)
		r.awaitAnswers(100)
	}
	r.rest.check(t)
	r.catchUpLive()
	p.stop(t)
	p = r.start("none", "")
	r.settle()
	var result report
	r.checkEvents(&result)
	r.checkViews(&result)
	p.stop(t)
}

// sleeper is an instance that is ready, whose prices are of now, and whose clock can be made to jump.
type sleeper struct {
	*round
	jump  string // the file of the clock
	ahead time.Duration
}

func newSleeper(t *testing.T) (*sleeper, *process) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	jump := filepath.Join(t.TempDir(), "jump")
	r := &sleeper{round: newRound(ctx, t, build(t), seedOf(t), "MARKETLOG_FAULT_CLOCK_FILE="+jump), jump: jump}
	r.put(0)
	r.rest = read(ctx, r.in.rest)
	p := r.start("live", "")
	eventually(t, "being ready", time.Minute, r.in.ready)
	r.awaitAnswers(50)
	return r, p
}

// hush makes the venues silent, or lets them speak.
func (r *sleeper) hush(silent bool) {
	for _, v := range r.venues() {
		v.Pause(silent)
	}
}

// sleep stops the process for a while. When it goes on its clock has jumped, and that of the venues. With silent they state
// nothing from the beginning of the sleep on, so that its prices stay old.
func (r *sleeper) sleep(p *process, silent bool, while, jump time.Duration) {
	r.t.Helper()
	r.hush(silent)
	if err := syscall.Kill(-p.Pid, syscall.SIGSTOP); err != nil {
		r.t.Fatalf("sending SIGSTOP: %v", err)
	}
	if p.ended(while) {
		r.t.Fatalf("it ended while it was stopped: %v\n%s", p.state, r.in.tail())
	}
	if jump > 0 {
		r.ahead += jump
		if err := os.WriteFile(r.jump, []byte(r.ahead.String()), 0o600); err != nil {
			r.t.Fatal(err)
		}
		for _, v := range r.venues() {
			v.Shift(r.ahead)
		}
		r.rest.shift.Store(int64(r.ahead))
	}
	if err := syscall.Kill(-p.Pid, syscall.SIGCONT); err != nil {
		r.t.Fatalf("sending SIGCONT: %v", err)
	}
}

// awaitAnswers waits until REST has served so many values more.
func (r *sleeper) awaitAnswers(more int) {
	r.t.Helper()
	answers := func() (n int) {
		r.rest.mu.Lock()
		defer r.rest.mu.Unlock()
		for _, count := range r.rest.answered {
			n += count
		}
		return n
	}
	before := answers()
	eventually(r.t, fmt.Sprintf("%d answers", more), time.Minute, func() error {
		if n := answers() - before; n < more {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// servesOld is nil once the instance says everywhere that its prices are old.
func (in *instance) servesOld() error {
	ready, body, err := fetched("http://" + in.rest + "/readyz")
	if err != nil {
		return err
	}
	if ready != http.StatusServiceUnavailable || !bytes.Contains(body, []byte("all prices are stale")) {
		return fmt.Errorf("/readyz answers %d %s", ready, body)
	}
	status, body, err := fetched("http://" + in.rest + "/api/v1/prices/BTC")
	if err != nil {
		return err
	}
	price, err := readPrice(body)
	if err != nil || status != http.StatusOK || len(price) != 1 || !price[0].stale {
		return fmt.Errorf("a price is answered %d %s, %v", status, body, err)
	}
	var running struct {
		MetricsListen string
	}
	content, err := os.ReadFile(filepath.Join(in.dir, "run.json"))
	if err = errors.Join(err, json.Unmarshal(content, &running)); err != nil {
		return err
	}
	if _, body, err = fetched("http://" + running.MetricsListen + "/metrics"); err != nil {
		return err
	}
	for line := range strings.Lines(string(body)) {
		value, ok := strings.CutPrefix(line, `marketlog_price_age_seconds{of="newest"} `)
		if !ok {
			continue
		}
		age, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err == nil && age > views.StaleAfter.Seconds() {
			return nil
		}
		return fmt.Errorf("the newest price is %s s old by the metrics, want more than %s", value, views.StaleAfter)
	}
	return errors.New("there is no metric of the newest price")
}

func fetched(url string) (status int, body []byte, err error) {
	answer, err := http.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}
