package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// fault is what the way to a bucket does to a request.
type fault string

const (
	none fault = ""
	// refused is an answer of 500 to what was not done, failed one of 503 to what was.
	refused fault = "refused"
	failed  fault = "failed"
	// lost is a connection that ends without an answer to what was done, cut one that ends within the answer.
	lost fault = "lost"
	cut  fault = "cut"
	// twice is a proxy that got no answer and tried again.
	twice fault = "twice"
	// late is what is done when the client has long given up.
	late fault = "late"
	slow fault = "slow"
)

var harms = []fault{refused, failed, lost, cut, twice, slow}

// badWay is a proxy before a server of buckets.
type badWay struct {
	*httptest.Server
	to string

	mu   sync.Mutex
	next func(*http.Request) fault
	// waiting are requests that are late.
	waiting []func()
}

func newBadWay(t *testing.T, to string) *badWay {
	t.Helper()
	way := &badWay{to: to, next: func(*http.Request) fault { return none }}
	way.Server = httptest.NewServer(way)
	t.Cleanup(way.Close)
	return way
}

// meddles sets what happens to requests from now on.
func (w *badWay) meddles(next func(*http.Request) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = next
}

// once does harm to the first request of a method for names with a suffix.
func once(harm fault, method, suffix string) func(*http.Request) fault {
	return func(r *http.Request) fault {
		if harm == none || r.Method != method || !strings.HasSuffix(r.URL.Path, suffix) {
			return none
		}
		done := harm
		harm = none
		return done
	}
}

// arrive lets what is late happen.
func (w *badWay) arrive() {
	w.mu.Lock()
	waiting := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	for _, do := range waiting {
		do()
	}
}

