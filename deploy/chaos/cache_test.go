package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/latest"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// watcher looks at the cache of latest values through every kill.
type watcher struct {
	store      *latest.Store
	partitions int32

	mu    sync.Mutex
	times map[string]int64
	looks int
	wrong []string
}

const lookEvery = 20 * time.Millisecond

func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(ctx)
		}
	}
}

// look notes the time of each coin's price, and complains if it was later before.
func (w *watcher) look(ctx context.Context) {
	snapshot, err := w.store.Load(ctx, w.partitions)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			w.wrong = append(w.wrong, err.Error())
		}
		return
	}
	w.looks++
	for _, r := range snapshot.Records {
		name := r.Price.CoinId + " " + r.Price.Reason
		if r.Price.Time < w.times[name] {
			w.wrong = append(w.wrong, fmt.Sprintf("%s: %d after %d", name, r.Price.Time, w.times[name]))
		}
		w.times[name] = r.Price.Time
	}
}

// TestKillNeverTurnsBackTheCache kills around the writing of latest values, which outlive the process
// in a Redis server of their own.
func TestKillNeverTurnsBackTheCache(t *testing.T) {
	addr := streamtest.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{store: latest.New(client), partitions: topic.Partitions, times: map[string]int64{}}
	seed := seedOf(t)
	t.Logf("seed %d", seed)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()

	r := newRound(ctx, t, build(t), seed, setting("redis.addr", addr))
	watching.Go(func() { w.run(ctx) })
	for _, name := range []string{"sink.inserted", "sink.cached", "sink.recorded", "fold.rewind", outside} {
		s := steps[slices.IndexFunc(steps, func(s step) bool { return s.name == name })]
		if !r.kill(s) {
			t.Errorf("%s was not reached", name)
		}
	}
	p := r.in.start(t, "live", "")
	r.catchUpLive()
	p.stop(t)
	p = r.in.start(t, "none", "")
	r.settle()

	// At rest the cache is the end of the view.
	list, err := rows[struct {
		Coin   string `json:"coin_id"`
		Second int64
		Price  float64
	}](ctx, r.scene.in, "SELECT coin_id, toUnixTimestamp(max(time)) AS second, argMax(price, time) AS price FROM v_prices WHERE reason = '' GROUP BY coin_id")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, row := range list {
		want[row.Coin] = fmt.Sprintf("%v at %d", row.Price, row.Second)
	}
	snapshot, err := w.store.Load(ctx, w.partitions)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range snapshot.Records {
		if rec.Price.Reason != "" {
			continue
		}
		got := fmt.Sprintf("%v at %d", rec.Price.Price, rec.Price.Time/int64(time.Second))
		if got != want[rec.Price.CoinId] {
			t.Errorf("the cache holds for %s %s, want %s", rec.Price.CoinId, got, want[rec.Price.CoinId])
		}
		delete(want, rec.Price.CoinId)
	}
	if len(want) > 0 {
		t.Errorf("the cache lacks %v", want)
	}
	p.stop(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range first(w.wrong) {
		t.Error(wrong)
	}
	t.Logf("looked %d times at %d values", w.looks, len(w.times))
}
