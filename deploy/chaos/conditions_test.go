package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A new directory back-fills by itself at its first start. Whenever it is killed in that, the next start goes on: no candle is
// missing of what was read, and none is there twice.
func TestKillsInTheFirstBackfillLoseNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRound(ctx, t, build(t), seedOf(t), setting("backfill.enabled", "true"), setting("backfill.sources", "coinbase"), setting("backfill.seconds", "15"))
	for _, fault := range []string{"backfill.write:1", "backfill.range:2", "backfill.written:2", ""} {
		p := r.start("live", fault)
		if fault == "" {
			p.ended(time.Duration(r.random.Int64N(int64(5 * time.Second))))
			p.kill()
			continue
		}
		if !p.ended(insistLimit) || !p.killedBySignal() {
			t.Fatalf("%s was not reached\n%s", fault, r.in.tail())
		}
	}
	p := r.start("live", "")
	eventually(t, "being ready, the back-fill over", 2*time.Minute, r.in.ready)
	p.stop(t)
	p = r.start("none", "")
	r.settle()
	r.checkBackfill()
	p.stop(t)
}

// ready is nil once the instance says that it is.
func (in *instance) ready() error {
	answer, err := http.Get("http://" + in.rest + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s %s", answer.Status, body)
	}
	return err
}

// A stop while a replay is under way is a stop like another: in time, with exit code 0; and the replay, given again, goes on
// and finds nothing that differs.
func TestStopsDuringAReplay(t *testing.T) {
	const wanted, most = 2, 12
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRound(ctx, t, build(t), seedOf(t))
	p := r.start("live", "")
	eventually(t, "acknowledged ticks", time.Minute, func() error {
		if n := len(r.in.acked(t)); n < 2_000 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for i := 0; r.interrupted() < wanted; i++ {
		if i == most {
			t.Fatalf("of %d stops only %d came during a replay", i, r.interrupted())
		}
		working, stop := context.WithCancel(ctx)
		var work sync.WaitGroup
		work.Go(func() { r.operator.toil(working, jobReplay) })
		p.ended(time.Duration(300+r.random.Int64N(700)) * time.Millisecond)
		p.stop(t)
		stop()
		work.Wait()
		p = r.start("live", "")
	}
	r.operator.finishAll()
	p.stop(t)
	p = r.start("none", "")
	r.settle()
	r.operator.verify()
	r.operator.check()
	p.stop(t)
}

// interrupted counts the replays that were taken up again, or are to be.
func (r *round) interrupted() int {
	r.operator.mu.Lock()
	defer r.operator.mu.Unlock()
	n := r.operator.resumed[jobReplay]
	if r.operator.replay != nil {
		n++
	}
	return n
}

// While 64 connections read as fast as they can, prices go on being made: none grows stale.
func TestHotReadsLeavePricesFresh(t *testing.T) {
	const connections, lasting = 64, 8 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRound(ctx, t, build(t), seedOf(t))
	p := r.start("live", "")
	eventually(t, "being ready", time.Minute, r.in.ready)
	r.rest = read(ctx, r.in.rest)
	r.rest.starts(r.in.shift)
	reading, stop := context.WithTimeout(ctx, lasting)
	defer stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var answers, refused atomic.Int64
	var readers sync.WaitGroup
	for range connections {
		readers.Go(func() {
			for reading.Err() == nil {
				request, err := http.NewRequestWithContext(reading, http.MethodGet, "http://"+r.in.rest+"/api/v1/prices/BTC", nil)
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := client.Do(request)
				if err != nil {
					continue // the time is up
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				answers.Add(1)
				if answer.StatusCode != http.StatusOK {
					refused.Add(1)
				}
			}
		})
	}
	readers.Wait()
	r.rest.check(t)
	r.rest.mu.Lock()
	stale := r.rest.stale["bitcoin"]
	r.rest.mu.Unlock()
	if refused.Load() > 0 || answers.Load() < connections || stale > 0 {
		t.Errorf("of %d answers %d were refused; beside them %d prices of bitcoin were stale, want none", answers.Load(), refused.Load(), stale)
	}
	t.Logf("%d answers a second", answers.Load()/int64(lasting/time.Second))
	p.stop(t)
}
