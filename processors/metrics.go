package processors

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
)

// Metrics measures the folds and sinks of one process. It is given to them as a field; without it (nil) they measure
// nothing. Safe for concurrent use.
//
// Its labels are bounded: fold is one of the folds that the process runs, topic one of the topic table, reason one of
// schemas.Reasons. A batch costs some atomic additions and a note of each call of a store, a single record none.
type Metrics struct {
	foldRecords, foldOutputs       *prometheus.CounterVec
	foldBatch, foldTime            *prometheus.HistogramVec
	sinkRows, sinkRetries, letters *prometheus.CounterVec
	sinkBatch, sinkTime            *prometheus.HistogramVec
	cacheTime                      prometheus.Histogram
	cacheValues, cacheRefills      prometheus.Counter

	mu        sync.Mutex
	positions map[readerID]*readerPlace
	asked     map[*asking]bool
}

// asking is a call of a store that has not succeeded yet, in all its tries.
type asking struct {
	topic string // of the sink
	since time.Time
	err   error // of the last try; nil while the first one lasts
}

// readerID names a partition that a fold or sink reads.
type readerID struct {
	fold      string // empty: the sink of the topic
	topic     string
	partition int32
}

// readerPlace is the position of a fold or sink in one partition.
type readerPlace struct{ next, read, folded atomic.Int64 }

// Position is the position of a fold or sink in one partition that it holds.
type Position struct {
	// Fold is the fold's name; empty: the sink of Topic.
	Fold      string
	Topic     string
	Partition int32
	// Next is the offset that is read next; of a sink the one below which the tables hold everything.
	Next int64
	// Read is the timestamp of the newest record below Next, Unix nanoseconds; 0 if none was read since the start.
	Read int64
	// Folded is the log time up to which the fold has folded, Unix nanoseconds; 0 of a sink, or before the first clock.
	Folded int64
}

// NewMetrics registers what it measures.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		foldRecords: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_fold_records_total", Help: "Records that a fold has read, by the topic that it reads."}, []string{"fold", "topic"}),
		foldOutputs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_fold_outputs_total", Help: "Records that a fold has written, clock records included."}, []string{"fold"}),
		foldBatch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "marketlog_fold_batch_records", Help: "Records folded at a time: a fetch of one partition, or all of one log second or minute.",
			Buckets: []float64{1, 10, 100, 1_000, 10_000}}, []string{"fold"}),
		foldTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "marketlog_fold_batch_duration_seconds", Help: "Time to fold a batch and to hand its outputs to the client of the log.",
			Buckets: []float64{.0001, .001, .01, .1, 1, 10}}, []string{"fold"}),
		sinkRows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_sink_rows_total", Help: "Rows inserted into the tables of a topic; rows that were inserted again count again."}, []string{"topic"}),
		sinkRetries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_sink_retries_total", Help: "Repeated calls of a store that was away, by the topic of the sink."}, []string{"topic"}),
		sinkBatch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "marketlog_sink_batch_rows", Help: "Rows inserted at a time.",
			Buckets: []float64{1, 10, 100, 1_000, 10_000, sinkMaxRows}}, []string{"topic"}),
		sinkTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "marketlog_sink_insert_duration_seconds", Help: "Time to insert a batch into ClickHouse, repetitions included.",
			Buckets: []float64{.001, .01, .05, .1, .5, 1, 5, 30}}, []string{"topic"}),
		letters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_dead_letters_total", Help: "Dead letters read from the log or made of undecodable records, by the topic that they lie in and their reason."},
			[]string{"topic", "reason"}),
		cacheTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "marketlog_cache_put_duration_seconds", Help: "Time to put a batch of latest prices into the cache.",
			Buckets: []float64{.0005, .001, .005, .01, .05, .1, .5, 5}}),
		cacheValues: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "marketlog_cache_values_total", Help: "Latest prices put into the cache."}),
		cacheRefills: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "marketlog_cache_refills_total", Help: "Partitions that the cache had lost and that were filled from ClickHouse."}),
		positions: map[readerID]*readerPlace{}, asked: map[*asking]bool{},
	}
	registry.MustRegister(m.foldRecords, m.foldOutputs, m.foldBatch, m.foldTime, m.sinkRows, m.sinkRetries, m.sinkBatch, m.sinkTime,
		m.letters, m.cacheTime, m.cacheValues, m.cacheRefills)
	for _, topic := range []string{schemas.TopicTicksRawDead, schemas.TopicReferenceRawDead} {
		for _, reason := range schemas.Reasons {
			m.letters.WithLabelValues(topic, string(reason)) // so that each is there before the first
		}
	}
	return m
}