func (w *badWay) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	forward := func() (*http.Response, []byte) {
		request, err := http.NewRequest(r.Method, "http://"+w.to+r.URL.RequestURI(), bytes.NewReader(sent))
		if err != nil {
			panic(err)
		}
		request.Header, request.Host = r.Header.Clone(), r.Host // which is signed
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		return answer, body
	}
	w.mu.Lock()
	harm := w.next(r)
	if harm == late {
		w.waiting = append(w.waiting, func() { forward() })
	}
	w.mu.Unlock()
	switch harm {
	case refused:
		rw.WriteHeader(http.StatusInternalServerError)
		return
	case late:
		<-r.Context().Done()
		return
	case twice:
		forward()
	case slow:
		time.Sleep(5 * time.Millisecond) // of a wire, and nobody waits for it
	}
	answer, body := forward()
	switch harm {
	case failed:
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	case lost:
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header {
		rw.Header()[name] = values
	}
	rw.WriteHeader(answer.StatusCode)
	if harm == cut && len(body) > 0 {
		_, _ = rw.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = rw.Write(body)
}

// badBucket is a bucket behind a way that does harm, and the same bucket beside it.
func badBucket(t *testing.T, timeout time.Duration) (way *badWay, behind, beside *archive.Bucket) {
	t.Helper()
	server := streamtest.S3(t)
	name, _ := server.NewBucket(t)
	way = newBadWay(t, server.Addr())
	behind, err := archive.NewBucket(archive.BucketConfig{
		Endpoint: way.URL, Bucket: name, Prefix: "some/prefix", Region: streamtest.S3Region, AccessKey: streamtest.S3Key, SecretKey: streamtest.S3Secret, Timeout: timeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	return way, behind, bucket(t, "http://"+server.Addr(), name)
}

// settle commits until it succeeds.
func settle(t *testing.T, store archive.Store, before archive.Segment, records []*kgo.Record) (archive.Segment, int) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		s, err := archive.Commit(t.Context(), store, part, before, records[0].Offset, schemaDigest, sequence(records))
		if err == nil {
			return s, attempt
		}
		if damage := (*archive.DamageError)(nil); errors.As(err, &damage) || !errors.Is(err, archive.ErrUnavailable) {
			t.Fatalf("a bucket that is not available is taken for damage: %v", err)
		}
		if attempt == 5 {
			t.Fatal(err)
		}
	}
}

// TestABadWayToABucketHarmsNoSegment does each harm to each kind of request of a commit: the segment is there once and whole,
// whatever the first attempt came to.
func TestABadWayToABucketHarmsNoSegment(t *testing.T) {
	records := randomRecords(streamtest.Rand(t), 0, 300)
	for _, harm := range harms {
		for _, request := range [][2]string{{http.MethodPut, ".parquet"}, {http.MethodGet, ".parquet"}, {http.MethodPut, ".json"}} {
			t.Run(fmt.Sprint(harm, request), func(t *testing.T) {
				t.Parallel()
				way, behind, beside := badBucket(t, time.Minute)
				first := commit(t, beside, archive.Segment{}, records[:100])
				way.meddles(once(harm, request[0], request[1]))
				settle(t, behind, first, records[100:])
				checkWhole(t, beside, records)
			})
		}
	}
}

// checkWhole compares all that an archive has with records, and sweeps what attempts left.
func checkWhole(t *testing.T, store archive.Store, records []*kgo.Record) {
	t.Helper()
	c := load(t, store)
	if err := c.Sweep(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if c = load(t, store); len(c.Faults)+len(c.Gaps)+len(c.Orphans) > 0 {
		t.Fatalf("the catalogue is %+v", c)
	}
	for _, s := range c.Segments {
		if err := archive.Verify(t.Context(), store, s); err != nil {
			t.Error(err)
		}
	}
	var got []*kgo.Record
	if _, err := c.Read(t.Context(), store, 0, int64(len(records)), func(r *kgo.Record) error {
		got = append(got, r)
		return nil
	}); err != nil || !reflect.DeepEqual(fields(got), fields(records)) {
		t.Errorf("%d of %d records are as they were: %v", len(got), len(records), err)
	}
}

// TestASidecarThatArrivesLateNamesAFileThatIsThere lets the sidecar of an attempt that was given up come into being before or after
// another attempt committed the segment.
func TestASidecarThatArrivesLateNamesAFileThatIsThere(t *testing.T) {
	records := randomRecords(streamtest.Rand(t), 0, 300)
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			way, behind, beside := badBucket(t, 100*time.Millisecond)
			way.meddles(once(late, http.MethodPut, ".json"))
			if _, err := archive.Commit(t.Context(), behind, part, archive.Segment{}, 0, schemaDigest, sequence(records)); !errors.Is(err, archive.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
			if before {
				way.arrive()
			}
			settle(t, beside, archive.Segment{}, records)
			way.arrive()
			checkWhole(t, beside, records)
		})
	}
}

// TestABucketThatIsAwayIsNoDamage asks an archive for all that readers ask while its bucket answers nothing, or breaks off.
func TestABucketThatIsAwayIsNoDamage(t *testing.T) {
	way, behind, beside := badBucket(t, time.Minute)
	records := randomRecords(streamtest.Rand(t), 0, 300)
	s := commit(t, beside, archive.Segment{}, records)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, harm := range []fault{lost, cut} {
		way.meddles(func(r *http.Request) fault {
			if path.Ext(r.URL.Path) == ".parquet" {
				return harm
			}
			return none
		})
		c, err := archive.Load(ctx, behind, part)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup // each tries for a while
		for name, ask := range map[string]func() error{
			"reading": func() error {
				_, err := c.Read(ctx, behind, 0, 300, func(*kgo.Record) error { return nil })
				return err
			},
			"verifying": func() error { return archive.Verify(ctx, behind, s) },
			"looking":   func() error { return archive.Present(ctx, behind, s) },
		} {
			group.Go(func() {
				if damage, err := (*archive.DamageError)(nil), ask(); !errors.Is(err, archive.ErrUnavailable) || errors.As(err, &damage) {
					t.Errorf("%s, %s: got %v", harm, name, err)
				}
			})
		}
		group.Wait()
	}
	way.meddles(func(*http.Request) fault { return lost })
	if c, err := archive.Load(ctx, behind, part); !errors.Is(err, archive.ErrUnavailable) || len(c.Faults) > 0 {
		t.Errorf("loading gives %v and %v", c.Faults, err)
	}
}

