package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

const (
	// logAskTimeout bounds what a scrape may wait for the log.
	logAskTimeout = 2 * time.Second
	// logAskEvery is how long an answer of the log is used again: who scrapes more often asks it no more often.
	logAskEvery = time.Second
)

// Log measures the log, and how far the folds and sinks of this process are behind it. The log is asked when it is
// measured, so that a lag is of the same moment as the position. Labels are bounded by the topic table and the folds.
type Log struct {
	// Now is the clock that the feeds live in, Began when the process did by it.
	Now   func() time.Time
	Began time.Time
	// Positions are how far the folds and sinks are.
	Positions func() []processors.Position
	// Limits are the topics' bounds in bytes; of a cluster there are none.
	Limits map[string]int64

	mu     sync.Mutex
	client *kgo.Client
	taken  time.Time
	found  []prometheus.Metric
}

// Open begins to measure the log that the client reaches; closed ends that, and closes the client.
func (l *Log) Open(client *kgo.Client) (closed func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client = client
	return func() {
		l.mu.Lock()
		l.client = nil
		l.mu.Unlock()
		client.Close()
	}
}

var (
	logUp      = prometheus.NewDesc("marketlog_log_up", "Whether the log answered when it was measured.", nil, nil)
	logRecords = logMetric("records_total", "Offsets that the log has given out, clock records included.")
	logBytes   = logMetric("bytes", "Size of a topic on the broker's disk.")
	logLimit   = logMetric("limit_bytes", "Bound of a topic in the embedded log; it is exceeded by up to an eighth, or 16 MiB a partition.")

	foldOffset  = foldMetric("offset", "Sum of the offsets that a fold reads next, over the partitions that this process holds.", "topic")
	foldLag     = foldMetric("lag_records", "Records of a topic that a fold has not read, in the partitions that this process holds.", "topic")
	foldSeconds = foldMetric("lag_seconds", "Time since the newest record that a fold has read was written, of the partition where that is longest; 0 where nothing is left to read.", "topic")
	foldTime    = foldMetric("log_timestamp_seconds", "Log time up to which a fold has folded, in the partition that is furthest behind, Unix seconds.")

	sinkOffset  = sinkMetric("offset", "Sum of the offsets below which the tables hold everything, over the partitions that this process holds.")
	sinkLag     = sinkMetric("lag_records", "Records of a topic that are not in the tables, in the partitions that this process holds.")
	sinkSeconds = sinkMetric("lag_seconds", "Time since the newest record in the tables was written, of the partition where that is longest; 0 where nothing is left to read.")
)

func logMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_log_"+name, help, []string{"topic"}, nil)
}

func foldMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_fold_"+name, help, append([]string{"fold"}, labels...), nil)
}

func sinkMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_sink_"+name, help, []string{"topic"}, nil)
}

// Describe names the metrics.
func (l *Log) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		logUp, logRecords, logBytes, logLimit, foldOffset, foldLag, foldSeconds, foldTime, sinkOffset, sinkLag, sinkSeconds,
	} {
		out <- d
	}
}

// Collect asks the log, at most once a second.
func (l *Log) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == nil {
		return // an engine alone, or before the log is open
	}
	if time.Since(l.taken) >= logAskEvery {
		l.found = l.measured()
		l.taken = time.Now()
	}
	for _, m := range l.found {
		out <- m
	}
}

func (l *Log) measured() (found []prometheus.Metric) {
	add := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		found = append(found, prometheus.MustNewConstMetric(d, kind, v, labels...))
	}
	for topic, limit := range l.Limits {
		add(logLimit, prometheus.GaugeValue, float64(limit), topic)
	}
	ctx, cancel := context.WithTimeout(context.Background(), logAskTimeout)
	defer cancel()
	names := make([]string, len(schemas.Topics))
	for i, topic := range schemas.Topics {
		names[i] = topic.Name
	}
	ends, err := stream.Ends(ctx, l.client, names...)
	add(logUp, prometheus.GaugeValue, Truth(err == nil))
	if err != nil {
		return found
	}
	for topic, partitions := range ends {
		records := int64(0)
		for _, end := range partitions {
			records += end
		}
		add(logRecords, prometheus.CounterValue, float64(records), topic)
	}
	// Not every broker gives its sizes.
	if dirs, err := kadm.NewClient(l.client).DescribeAllLogDirs(ctx, nil); err == nil {
		sizes := map[string]int64{}
		dirs.Each(func(dir kadm.DescribedLogDir) {
			dir.Topics.Each(func(p kadm.DescribedLogDirPartition) { sizes[p.Topic] += p.Size })
		})
		for _, name := range names {
			add(logBytes, prometheus.GaugeValue, float64(sizes[name]), name)
		}
	}
	l.lags(ends, add)
	return found
}

// readerID names what reads a topic: a fold, or the sink.
type readerID struct{ fold, topic string }

// lags compares the positions with the ends of the log.
func (l *Log) lags(ends stream.Offsets, add func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string)) {
	type standing struct {
		next, lag int64
		seconds   float64
	}
	now := l.Now()
	readers, folded := map[readerID]standing{}, map[string]int64{}
	for _, p := range l.Positions() {
		id := readerID{p.Fold, p.Topic}
		s := readers[id]
		s.next += p.Next
		// Records that were read since the ends were listed count as none.
		if end := ends[p.Topic][p.Partition]; end > p.Next {
			s.lag += end - p.Next
			read := l.Began // nothing was read since the start: behind for as long at least
			if p.Read > 0 {
				read = time.Unix(0, p.Read)
			}
			s.seconds = max(s.seconds, now.Sub(read).Seconds())
		}
		readers[id] = s
		if p.Fold != "" && p.Folded > 0 {
			if before, ok := folded[p.Fold]; !ok || p.Folded < before {
				folded[p.Fold] = p.Folded
			}
		}
	}
	for id, s := range readers {
		if id.fold == "" {
			add(sinkOffset, prometheus.GaugeValue, float64(s.next), id.topic)
			add(sinkLag, prometheus.GaugeValue, float64(s.lag), id.topic)
			add(sinkSeconds, prometheus.GaugeValue, s.seconds, id.topic)
			continue
		}
		add(foldOffset, prometheus.GaugeValue, float64(s.next), id.fold, id.topic)
		add(foldLag, prometheus.GaugeValue, float64(s.lag), id.fold, id.topic)
		add(foldSeconds, prometheus.GaugeValue, s.seconds, id.fold, id.topic)
	}
	for fold, at := range folded {
		add(foldTime, prometheus.GaugeValue, float64(at)/1e9, fold)
	}
}