// Positions are those of the partitions that the folds and sinks of this process hold now, in a fixed order.
func (m *Metrics) Positions() []Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Position, 0, len(m.positions))
	for id, p := range m.positions {
		list = append(list, Position{
			Fold: id.fold, Topic: id.topic, Partition: id.partition, Next: p.next.Load(), Read: p.read.Load(), Folded: p.folded.Load(),
		})
	}
	slices.SortFunc(list, func(a, b Position) int {
		return cmp.Or(cmp.Compare(a.Fold, b.Fold), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list
}

// WaitingAfter is after how long a store that takes nothing from a sink counts as away: a large batch takes a tenth of a second.
const WaitingAfter = 10 * time.Second

// Waiting reports for which sinks, by topic, a store is away, and why.
func (m *Metrics) Waiting() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var why map[string]string
	for a := range m.asked {
		if time.Since(a.since) < WaitingAfter {
			continue
		}
		if why == nil {
			why = map[string]string{}
		}
		why[a.topic] = "waiting for a store: it has not answered yet"
		if a.err != nil {
			why[a.topic] = "waiting for a store: " + a.err.Error()
		}
	}
	return why
}

// asks notes that a store is asked, from now on until it has answered; nil for a sink that is not measured.
func (s *sinkMetrics) asks() *asking {
	if s == nil {
		return nil
	}
	a := &asking{topic: s.topic, since: time.Now()}
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	s.metrics.asked[a] = true
	return a
}

// failed notes why a try did.
func (s *sinkMetrics) failed(a *asking, err error) {
	if s == nil {
		return
	}
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	a.err = err
}

func (s *sinkMetrics) answered(a *asking) {
	if s == nil {
		return
	}
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	delete(s.metrics.asked, a)
}

// hold begins to measure a partition at an offset.
func (m *Metrics) hold(id readerID, next int64) {
	if m == nil {
		return
	}
	p := &readerPlace{}
	p.next.Store(next)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.positions[id] = p
}

// release ends the measurement of a partition that was given back.
func (m *Metrics) release(id readerID) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.positions, id)
}

// reached notes the position in a partition that is held. A read or folded of 0 leaves what is known.
func (m *Metrics) reached(id readerID, next, read, folded int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	p := m.positions[id]
	m.mu.Unlock()
	if p == nil {
		return
	}
	p.next.Store(next)
	if read > 0 {
		p.read.Store(read)
	}
	if folded > 0 {
		p.folded.Store(folded)
	}
}

// foldMetrics measures one fold. Nil measures nothing.
type foldMetrics struct {
	metrics     *Metrics
	fold        string
	records     map[string]prometheus.Counter // by topic
	outputs     prometheus.Counter
	batch, took prometheus.Observer
}

// fold prepares to measure a fold that reads topics.
func (m *Metrics) fold(name string, topics ...string) *foldMetrics {
	if m == nil {
		return nil
	}
	f := &foldMetrics{
		metrics: m, fold: name, records: map[string]prometheus.Counter{}, outputs: m.foldOutputs.WithLabelValues(name),
		batch: m.foldBatch.WithLabelValues(name), took: m.foldTime.WithLabelValues(name),
	}
	for _, topic := range topics {
		f.records[topic] = m.foldRecords.WithLabelValues(name, topic)
	}
	return f
}