// TestABadWayToABucketLosesNothing archives a log by two archivers of one group through a way that does harm to one request in three,
// while the broker deletes what is archived: all that was written is there once, and no archiver had to be started again.
func TestABadWayToABucketLosesNothing(t *testing.T) {
	r := streamtest.Rand(t)
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	way, behind, beside := badBucket(t, time.Second)
	client := newTopic(t, cfg)
	var mu sync.Mutex // of r
	count := map[fault]int{}
	way.meddles(func(request *http.Request) fault {
		mu.Lock()
		defer mu.Unlock()
		if r.IntN(3) > 0 {
			return none
		}
		harm := harms[r.IntN(len(harms))]
		if harm == cut && request.Method == http.MethodPut { // its answer is empty
			harm = lost
		}
		count[harm]++
		return harm
	})
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	defer stop(nil)
	archivers := make(chan error, 2)
	var seen [2]observed
	for i := range seen {
		seen[i].committed = func() {}
		a := archive.Archiver{Log: cfg, Store: behind, Topics: rules, Schema: schemaDigest, Logger: slog.New(slog.DiscardHandler), Observer: &seen[i]}
		go func() { archivers <- a.Run(ctx) }()
	}
	at := time.UnixMilli(1_790_000_000_000)
	cuts := []archive.Cutter{{Rule: rules[topic]}, {Rule: rules[topic]}}
	ids, err := stream.TopicIDs(t.Context(), cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	of := func(number int32) archive.Partition {
		return archive.Partition{Topic: topic, TopicID: ids[topic], Number: number}
	}
	loaded := func(number int32) archive.Catalog {
		c, err := archive.Load(t.Context(), beside, of(number))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	segments := 0
	for range 2 {
		mu.Lock()
		segments += produced(t, client, r, &at, cuts)
		mu.Unlock()
		for deadline := time.Now().Add(time.Minute); len(loaded(0).Segments)+len(loaded(1).Segments) < segments; {
			if time.Now().After(deadline) {
				t.Fatalf("of %d segments %d and %d are there; harm done: %v", segments, len(loaded(0).Segments), len(loaded(1).Segments), count)
			}
			select {
			case err := <-archivers:
				t.Fatal("an archiver ended: ", err)
			case <-time.After(20 * time.Millisecond):
			}
		}
		for number := range int32(2) {
			var offsets kadm.Offsets
			offsets.AddOffset(topic, number, loaded(number).Next(), -1)
			if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop(enough)
	for range seen {
		if err := <-archivers; !errors.Is(err, enough) {
			t.Error(err)
		}
	}
	way.meddles(func(*http.Request) fault { return none })
	log := cfg
	log.Archive = archive.NewLog(behind, cfg, rules)
	starts, ends, err := log.LogBounds(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for number := range int32(2) {
		next := int64(0)
		err := stream.ReadRange(t.Context(), log, topic, number, 0, ends[topic][number], func(record *kgo.Record) error {
			if record.Offset != next {
				t.Errorf("partition %d has %d behind %d", number, record.Offset, next-1)
			}
			next++
			read++
			return nil
		})
		if err != nil || next != ends[topic][number] || starts[topic][number] != 0 {
			t.Errorf("partition %d begins at %d and is read up to %d of %d: %v", number, starts[topic][number], next, ends[topic][number], err)
		}
		c := loaded(number)
		for _, s := range c.Segments {
			if err := archive.Verify(t.Context(), beside, s); err != nil {
				t.Error(err)
			}
		}
		if len(c.Faults)+len(c.Gaps) > 0 {
			t.Errorf("the catalogue is %+v", c)
		}
	}
	if failures := seen[0].failures + seen[1].failures; failures == 0 {
		t.Errorf("nothing failed, by %v", count)
	} else {
		t.Logf("%d records in %d segments are there once; %d attempts failed, by %v", read, segments, failures, count)
	}
}
