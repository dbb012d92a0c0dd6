package ws

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query/collectors"
)

type metrics struct {
	open   prometheus.Gauge
	frames prometheus.Counter
	merged prometheus.Counter
	closed *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "marketlog_stream_connections", Help: "Open price streams."}),
		frames: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "marketlog_stream_frames_total", Help: "Frames encoded for all subscribers; each is encoded once."}),
		merged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "marketlog_stream_conflated_total", Help: "Rounds merged into what a slow subscriber had not read yet."}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_stream_closed_total", Help: "Sockets that the server closed, by code."}, []string{"code"}),
	}
	var err error
	if m.open, err = collectors.Register(registry, m.open); err != nil {
		return nil, err
	}
	if m.frames, err = collectors.Register(registry, m.frames); err != nil {
		return nil, err
	}
	if m.merged, err = collectors.Register(registry, m.merged); err != nil {
		return nil, err
	}
	m.closed, err = collectors.Register(registry, m.closed)
	return m, err
}

func (m *metrics) sent(frames, merged int) {
	m.frames.Add(float64(frames))
	m.merged.Add(float64(merged))
}

func (m *metrics) close(code int) { m.closed.WithLabelValues(strconv.Itoa(code)).Inc() }
