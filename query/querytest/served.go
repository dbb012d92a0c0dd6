package querytest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Answered are the answers to paths at an instant, each with its status before it.
type Answered struct {
	At     time.Time
	Bodies []string
}

// Ask asks paths, each of which ends with what a parameter may follow; past asks for what was answered at the instant.
func (w *Fixture) Ask(at time.Time, past bool, paths []string) Answered {
	w.T.Helper()
	a := Answered{At: at}
	for _, path := range paths {
		if past {
			path += "asOf=" + at.Format(time.RFC3339Nano)
		}
		a.Bodies = append(a.Bodies, w.Get(path))
	}
	return a
}

// Get is the answer to a path, with its status before it.
func (w *Fixture) Get(path string) string {
	w.T.Helper()
	response, err := http.Get(w.Base() + path)
	w.Must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	w.Must(err)
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

// Log is a log of the test's own, with all topics, and who writes to it.
func (w *Fixture) Log() (*views.Log, *kgo.Client) {
	w.T.Helper()
	reach := stream.Config{Brokers: []string{streamtest.Kfake(w.T)}, ClientID: "test"}
	client, err := reach.NewProducer()
	w.Must(err)
	w.T.Cleanup(client.Close)
	w.Must(stream.CreateTopics(w.T.Context(), client, schemas.Topics, 1, func(schemas.Topic) map[string]string { return nil }))
	return views.NewLog(reach, nil), client
}

// CloseCandles has live minutes of all coins closed up to a time.
func (w *Fixture) CloseCandles(until time.Time) {
	w.T.Helper()
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	w.Must(err)
	var progress []history.SinkProgress
	for partition := range topic.Partitions {
		progress = append(progress, history.SinkProgress{Sink: topic.Name, Progress: history.Progress{Partition: partition, Next: w.Offset(), ClosedUntil: until.UnixNano()}})
	}
	w.Must(w.Store.Record(w.T.Context(), progress))
}

// RecordServed keeps the steps of a process in the store, as one that ends writes them to the log.
func (w *Fixture) RecordServed(steps *views.ServedSteps, replica string) {
	w.T.Helper()
	ended, end := context.WithCancel(w.T.Context())
	end()
	w.Must(steps.Run(ended, replica, servedRecorder{w}, slog.New(slog.DiscardHandler)))
}

type servedRecorder struct{ w *Fixture }

func (r servedRecorder) WriteServed(ctx context.Context, record *eventsv1.ServedRecord) error {
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicServed, Offset: r.w.Offset()}, record)
	return b.Insert(ctx, r.w.Store, "")
}
