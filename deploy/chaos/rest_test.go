package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

// reader asks REST of one address through every kill, and remembers how new each answer was.
type reader struct {
	base string
	key  string // empty where none is asked for
	// shift is how far the clock of the process that answers is ahead of the machine's, at least.
	shift atomic.Int64

	mu       sync.Mutex
	times    map[string]time.Time // the newest time served, by what it is of
	began    time.Time            // the start of the present life; zero once a fresh price came
	first    []time.Duration      // from each start to the first fresh price
	answered map[string]int       // answers by path
	stale    map[string]int       // answers that were stale, by what they are of
	wrong    []string
	// samples are prices that were served, to be asked for again as of then.
	samples []sample
}

// sample is a price that was served between two instants of the clock of the process that answered.
type sample struct {
	path          string
	before, after time.Time
	of            time.Time
}

const (
	// sampleEvery is how many answers there are to a sample, samples how many of these at most.
	sampleEvery = 25
	samples     = 60
)

// readEvery is how often the reader asks; a life of a kill test lasts some seconds.
const readEvery = 20 * time.Millisecond

// dated is one value that an answer holds and how new it is.
type dated struct {
	of string
	at time.Time
	// price means that it is to be stale from an age on. The row of a coin is of the last minute that changed it.
	price, stale bool
}

// readings are what is asked for, each with the way to its times. A price is the same thing in all answers: none of them may
// be older than another one before.
var readings = []struct {
	path string
	read func(body []byte) ([]dated, error)
}{
	{"/api/v1/prices/BTC", readPrice},
	{"/api/v1/prices?symbols=BTC,ETH,SOL", readPrices},
	{"/api/v1/charts/ethereum/current", readCurrent},
	{"/api/v1/prices/SOL", readPrice},
	{"/api/v1/coins/bitcoin", readCoin},
	{"/api/v1/coins/markets?per_page=5", readRows},
}