func (f *foldMetrics) hold(topic string, partition int32, next int64) {
	if f != nil {
		f.metrics.hold(readerID{f.fold, topic, partition}, next)
	}
}

func (f *foldMetrics) release(topic string, partition int32) {
	if f != nil {
		f.metrics.release(readerID{f.fold, topic, partition})
	}
}

// folded measures one fetch of a partition that was folded up to a log time.
func (f *foldMetrics) folded(batch []*kgo.Record, outputs int, logTime int64, began time.Time) {
	if f == nil || len(batch) == 0 {
		return
	}
	f.read(batch, logTime)
	f.outputs.Add(float64(outputs))
	f.batch.Observe(float64(len(batch)))
	f.took.Observe(time.Since(began).Seconds())
}

// read counts records of one partition that a fold has taken over.
func (f *foldMetrics) read(batch []*kgo.Record, folded int64) {
	if f == nil || len(batch) == 0 {
		return
	}
	last := batch[len(batch)-1]
	f.metrics.reached(readerID{f.fold, last.Topic, last.Partition}, last.Offset+1, last.Timestamp.UnixNano(), folded)
	f.records[last.Topic].Add(float64(len(batch))) // whoever sees the count sees the position too
}

// closed measures a log second or minute that was folded whole.
func (f *foldMetrics) closed(end int64, records, outputs int, began time.Time) {
	if f == nil {
		return
	}
	f.outputs.Add(float64(outputs))
	f.batch.Observe(float64(records))
	f.took.Observe(time.Since(began).Seconds())
	f.metrics.mu.Lock()
	defer f.metrics.mu.Unlock()
	for id, p := range f.metrics.positions {
		if id.fold == f.fold {
			p.folded.Store(end)
		}
	}
}

// sinkMetrics measures one sink. Nil measures nothing.
type sinkMetrics struct {
	metrics       *Metrics
	topic         string
	rows, retries prometheus.Counter
	batch, took   prometheus.Observer
}

func (m *Metrics) sink(topic string) *sinkMetrics {
	if m == nil {
		return nil
	}
	return &sinkMetrics{
		metrics: m, topic: topic, rows: m.sinkRows.WithLabelValues(topic), retries: m.sinkRetries.WithLabelValues(topic),
		batch: m.sinkBatch.WithLabelValues(topic), took: m.sinkTime.WithLabelValues(topic),
	}
}

func (s *sinkMetrics) hold(partition int32, next int64) {
	if s != nil {
		s.metrics.hold(readerID{topic: s.topic, partition: partition}, next)
	}
}

func (s *sinkMetrics) release(partition int32) {
	if s != nil {
		s.metrics.release(readerID{topic: s.topic, partition: partition})
	}
}

func (s *sinkMetrics) reached(partition int32, next, logTime int64) {
	if s != nil {
		s.metrics.reached(readerID{topic: s.topic, partition: partition}, next, logTime, 0)
	}
}

func (s *sinkMetrics) inserted(rows int, took time.Duration) {
	if s == nil {
		return
	}
	s.rows.Add(float64(rows))
	s.batch.Observe(float64(rows))
	s.took.Observe(took.Seconds())
}

func (s *sinkMetrics) retried() {
	if s != nil {
		s.retries.Inc()
	}
}

// letter counts a dead letter. What a letter says of its reason was written by anybody.
func (s *sinkMetrics) letter(topic, reason string) {
	if s == nil {
		return
	}
	known := "other"
	if i := slices.Index(schemas.Reasons, schemas.Reason(reason)); i >= 0 {
		known = string(schemas.Reasons[i]) // and not the letter's own bytes, which are borrowed
	}
	s.metrics.letters.WithLabelValues(topic, known).Inc()
}

func (s *sinkMetrics) cached(values, refilled int, took time.Duration) {
	if s == nil {
		return
	}
	s.metrics.cacheValues.Add(float64(values))
	s.metrics.cacheRefills.Add(float64(refilled))
	s.metrics.cacheTime.Observe(took.Seconds())
}
