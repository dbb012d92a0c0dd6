package poll_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// referenceTopics makes the topics that polled sources write to.
func referenceTopics(t *testing.T, cfg stream.Config) {
	t.Helper()
	client, err := cfg.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(t.Context(), 1, 1, nil, schemas.TopicReferenceRaw, schemas.TopicCoinMarketsRaw, schemas.TopicRatesRaw, schemas.TopicReferenceRawDead); err != nil {
		t.Fatal(err)
	}
}

// written reads a whole topic of one partition.
func written(t *testing.T, cfg stream.Config, topic string, visit func(*kgo.Record)) {
	t.Helper()
	client, err := cfg.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	if err := stream.ReadRange(t.Context(), cfg, topic, 0, 0, end.Offset, func(r *kgo.Record) error {
		visit(r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func pollFor(t *testing.T, cfg stream.Config, url string, until func(poll.SourceStats) bool) {
	t.Helper()
	log, err := poll.NewSourceLog(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := newPoller(t, nil, log.Source("ecb"), url)
	ctx, cancel := context.WithCancel(t.Context())
	clocks, done := make(chan error, 1), make(chan error, 1)
	go func() { clocks <- log.Run(ctx) }()
	go func() { done <- p.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); !until(p.Stats()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("stats = %+v after a minute", p.Stats())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := <-clocks; err != nil {
		t.Error(err)
	}
}

// Two processes one after the other, over a real server and a broker.
func TestSourcesWriteToTheLogOnce(t *testing.T) {
	streamtest.Backends(t, func(t *testing.T, addr string) {
		cfg := stream.Config{Brokers: []string{addr}}
		referenceTopics(t, cfg)
		yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, dailyFile) {
				fmt.Fprint(w, days(yesterday+" USD=1.1 KRW=1600"))
				return
			}
			fmt.Fprint(w, days(yesterday+" USD=1.1 KRW=1600 JPY=none", "2026-01-05 USD=1.2"))
		}))
		defer server.Close()
		for range 2 {
			pollFor(t, cfg, server.URL, func(s poll.SourceStats) bool { return s.Requests == 2 })
		}
		var records []*eventsv1.ReferenceRecord
		epochs := map[int64]bool{}
		written(t, cfg, schemas.TopicReferenceRaw, func(r *kgo.Record) {
			rec := &eventsv1.ReferenceRecord{}
			err := rec.UnmarshalVT(r.Value)
			producer := "ecb"
			if rec.GetClock() != nil {
				producer = poll.SourcesProducer
			}
			if err != nil || string(r.Key) != producer || rec.Producer != producer {
				t.Fatalf("record %v under key %q, %v", rec, r.Key, err)
			}
			if f := rec.GetFixing(); f != nil && f.IngestTime < rec.Epoch {
				t.Errorf("%v was read before its producer started at %d", f, rec.Epoch)
			}
			epochs[rec.Epoch] = true
			if rec.GetClock() == nil {
				records = append(records, rec)
			}
		})
		wantWritten(t, records,
			"ecb EUR/USD 1.2 2026-01-05", "ecb EUR/KRW 1600 "+yesterday, "ecb EUR/USD 1.1 "+yesterday,
			allFile+": 200, 3 rows", dailyFile+": 200, 2 rows", historyFile+": 200, 3 rows", dailyFile+": 200, 2 rows")
		if len(epochs) != 2 {
			t.Errorf("%d epochs, want one of each process", len(epochs))
		}
		dead := 0
		written(t, cfg, schemas.TopicReferenceRawDead, func(r *kgo.Record) {
			rec := &eventsv1.DeadRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil || rec.Letter.Reason != "not_a_number" || rec.Letter.IngestTime == 0 {
				t.Errorf("dead letter %v, %v", rec, err)
			}
			dead++
		})
		if dead != 2 {
			t.Errorf("%d dead letters, want one of each process", dead)
		}
	})
}

// A clock comes after everything of its source that is not later, and comes every ten seconds: also where time waits
// for it each second.
func TestClocksOfSourcesAreWritten(t *testing.T) {
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}}
	referenceTopics(t, cfg)
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	clock := producers.NewVirtualClock(start, 50)
	log, err := poll.NewSourceLog(cfg, clock, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	out := log.Source("ecb")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- log.Run(ctx) }()
	go func() { ended <- clock.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); clock.Now().Before(start.Add(35 * time.Second)); {
		rec := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{Source: "ecb"}}}
		if err := out.Append(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the clock is at %s, %s after its start: it waits for clocks that do not come", clock.Now(), clock.Now().Sub(start))
		}
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	last := int64(0)
	var gaps []time.Duration
	written(t, cfg, schemas.TopicReferenceRaw, func(r *kgo.Record) {
		rec := &eventsv1.ReferenceRecord{}
		if err := rec.UnmarshalVT(r.Value); err != nil {
			t.Fatal(err)
		}
		if c := rec.GetClock(); c != nil {
			if last != 0 {
				gaps = append(gaps, time.Duration(c.Time-last))
			}
			last = c.Time
		} else if at := rec.GetFixing().GetIngestTime(); at <= last {
			t.Errorf("a rate of %d comes after the clock of %d", at, last)
		}
	})
	if len(gaps) != 3 || slices.Max(gaps) > 11*time.Second || slices.Min(gaps) < 9*time.Second {
		t.Errorf("clocks of 35 s come %v apart, want three times 10 s", gaps)
	}
}

// With the log away a source waits, and loses nothing.
func TestSourcesWaitForTheLog(t *testing.T) {
	log, err := poll.NewSourceLog(stream.Config{Brokers: []string{"127.0.0.1:1"}}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	rec := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fetch{Fetch: &eventsv1.Fetch{Source: "ecb"}}}
	if err := log.Source("ecb").Append(ctx, rec); err == nil {
		t.Error("a record was taken that the log does not have")
	}
}