func readPrice(body []byte) ([]dated, error) {
	var answer struct {
		Data struct {
			Coin       string `json:"coinId"`
			Aggregated *struct {
				Timestamp time.Time
				IsStale   bool
			}
		}
		Meta struct{ IsStale bool }
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Data.Aggregated == nil {
		return nil, err
	}
	if answer.Data.Aggregated.IsStale != answer.Meta.IsStale {
		return nil, fmt.Errorf("the price and its meta do not agree: %.300s", body)
	}
	return []dated{{answer.Data.Coin, answer.Data.Aggregated.Timestamp, true, answer.Meta.IsStale}}, nil
}

func readPrices(body []byte) ([]dated, error) {
	var answer struct {
		Prices []struct {
			Coin      string    `json:"coinId"`
			UpdatedAt time.Time `json:"updatedAt"`
			IsStale   bool
		}
		Meta struct{ IsStale bool }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	var list []dated
	for _, p := range answer.Prices {
		list = append(list, dated{p.Coin, p.UpdatedAt, true, p.IsStale})
	}
	if slices.ContainsFunc(list, func(d dated) bool { return d.stale }) != answer.Meta.IsStale {
		return nil, fmt.Errorf("the prices and their meta do not agree: %.300s", body)
	}
	return list, nil
}

func readCurrent(body []byte) ([]dated, error) {
	var answer struct {
		Data struct {
			Coin      string `json:"coinId"`
			Timestamp time.Time
			IsStale   bool
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Data.Timestamp.IsZero() {
		return nil, err
	}
	return []dated{{answer.Data.Coin, answer.Data.Timestamp, true, answer.Data.IsStale}}, nil
}

// readCoin reads a row of the fold of markets, which is of another time than a price.
func readCoin(body []byte) ([]dated, error) {
	var answer struct {
		Data struct {
			ID        string
			UpdatedAt time.Time `json:"updatedAt"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Data.UpdatedAt.IsZero() {
		return nil, err
	}
	return []dated{{"row of " + answer.Data.ID, answer.Data.UpdatedAt, false, false}}, nil
}

func readRows(body []byte) ([]dated, error) {
	var answer struct {
		Data []struct {
			ID          string
			LastUpdated time.Time `json:"lastUpdated"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	var list []dated
	for _, row := range answer.Data {
		list = append(list, dated{"table row of " + row.ID, row.LastUpdated, false, false})
	}
	return list, nil
}

// read asks until the context ends.
func read(ctx context.Context, addr string) *reader { return readAs(ctx, addr, "") }

// readAs asks with a key until the context ends.
func readAs(ctx context.Context, addr, key string) *reader {
	r := &reader{base: "http://" + addr, key: key, times: map[string]time.Time{}, answered: map[string]int{}, stale: map[string]int{}}
	go func() {
		ticker := time.NewTicker(readEvery)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				r.ask(ctx, i%len(readings))
			}
		}
	}()
	return r
}

// starts notes that a process is started whose clock is ahead by shift.
func (r *reader) starts(shift time.Duration) {
	r.shift.Store(int64(shift))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = time.Now()
}

func (r *reader) ask(ctx context.Context, which int) {
	path := readings[which].path
	asking, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	request, err := http.NewRequestWithContext(asking, http.MethodGet, r.base+path, nil)
	if err != nil {
		return
	}
	if r.key != "" {
		request.Header.Set("Authorization", "Bearer "+r.key)
	}
	// The clock of whoever answers says at least this.
	now := time.Now().Add(time.Duration(r.shift.Load()))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return // nobody is there
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode == http.StatusServiceUnavailable {
		return // it was killed in the middle, or says that it is starting
	}
	after := time.Now().Add(time.Duration(r.shift.Load()))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[path]++
	list, err := readings[which].read(body)
	if err != nil || answer.StatusCode != http.StatusOK {
		r.wrong = append(r.wrong, fmt.Sprintf("%s answers %d, %v: %.300s", path, answer.StatusCode, err, body))
		return
	}
	for _, d := range list {
		r.note(path, d, now)
		if d.price && !strings.Contains(path, "?") && strings.Contains(path, "/prices/") && r.answered[path]%sampleEvery == 0 && len(r.samples) < samples {
			r.samples = append(r.samples, sample{path, now, after, d.at})
		}
	}
}

// checkPast asks the last process for what it and those before it answered: nothing may be newer than what was served then. What a process
// recorded in its last seconds is lost with it, so that something older is not a fault; it is most often the same.
func (r *reader) checkPast(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	samples := r.samples
	r.mu.Unlock()
	same := 0
	for _, s := range samples {
		var got [2]time.Time
		for i, at := range []time.Time{s.before, s.after} {
			body, status, err := get(t.Context(), r.base+s.path+"?asOf="+at.UTC().Format(time.RFC3339Nano))
			switch list, errRead := readPrice(body); {
			case err != nil || errRead != nil:
				t.Fatal(err, errRead)
			case status == http.StatusOK && len(list) == 1:
				got[i] = list[0].at
			case status != http.StatusNotFound: // nothing is recorded of what was served
				t.Errorf("%s as of %s: %d, %.300s", s.path, at, status, body)
			}
		}
		if got[0].After(s.of) {
			t.Errorf("%s served the price of %s at %s, and as of then it is that of %s", s.path, s.of, s.before, got[0])
		}
		if got[0].Equal(s.of) || got[1].Equal(s.of) {
			same++
		}
	}
	t.Logf("of %d prices that were served, %d are given again as of then", len(samples), same)
	if same < len(samples)/4 { // kills may come every other second
		t.Errorf("of %d prices that were served, only %d are given again as of then", len(samples), same)
	}
}

// get asks for something once.
func get(ctx context.Context, url string) (body []byte, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return body, answer.StatusCode, err
}

// note complains where a thing was newer before, or is old and not marked so.
func (r *reader) note(path string, d dated, now time.Time) {
	if before := r.times[d.of]; d.at.Before(before) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s serves %s of %s after one of %s", path, d.of, d.at.Format(time.RFC3339), before.Format(time.RFC3339)))
	}
	r.times[d.of] = d.at
	switch age := now.Sub(d.at); {
	case !d.price:
	case d.stale:
		r.stale[d.of]++
	case age > views.StaleAfter:
		r.wrong = append(r.wrong, fmt.Sprintf("%s serves %s of %s, %s old and not stale", path, d.of, d.at.Format(time.RFC3339), age.Round(time.Millisecond)))
	case !r.began.IsZero():
		r.first = append(r.first, time.Since(r.began))
		r.began = time.Time{}
	}
}

// check reports where an answer went back or hid its age.
func (r *reader) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range first(r.wrong) {
		t.Errorf("REST: %s", w)
	}
	for _, reading := range readings {
		if r.answered[reading.path] == 0 {
			t.Errorf("REST never answered %s", reading.path)
		}
	}
	if len(r.first) == 0 {
		t.Error("REST never served a fresh price")
		return
	}
	slices.Sort(r.first)
	within, stale := 0, 0
	for _, n := range r.stale {
		stale += n
	}
	for _, took := range r.first {
		if took <= freshWithin {
			within++
		}
	}
	t.Logf("REST answered %v, served %d stale prices; a fresh price came in %d lives, in %d of them within %s, in the middle one after %s, at last after %s",
		r.answered, stale, len(r.first), within, freshWithin, r.first[len(r.first)/2].Round(time.Millisecond), r.first[len(r.first)-1].Round(time.Millisecond))
}

// freshWithin is how soon after a start a fresh price is wanted on an idle machine.
const freshWithin = 5 * time.Second
