// Package metrics measures the pipeline for /metrics: the feeds of venues, the log and how far folds and sinks are behind it, the tables,
// and what the instance waits for. It reads what the parts count; it counts nothing on their way.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/schemas"
)

// Feeds measures the venues that this process reads, and their way into the log. Its labels are bounded: venue by
// the list of exchanges, reason by closed lists. It measures nothing before Reading; safe for concurrent use.
type Feeds struct {
	// Now is the clock that the feeds live in.
	Now func() time.Time
	// Began is when the process did, by it.
	Began time.Time
	// Paused are the venues, or the polled sources together, whose feeds a full disk ended.
	Paused func() []string

	mu     sync.Mutex
	venues map[string]*adapter.Exchange
	writer *outbox.Writer
	bounds outbox.WriterConfig
	since  time.Time // when the writer began, by the machine's clock
}

// reasonConnection is why a gap is open whose connection was lost.
const reasonConnection = "connection"

// Reading begins to measure venues and their writer.
func (f *Feeds) Reading(venues map[string]*adapter.Exchange, writer *outbox.Writer, bounds outbox.WriterConfig) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.venues, f.writer, f.bounds, f.since = venues, writer, bounds, time.Now()
}

var (
	venueConnections = venueMetric("connections", "Open connections to the venue.")
	venueMarkets     = venueMetric("markets", "Markets of the venue that are subscribed to.")
	venueConnects    = venueMetric("connects_total", "Connections opened to the venue.")
	venueFrames      = venueMetric("frames_total", "Messages read from the venue's stream.")
	venueEvents      = venueMetric("events_total", "Trades and states of order books that became a record, from the stream and from answers.")
	venueAge         = venueMetric("last_event_age_seconds", "Time since the last event of the venue; since the start of the process before the first.")
	venueGaps        = venueMetric("gaps_total", "Gaps recorded for the venue, by reason: sequence, disconnect or silence.", "reason")
	venueMissed      = venueMetric("missed_messages_total", "Messages that are missing by the venue's own numbers.")
	venueRefused     = venueMetric("refused_total", "Messages and rows of the venue that became no event, by reason.", "reason")
	openGaps         = prometheus.NewDesc("marketlog_open_gaps", "Gaps that have not ended: connections that were lost and have received nothing since, and feeds that a full disk has paused.",
		[]string{"source", "reason"}, nil)

	writerQueue        = writerMetric("queue_bytes", "Bytes accepted from feeds that wait in memory.")
	writerFlight       = writerMetric("in_flight_records", "Records handed to the client of the log and not acknowledged.")
	writerFlightBytes  = writerMetric("in_flight_bytes", "Memory of the records that are not acknowledged.")
	writerMemoryLimit  = writerMetric("memory_limit_bytes", "Bound of the bytes that wait in memory, acknowledgements included.")
	writerSpool        = writerMetric("spool_bytes", "Size of the spool on disk, where records wait for a log that does not answer.")
	writerSpoolLimit   = writerMetric("spool_limit_bytes", "Bound of the spool; beyond it the oldest records give way to a gap.")
	writerSpooling     = writerMetric("spooling", "Whether records go through the spool: the log does not keep up.")
	writerAccepted     = writerMetric("accepted_total", "Records taken from feeds.")
	writerAcknowledged = writerMetric("acknowledged_total", "Records that the log acknowledged, clock records included.")
	writerSpooled      = writerMetric("spooled_total", "Records written to the spool.")
	writerDropped      = writerMetric("dropped_total", "Records given up since the spool was full; gaps in the log record them.")
	writerDamaged      = writerMetric("damaged_bytes_total", "Bytes of the spool that could not be read back.")
	writerAckAge       = writerMetric("last_acknowledgement_age_seconds", "Time since the log last acknowledged anything; before the first, since the writer began.")
)

func venueMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_venue_"+name, help, append([]string{"venue"}, labels...), nil)
}

func writerMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_producer_"+name, help, nil, nil)
}

// Describe names the metrics.
func (f *Feeds) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		venueConnections, venueMarkets, venueConnects, venueFrames, venueEvents, venueAge, venueGaps, venueMissed, venueRefused, openGaps,
		writerQueue, writerFlight, writerFlightBytes, writerMemoryLimit, writerSpool, writerSpoolLimit, writerSpooling,
		writerAccepted, writerAcknowledged, writerSpooled, writerDropped, writerDamaged, writerAckAge,
	} {
		out <- d
	}
}

// Collect reads the statistics of every venue and of the writer.
func (f *Feeds) Collect(out chan<- prometheus.Metric) {
	f.mu.Lock()
	venues, writer, bounds, since := f.venues, f.writer, f.bounds, f.since
	f.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	now := f.Now()
	for slug, x := range venues {
		s := x.Stats()
		gauge(venueConnections, float64(s.Connected), slug)
		gauge(venueMarkets, float64(s.Markets), slug)
		counter(venueConnects, float64(s.Connects), slug)
		counter(venueFrames, float64(s.Frames), slug)
		counter(venueEvents, float64(s.Events), slug)
		gauge(venueAge, Age(now, s.LastEvent, f.Began), slug)
		for reason, n := range s.Gaps {
			counter(venueGaps, float64(n), slug, reason)
		}
		counter(venueMissed, float64(s.Missed), slug)
		for _, reason := range schemas.Reasons {
			counter(venueRefused, float64(s.Refused[reason]), slug, string(reason))
		}
		gauge(openGaps, float64(s.OpenGaps), slug, reasonConnection)
	}
	for _, source := range f.Paused() {
		gauge(openGaps, 1, source, diskguard.GapReason)
	}
	if writer == nil {
		return
	}
	s := writer.Stats()
	gauge(writerQueue, float64(s.QueueBytes))
	gauge(writerFlight, float64(s.InFlight))
	gauge(writerFlightBytes, float64(s.InFlightBytes))
	gauge(writerMemoryLimit, float64(bounds.MemoryBytes))
	gauge(writerSpool, float64(s.SpoolBytes))
	gauge(writerSpoolLimit, float64(bounds.SpoolBytes))
	gauge(writerSpooling, Truth(s.Spooling))
	counter(writerAccepted, float64(s.Accepted))
	counter(writerAcknowledged, float64(s.Acked))
	counter(writerSpooled, float64(s.Spooled))
	counter(writerDropped, float64(s.Dropped))
	counter(writerDamaged, float64(s.DamagedBytes))
	gauge(writerAckAge, Age(time.Now(), s.LastAck, since)) // by the machine's clock, as the writer's
}

// Age is how long ago something was, in seconds; where it never was, since began.
func Age(now, at, began time.Time) float64 {
	if at.IsZero() {
		at = began
	}
	return max(0, now.Sub(at).Seconds())
}

// Truth is 1 for what is so, else 0.
func Truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
