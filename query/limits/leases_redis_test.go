package limits

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// TestAdmissionOverRedis has 64 clients ask three replicas for five times a limit and more, while a real Redis is killed, frozen
// and flushed and lines to it are cut. MARKETLOG_ADMISSION says for how long the limits of three plans are put to it side by
// side, MARKETLOG_ADMISSION_LOG the folder that keeps the logs of all that was admitted.
func TestAdmissionOverRedis(t *testing.T) {
	text := os.Getenv("MARKETLOG_ADMISSION")
	if text == "" {
		admitOverRedis(t, 5*time.Second, 100, 60)
		return
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{30, 300, 12_000} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			t.Parallel()
			admitOverRedis(t, length, limit, 5)
		})
	}
}

// admitOverRedis puts a limit a minute, with rate times as many requests, to a Redis of its own.
func admitOverRedis(t *testing.T, length time.Duration, limit int, rate float64) {
	server := streamtest.StartRedis(t)
	const patience = 250 * time.Millisecond
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience})
	t.Cleanup(func() { client.Close() })
	f := newFleet(t, NewLeaseStore(client), 3)
	start := time.Now()
	end := start.Add(length)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		f.load(rand.New(rand.NewPCG(1, 1)), nil, 64, rate*float64(limit), &Plan{PerMinute: limit, PerMonth: 1_000_000}, length)
	}()
	for i := 0; time.Now().Before(end); i++ {
		time.Sleep(length / 10)
		switch i % 4 {
		case 0:
			t.Log(now(), "frozen")
			server.Pause(t)
			time.Sleep(length / 20)
			server.Resume(t)
		case 1:
			t.Log(now(), "flushed")
			server.Flush(t)
		case 2:
			t.Log(now(), "one line is cut")
			f.replicas[0].line.cut.Store(true)
			time.Sleep(length / 20)
			f.replicas[0].line.cut.Store(false)
		case 3:
			t.Log(now(), "killed")
			server.Kill()
			time.Sleep(length / 20)
			server.Restart(t)
		}
	}
	<-loaded
	f.neverOver(limit)
	early, worst := f.early(limit, start, start.Add(length/10)) // before anything happens to the store
	t.Logf("admitted %d, refused %d; of those before the first fault %d early, the worst after %d", len(f.admitted), len(f.refused), early, worst)
	streamtest.Report(t, "seconds", int(length.Seconds()))
	streamtest.Report(t, "admitted", len(f.admitted))
	streamtest.Report(t, "refused", len(f.refused))
	if len(f.admitted) < limit/3 {
		t.Errorf("admitted %d in %s, want at least a share of %d", len(f.admitted), length, limit)
	}
	if folder := os.Getenv("MARKETLOG_ADMISSION_LOG"); folder != "" {
		f.write(filepath.Join(folder, "admission-"+strconv.Itoa(limit)+".jsonl"))
	}
}

// write keeps the log of what was admitted, a line each.
func (f *fleet) write(path string) {
	file, err := os.Create(path)
	if err != nil {
		f.t.Fatal(err)
	}
	lines := json.NewEncoder(file)
	for _, s := range f.admitted {
		if err := lines.Encode(map[string]time.Time{"came": s.came, "admitted": s.at}); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		f.t.Fatal(err)
	}
}
